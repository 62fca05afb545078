"""Sentences of reports as reports have them: in lower case, with spaced stops, joined by commas, with abbreviations."""

from __future__ import annotations

SENTENCES: list[list[str]] = [
    ["the lungs are clear.", "there is no effusion."],
    ["the lungs are clear .", "there is no effusion .", "heart size is normal ."],
    [
        "On this study, the lungs are better expanded and the lungs appear clear,",
        "A right upper lobe granuloma is unchanged,",
        "No pneumothorax or pleural effusion is present,",
        "The cardiac silhouette, hilar and mediastinal contours appear normal",
    ],
    ["A mass of approx. 3 cm.", "It has 2.5 cm walls."],
    ["Dr. Smith reviewed the films.", "No acute disease."],
    ["Heart size is normal.", "No pneumothorax."],
    ["There is a 1.5 x 2.0 cm nodule in the R. upper lobe.", "Follow-up is advised."],
    ["Compared to the prior from Jan. 5, the effusion has resolved.", "The line tip is in the SVC."],
    ["e.g. pneumonia or edema.", "Clinical correlation is advised."],
    ["Mild cardiomegaly vs. portable technique.", "No focal consolidation."],
    ["Is there an effusion?", "No."],
    ["Stable appearance of the chest!", "No new findings."],
    ["ET tube 3 cm above the carina.", "NG tube in the stomach."],
    ["Patchy opacity at the left base, likely atelectasis, etc.", "Aeration of the right lung is improved."],
    ["There is no evidence of pneumothorax, large pleural effusion or acute bony abnormalities."],
    ["The lungs, the heart and the mediastinum are normal."],
    ["No. 5 French catheter is unchanged."],
    ["Bilateral effusions (left > right).", "Moderate edema."],
    ["the p.o. intake is fine.", "he was seen at 5 p.m. on Monday."],
    ["the patient has s. aureus bacteremia.", "the valve is normal."],
    ["Lungs: clear.", "Heart: normal size.", "Bones: intact."],
    ["Impression suggests no acute process.", "follow-up in 6 months."],
    [
        "no focal consolidation, effusion or pneumothorax.",
        "cardiac silhouette is normal.",
        "no acute osseous abnormality.",
    ],
    ["AP view of the chest.", "2 views were obtained."],
    ["The nodule measures 4 mm (previously 5 mm).", "This is benign."],
]
