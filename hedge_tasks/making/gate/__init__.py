"""The gate that everything made passes, and that released sets can be sent through.

Rooms:
    refuse: texts that are no candidates (refusals, markers, copies of the truth), and texts that repeat over a set.
    verify: open-book verifiers; does the evidence contradict a text that is to be wrong?
    attack: solvers without skill, and the set's floor.
    twins: minimal pairs.
    controls: questions with a known answer; can a verifier be believed?
    queue: blinded pages for two people.
    people: a blinded queue, and what its labels say of the set.
    sets: made and released sets as solvers see them.
    passing: a whole set at the gate.
"""
