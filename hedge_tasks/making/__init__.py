"""Making data sets: many requests to models in stages, resumable, each record with where it came from.

A pipeline is an ordinary function of one source record that asks questions (`hedge_tasks.making.asking.Asking`).
Every reply goes into a ledger under a key made of all that shaped the question, and the same question is answered from
the ledger. So a pipeline that was killed is simply run again: it goes the same way without a request to where it
was, and several workers may go over one source into one ledger.

    asking       questions of one source record
    production   many records at a time, with counts of what was accepted and why the rest was not
    commands     options, estimates and output that the commands `hedge make ...` share
    gate         what made texts have to pass, solvers without skill, and review by people
    pictures     image generators and checkers, and a store of what they made
    output       files of a made set: data, card, report; `croissant` has its metadata
    medhallu, medhallmark, shale    the papers' constructions, each with its command
    judging      a judge's training set, and its training
    elements, knowledge             words and facts to make pictures of
    shortcuts    how well wrong answers are told from true ones without their questions
    digests      choices that are the same on any machine
"""
