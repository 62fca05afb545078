"""The gate that everything made passes, and that released sets can be sent through.

refuse   texts that are no candidates (refusals, markers, copies of the truth), and texts that repeat over a set
verify   open-book verifiers with their controls; does the evidence contradict a text that is to be wrong?
twins    minimal pairs; `words.json` has their words
attack   solvers without skill, and the set's floor; `sets` reads released sets for it
accept   a whole making at the gate
"""
