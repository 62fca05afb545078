"""VOPE: hallucination where a model may imagine (arXiv 2511.13420).

    vocabulary  COCO's 80 categories with CHAIR's synonyms, as lmms-eval ships them, and the recheck's object phrase
    extraction  the COCO objects that a text mentions
    replies     from the reply to a recheck to yes or no, word by word or as the reference code reads it
    judge       from reading and presence to the four sets of the paper's section 3.2
    documents   which images are shown, and what is in them
    building    a local data set out of the official JSON file and COCO images
    objects     what is known of every object of a story: sets, shares of samples that mention it, relevance
    relevance   how well absent objects fit the scene (section 3.4), and the weighted kappa of two judges
    metrics     the rows of the paper's tables, with intervals by image
    task        the lmms-eval task

Importing this package loads none of them.
"""
