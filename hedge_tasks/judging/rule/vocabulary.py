"""The words that the rules know, after casefolding and plural -> singular. Data only."""

from __future__ import annotations

import re


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that are separated by white space.

    Example:
        >>> sorted(word_set("is are was"))
        ['are', 'is', 'was']
    """
    return frozenset(text.split())


# Every phrase becomes the word on the left, in questions, references and answers alike.
ALIASES: dict[str, tuple[str, ...]] = {
    "xray": (
        "x ray",
        "x ray image",
        "xr",
        "radiograph",
        "radiography",
        "radiographic",
        "plain film",
        "plain xray",
        "film xray",
    ),
    "chest xray": ("cxr",),
    "ct": (
        "cat scan",
        "computed tomography",
        "computerized tomography",
        "computerised tomography",
        "computer tomography",
    ),
    "mri": ("mr", "mr imaging", "magnetic resonance", "magnetic resonance imaging", "magnetic resonance image"),
    "ultrasound": ("ultrasonography", "ultrasonogram", "sonogram", "sonography"),
    "pet": ("positron emission tomography",),
    "mammogram": ("mammography",),
    "t1": ("t1 weighted", "t1w", "t 1"),
    "t2": ("t2 weighted", "t2w", "t 2"),
    "dwi": ("diffusion weighted", "diffusion weighted imaging", "dwi diffusion weighted"),
    "flair": ("fluid attenuated inversion recovery",),
    "pa": ("posterior anterior", "posteroanterior", "postero anterior"),
    "ap": ("anterior posterior", "anteroposterior", "antero posterior"),
    "axial": (
        "transaxial",
        "transverse",
        "transversal",
        "transverse plane",
        "transverse section",
        "transverse view",
        "transverse slice",
    ),
    "left": ("l", "left side", "left sided", "left hand side"),
    "right": ("r", "right side", "right sided", "right hand side"),
    "bilateral": ("bilaterally", "both", "both side", "left and right", "right and left", "either side"),
    "upper": ("top", "superior"),
    "lower": ("bottom", "inferior"),
    "middle": ("mid", "central", "center", "centre"),
    "large": ("big",),
    "enlarged": ("enlargement", "dilated", "dilation", "dilatation"),
    "chest": ("thorax", "thoracic"),
    "abdomen": ("abdominal",),
    "brain": ("cerebral", "cerebrum"),
    "small": ("tiny", "little"),
    "round": ("circular", "rounded", "roundish"),
    "ring": ("ring shaped", "annular"),
    "female": ("woman", "women"),
    "male": ("man", "men"),
    "svc": ("superior vena cava",),
    "ivc": ("inferior vena cava",),
    "csf": ("cerebrospinal fluid", "cerebral spinal fluid"),
    "mca": ("middle cerebral artery",),
    "aca": ("anterior cerebral artery",),
    "pca": ("posterior cerebral artery",),
    "gi": ("gastrointestinal",),
    "fat": ("adipose", "adipose tissue", "fatty tissue", "fat tissue"),
    "intestine": ("bowel",),
    "kidney": ("renal",),
    "liver": ("hepatic",),
    "spleen": ("splenic",),
    "heart": ("cardiac",),
    "lung": ("pulmonary", "respiratory"),
    "pancreas": ("pancreatic",),
    "cerebellum": ("cerebellar",),
    "tumor": ("tumour",),
    "hemorrhage": ("haemorrhage", "bleed", "bleeding"),
    "edema": ("oedema",),
    "gray": ("grey",),
    "red": ("reddish",),
    "pink": ("pinkish",),
    "white": ("whitish",),
    "yellow": ("yellowish",),
    "brown": ("brownish",),
    "color": ("colour", "coloration", "colouration", "color scheme", "colour scheme"),
    "artefact": ("artifact",),
    "area": ("areas",),
    "normal": (
        "unremarkable",
        "healthy",
        "within normal limit",
        "no abnormality",
        "no finding",
        "no abnormal",
        "not abnormal",
        "no significant abnormality",
        "no obvious abnormality",
        "no visible abnormality",
        "no acute abnormality",
    ),
    "abnormal": ("not normal", "unhealthy", "abnormality", "anomaly"),
    "mm": ("millimeter", "millimetre"),
    "cm": ("centimeter", "centimetre"),
    "not": ("non",),
    "without": ("absence of", "lack of", "free of", "free from", "negative for"),
    "metastasis": ("metastase",),
    "vertebra": ("vertebrae",),
}

# What a word of one kind becomes in another: calcified, calcification; atherosclerosis, atherosclerotic.
INFLECTIONS = (
    "ification", "ifications", "ified", "ifying", "ication", "ation", "ition", "otic", "osis", "atic", "asis", "astic",
    "ancy", "ant", "ical", "ous", "ion", "ity", "ic", "is", "al", "ar", "ed", "ing", "e",
)  # fmt: skip
SHORTEST_STEM = 4

NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        re.findall(
            r"\w+",
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty",
        )
    )
} | {"single": "1", "solitary": "1"}
ORDINALS = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth", "5th": "fifth"}

# Plurals that no rule makes.
PLURALS = {
    "metastases": "metastasis", "diverticula": "diverticulum", "bronchi": "bronchus", "emboli": "embolus",
    "thrombi": "thrombus", "calculi": "calculus", "nuclei": "nucleus", "hila": "hilum", "vertebrae": "vertebra",
    "varices": "varix", "apices": "apex", "phalanges": "phalanx", "testes": "testis", "feet": "foot", "teeth": "tooth",
    "children": "child", "leaves": "leaf", "knives": "knife", "mice": "mouse", "geese": "goose", "stenoses": "stenosis",
    "fistulae": "fistula", "ova": "ovum", "septa": "septum", "sulci": "sulcus", "gyri": "gyrus", "foci": "focus",
    "axillae": "axilla", "maxillae": "maxilla", "scapulae": "scapula", "bullae": "bulla", "aortae": "aorta",
    "diagnoses": "diagnosis", "pelves": "pelvis", "villi": "villus", "fibulae": "fibula", "ulcera": "ulcer",
}  # fmt: skip

# What an abbreviation or a word stands for: (name, words of a question that tell so), the usual one first.
SENSES: dict[str, tuple[tuple[str, str], ...]] = {
    "pe": (
        ("pulmonary embolism", "embolism clot artery angiogram angiography vessel vascular"),
        ("pleural effusion", "effusion pleura fluid costophrenic angle"),
        ("pericardial effusion", "pericardium pericardial"),
    ),
    "ms": (
        ("multiple sclerosis", "brain white matter spine demyelination neurologic mri"),
        ("mitral stenosis", "heart valve echo"),
    ),
    "ra": (("rheumatoid arthritis", "joint hand arthritis finger"), ("right atrium", "heart chamber atrium")),
    "la": (("left atrium", "heart chamber atrium"),),
    "ca": (("cancer", "tumor mass lesion"), ("calcium", "calcification density")),
    "lad": (("lymphadenopathy", "node lymph"), ("left anterior descending artery", "coronary artery vessel")),
    "asd": (("atrial septal defect", "heart septum congenital"), ("airspace disease", "lung opacity")),
    "mi": (("myocardial infarction", "heart"), ("mesenteric ischemia", "intestine mesentery")),
    "bright": (
        ("hyperintense", "mri t1 t2 flair dwi signal intensity hyperintense"),
        ("hyperdense", "ct density attenuation hyperdense"),
        ("hyperechoic", "ultrasound echo hyperechoic"),
    ),
    "dark": (
        ("hypointense", "mri t1 t2 flair dwi signal intensity hypointense"),
        ("hypodense", "ct density attenuation hypodense"),
        ("hypoechoic", "ultrasound echo hypoechoic"),
    ),
    "dense": (("hyperdense", "ct density attenuation hyperdense"), ("dense", "")),
}

# At most one member of a family is true of one thing.
FAMILIES: tuple[frozenset[str], ...] = tuple(
    word_set(members)
    for members in (
        "left right bilateral",
        "unilateral bilateral",
        "upper middle lower",
        "anterior posterior",
        "medial lateral",
        "proximal distal",
        "axial coronal sagittal",
        "ct mri xray ultrasound mammogram",
        "t1 t2 flair dwi",
        "pa ap",
        "male female",
        "normal abnormal",
        "small large",
        "smaller larger",
        "increased decreased",
        "enlarged shrunken",
        "acute chronic",
        "benign malignant",
        "cystic solid",
        "hypodense hyperdense isodense",
        "hypointense hyperintense isointense",
        "frontal temporal parietal occipital",
        "round irregular ring",
        "supratentorial infratentorial",
        "supine prone",
    )
)
# Sharing only these does not make two labels alike: 'left thalamus' and 'left kidney'.
QUALIFIERS = word_set(
    "left right bilateral unilateral upper middle lower anterior posterior medial lateral proximal distal small large "
    "acute chronic"
)

NEGATIONS = word_set(
    "no not none 0 nothing nobody nowhere without neither nor never hardly scarcely barely absent lacks lacking"
)
POSITIONS = (word_set("upper middle lower"), word_set("left middle right"))
"""Rows and columns: 'upper-left' is one place."""
MAKING = word_set("make making made render so therefore thus hence")
PREPOSITIONS = word_set("of in with on at from to due near by for within without along behind under above below and")
# Organs that a list of organs may have one too many of.
ORGANS = word_set(
    "adrenal appendix bladder brain breast colon duodenum esophagus eye gallbladder heart intestine kidney liver lung "
    "ovary pancreas prostate rectum spleen stomach testis thyroid trachea uterus"
)
# What a sentence about a finding has besides the finding.
FRAME = word_set(
    "contain contains containing include including free detected observed there detect find found reveal revealed note "
    "noted multiple mix color procedure human cross described considered called"
)
# What a thing has several of at once, and an answer tells completely: 'pink and red' is not 'pink, red and white'.
COLORS = word_set("red pink white yellow orange brown black gray green blue purple")
# What there are many of in one picture: 'the bladder' to 'name an organ in the image' does not contradict 'intestines'.
KINDS = word_set("organ organs structure structures landmark landmarks anatomy anatomic anatomical object")
PICTURED = word_set(
    "visible seen shown captured depicted displayed visualized pictured imaged present image picture photo "
    "photograph scan slice film identify identified view xray ct mri ultrasound"
)
# What else such a question may say without singling one out.
NAMING = word_set(
    "name names point out specific particular list mention tell example captured displayed visualized pictured imaged "
    "provided body human main major various different xray ct mri ultrasound 1 state give"
)
ANATOMY = word_set(
    "abdomen adrenal airway aorta appendix artery bladder bone bowel brain brainstem breast bronchus caecum "
    "carina cartilage cecum cerebellum cerebrum chest clavicle colon cord cortex diaphragm duodenum esophagus eye "
    "femur gallbladder gland head heart hemidiaphragm hip ileum intestine jejunum joint kidney knee larynx liver "
    "lobe lung mandible maxilla medulla mediastinum muscle neck nerve oesophagus orbit ovary pancreas pelvis "
    "pituitary pleura prostate pylorus rectum rib sinus skin skull spine spleen sternum stomach testis thalamus "
    "thyroid tibia tongue tooth trachea ureter urethra uterus valve vein ventricle vertebra vessel"
)
MANY = word_set("several multiple many numerous various")
COMPARISONS = word_set("than compared versus vs unlike opposed relative")
UNITS = word_set("mm cm m inch ml cc kg g mg mcg hu degree percent")
LENGTHS = {"mm": 1.0, "cm": 10.0, "inch": 25.4, "m": 1000.0}
MORE = word_set("greater larger more bigger over above exceeding")
LESS = word_set("less smaller fewer under below")
# 'I have a cough', 'I want to see a scan': a model that plays the one who asks says nothing about the picture.
ASKERS = word_set("have want need like mean meant wish")
ROLES = word_set("human assistant answer a response gpt model user final output")

STOP = word_set(
    # function words
    "a an the of in on at to is are was were be been being it its this that these those there here and or with by "
    "for from as i you we they he she his her their my your our me us do does did have has had can could will would "
    "shall should may might must any some all also just only very more most than then so if into onto within over "
    "under about between which what where when who whom whose why how many much yes no not none please one's s t "
    # words about looking rather than about what is seen
    "image scan picture photo photograph figure film slice view plane section study imaging modality type kind see "
    "seen show shown showing visible present appear appearing look looking located location locate identify identified "
    "evidence suggest suggesting indicate indicating depict depicted demonstrate demonstrated based given patient side "
    "part region area portion quadrant likely using used taken take believe think clearly actually answer following "
    "object structure shape size position place content feature apparent medical examination"
)
AUXILIARY = word_set("is are was were do does did has have had can could will would should may might")

MAX_CHARACTERS = 20_000
LEAD_WORDS = 60
IRREGULAR = word_set("yes does was its lens series always this has us plus gas rights")
