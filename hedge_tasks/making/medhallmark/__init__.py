"""Med-HallMark's construction (section 3.4, appendix A.1): `hedge make medhallmark`.

    sources     rows of VQA data sets and of reports, as they come in
    reports     cleaning and sampling of reports; `reports.json` has the patterns
    checks      whether a rewritten question is the same one, and whether a counterfactual is one
    pipeline    the items of a row: conventional, confidence-weakening, counterfactual questions, or a report
    output      the set as `hedge_medhallmark` reads it, with card, report and the queue for people
    command     the command

Figures 5 and 8 are prompts in `prompts/`, in the paper's words; Figure 7 and the dimensions are in `wording.json`, and
Figure 4 is `perturb/wordings/confidence_weakening.json`.
"""
