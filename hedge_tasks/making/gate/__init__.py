"""The gate that everything made passes: `hedge make`, `hedge judge data`, and released sets that somebody wants checked.

    refuse    texts that are no candidates: refusals, markers, copies of the truth; texts that repeat over a set
    verify    open-book verifiers: does the evidence contradict a text that is to be wrong?
    attack    solvers without skill, and the set's floor
"""
