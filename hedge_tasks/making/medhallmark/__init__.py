"""Med-HallMark's construction (section 3.4, appendix A.1): `hedge make medhallmark`.

    sources       rows of VQA data sets and of reports, as they come in and cleaned; `reports.json` has the patterns
    construction  the items of a row: conventional, confidence-weakening, counterfactual questions, or a report
    command       the command, and the set as `hedge_medhallmark` reads it

Figures 5 and 8 are prompts in `prompts/`, in the paper's words; Figure 7 and the dimensions are in `wording.json`, and
Figure 4 is `perturb/wordings/confidence_weakening.json`.
"""
