"""Items of SHALE: an image and an instruction, in one of eleven scenarios (paper sections 3.1 and 3.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hedge_tasks.errors import DataError

DATASET = "BeiiiY/SHALE"
"""Name of the data set in task YAMLs: that of its repository on GitHub. It is not on the hub."""

CLEAN = "clean"
IMAGE_SCENARIOS = ("sty", "crp", "adv", "txt")
INSTRUCTION_SCENARIOS = ("syn", "pfx")
COMBINED_SCENARIOS = tuple(f"{name}_p" for name in IMAGE_SCENARIOS)
NOISY_SCENARIOS = (*IMAGE_SCENARIOS, *INSTRUCTION_SCENARIOS, *COMBINED_SCENARIOS)
SCENARIOS = (CLEAN, *NOISY_SCENARIOS)
"""In the order of Table 2. A name that ends in `_p` is that scenario with a misleading prefix (the paper's -P)."""

SYN_RIGHT, PFX_TRUE, PFX_NEUTRAL = "syn_right", "pfx_true", "pfx_neutral"
CONTROLS: Mapping[str, str] = {
    SYN_RIGHT: "syn",
    PFX_TRUE: "pfx",
    PFX_NEUTRAL: "pfx",
    **{f"{name}_true": name for name in COMBINED_SCENARIOS},
}
"""Ours, with the scenario that each stands beside: questions with a true answer where SYN replaces wrong ones, and
prefixes that are true or say nothing where PFX lies. Without them "No", or the contrary of the prefix, is always right.
"""
ALL_SCENARIOS = (*SCENARIOS, *CONTROLS)


def controls_of(scenario: str) -> tuple[str, ...]:
    """Return the controls of a scenario."""
    return tuple(name for name, controlled in CONTROLS.items() if controlled == scenario)


DISCRIMINATIVE = ("ynq", "mcq")
GENERATIVE = ("ffq", "ic")
TASKS = (*DISCRIMINATIVE, *GENERATIVE)

PERCEPTION = (
    *("type", "existence", "color", "shape", "count", "orientation", "posture", "expression", "scene_text"),
    *("spatial_relation", "size_relation", "interaction_relation"),
)
KNOWLEDGE = ("sports", "politics", "entertainment", "religion", "geography", "culture")
ASPECTS = (*PERCEPTION, *KNOWLEDGE)
"""In the order of Tables 6 and 7."""

_RELEASED_TASKS = {"ynq": "ynq", "mcq": "mcq", "openvqa": "ffq", "caption": "ic"}
"""Parts of the names of tasks in the released files, as SHALE's code looks for them, and our name of each."""

_OPTION = re.compile(r"\(([A-Z])\)\s*(.*?)\s*(?=\([A-Z]\)|$)", re.DOTALL)


@dataclass(frozen=True)
class ShaleItem:
    """One question about one image.

    Attributes:
        id: within its scenario; perturbed items have the id of their clean one.
        scenario: one of `ALL_SCENARIOS`.
        task: one of `TASKS`.
        kind: "faithfulness" or "factuality".
        aspect: one of `ASPECTS`, or what the data set says where it is none of them.
        entity: kind of thing that is asked about.
        image: name of the image file.
        question: the instruction, with the options in it.
        answer: "Yes" or "No", "(B) hellish", or free text.
        description: what the image shows, in words; empty where the data set does not tell.
        facts: what is known beyond the image; likewise.
        distractor: a wrong answer.
    """

    id: str
    scenario: str
    task: str
    kind: str
    aspect: str
    entity: str
    image: str
    question: str
    answer: str
    description: str = ""
    facts: str = ""
    distractor: str = ""


def options_of(question: str) -> dict[str, str]:
    """Return the options of a multiple-choice question by letter, empty where it has none.

    Example:
        >>> options_of("Which color? (A) red (B) dark blue")
        {'A': 'red', 'B': 'dark blue'}
    """
    matches = _OPTION.findall(question)
    options = {letter: " ".join(text.split()).rstrip(".;,") for letter, text in matches}
    # A lone "(A)" is part of a sentence, and a letter that is given twice means nothing.
    return options if len(matches) == len(options) >= 2 else {}


def read_item(row: Mapping[str, object], scenario: str, where: str) -> ShaleItem:
    """An item of a released query file, in the spelling of its README (`ground_truth`) or of its code (`Ground Truth`).

    Raises:
        DataError: a field is missing or makes no sense; names `where` and the field.
    """
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: expected an object, got {type(row).__name__}")
    fields = {re.sub(r"\W+", "_", str(key).strip().lower()): value for key, value in row.items()}
    task = _task(_text(fields, "task", where), where)
    question = _text(fields, "instruction", where)
    answer = _answer(fields, task, question, where)
    return ShaleItem(
        id=_text(fields, "clean_id", where, needed=False) or _text(fields, "id", where),
        scenario=scenario,
        task=task,
        kind=_text(fields, "hallucination_type", where, needed=False).lower(),
        aspect=_aspect(_text(fields, "evaluation_dimension", where)),
        entity=_text(fields, "entity_type", where, needed=False),
        image=_image(fields, where),
        question=question,
        answer=answer,
        description=_text(fields, "image_prompt", where, needed=False),
        facts=_text(fields, "facts", where, needed=False),
        distractor=_text(fields, "distractor", where, needed=False) or wrong_answer(task, question, answer),
    )


def wrong_answer(task: str, question: str, answer: str) -> str:
    """Return a wrong answer that the question itself offers; empty for open questions."""
    if task == "ynq":
        return "No" if answer == "Yes" else "Yes"
    wrong = [text for letter, text in options_of(question).items() if not answer.startswith(f"({letter})")]
    return wrong[0] if wrong else ""


def _text(fields: Mapping[str, object], key: str, where: str, *, needed: bool = True) -> str:
    value = fields.get(key)
    if isinstance(value, list):  # facts come as a list in places
        value = " ".join(str(part) for part in value)
    if value is None or isinstance(value, (dict, bool)):
        value = ""
    text = str(value).strip()
    if needed and not text:
        raise DataError(f"{where}: {key!r} is missing")
    return text


def _task(text: str, where: str) -> str:
    for part, task in _RELEASED_TASKS.items():
        if part in text.lower():
            return task
    raise DataError(f"{where}: unknown task {text!r}; it should contain YNQ, MCQ, OpenVQA or Caption")


def _aspect(text: str) -> str:
    name = re.sub(r"\W+", "_", text.strip().lower())
    return "scene_text" if name == "ocr" else name  # the one aspect that Table 6 calls something else


def _image(fields: Mapping[str, object], where: str) -> str:
    value = fields.get("images", fields.get("image"))
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        raise DataError(f"{where}: expected one image, got {value!r}")
    return names[0].replace("\\", "/").removeprefix("./")


def _answer(fields: Mapping[str, object], task: str, question: str, where: str) -> str:
    truth = _text(fields, "ground_truth", where, needed=task != "mcq")
    if task == "ynq":
        word = truth.strip(" .").lower()
        if word not in ("yes", "no"):
            raise DataError(f"{where}: the answer to a yes-or-no question is {truth!r}")
        return word.capitalize()
    return _option(fields, truth, question, where) if task == "mcq" else truth


def _option(fields: Mapping[str, object], truth: str, question: str, where: str) -> str:
    options = options_of(question)
    letter = _text(fields, "ground_truth_option", where, needed=False).strip("() .").upper()
    if not letter:
        fitting = [key for key, text in options.items() if truth.lower() in (text.lower(), f"({key})".lower())]
        letter = fitting[0] if len(fitting) == 1 else ""
    if letter not in options:
        raise DataError(f"{where}: the right option {letter or truth!r} is none of the question's ({question[:80]!r})")
    return f"({letter}) {options[letter]}"
