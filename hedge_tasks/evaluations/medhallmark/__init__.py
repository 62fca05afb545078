"""Med-HallMark (ICLR 2025 submission): medical hallucinations by clinical weight.

    released    the released JSON files: questions, references, human labels, and what is odd about them
    building    a local data set out of them and of the images, which a user has under their own licences
    reports     the judge of report tasks: one verdict a sentence
    mediscore   MediHall Score and the distribution of categories
    wording     BLEU, ROUGE, METEOR and BERTScore through the field's own libraries
    task        the lmms-eval tasks

Importing this package loads none of them.
"""
