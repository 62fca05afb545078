"""Making data sets and judges by the papers' constructions: stages of requests behind one gate.

stages       requests of a source row, each kept; many rows at a time, with counts; what it costs
gate         what made texts have to pass, and solvers without skill
output       files of a made set: data, card, report, the page for people
commands     options and results that the commands `hedge make ...` share
medhallu, medhallmark, shale    the papers' constructions, each with its command
pictures     image generators and checkers, and a store of what they made
judging      a judge's training set, and its training
digests      choices that are the same on any machine
"""
