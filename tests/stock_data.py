"""Small stand-ins for the data sets of lmms-eval's own tasks, made of the drawings of hedge_demo."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from conftest import REPOSITORY
from datasets import Dataset, DatasetDict, Features, Image, List, Value

LETTERS = "ABCDE"

_S, _I, _N = Value("string"), Image(), Value("int64")
_OPTIONS = {
    "presence": ["yes", "no"],
    "shape": ["round", "ring-shaped", "irregular", "oval"],
    "size": ["small", "large", "medium"],
    "count": ["0", "1", "2", "3"],
    "location": ["left", "right", "upper left", "lower right"],
    "modality": ["X-ray", "CT", "MRI", "ultrasound"],
}

Row = dict[str, Any]


@cache
def load(path: str, name: str | None) -> DatasetDict | None:
    """The stand-in of a data set on the hub; None where there is none."""
    if (path, name) in _TABLES:
        return _TABLES[path, name]()
    return _TABLES[path, None]() if (path, None) in _TABLES else None


@cache
def _drawings() -> tuple[list[Row], list[Row]]:
    """Questions to be answered yes or no, and others, with their options in some order."""
    [file] = (REPOSITORY / "tasks" / "hedge_demo" / "data").glob("*.parquet")
    rows = list(Dataset.from_parquet(str(file)).take(120))
    closed = [row for row in rows if row["answer"] in ("yes", "no")]
    others = [row for row in rows if row["answer"] not in ("yes", "no")]
    for number, row in enumerate(others):
        options = list(dict.fromkeys([*_OPTIONS[row["question_type"]][:4], row["answer"]]))[-4:]
        random.Random(number).shuffle(options)
        row["options"], row["right"] = options, options.index(row["answer"])
    return closed[:12], others[:14]


def _split(name: str, rows: list[Row], **features: Any) -> DatasetDict:
    return DatasetDict({name: Dataset.from_list(rows, features=Features(features))})


def _mmmu() -> DatasetDict:
    rows = []
    for i, row in enumerate(_drawings()[1]):
        two, free = i % 4 == 3, i % 6 == 5
        pictures = {f"image_{k}": None for k in range(1, 8)} | {"image_1": row["image"]}
        pictures |= {"image_2": _drawings()[1][i - 1]["image"]} if two else {}
        asked = ("<image 1> and <image 2>: " if two else "<image 1> ") + row["question"]
        options = "[]" if free else repr(row["options"])
        answer = row["answer"] if free else LETTERS[row["right"]]
        kind = "open" if free else "multiple-choice"
        about = {"id": f"validation_{('Biology', 'Art')[i % 2]}_{i}", "subfield": "x", "question_type": kind}
        rows.append({**about, "question": asked, "options": options, "answer": answer, **pictures})
    texts = dict.fromkeys(("id", "question", "options", "answer", "question_type", "subfield"), _S)
    made = _split("validation", rows, **texts, **{f"image_{k}": _I for k in range(1, 8)})
    return DatasetDict({**made, "test": made["validation"]})


def _pope() -> DatasetDict:
    rows = [
        {"id": str(i), "question_id": str(i), "category": ("random", "popular")[i % 2], "image_source": "x"}
        | {key: row[key] for key in ("question", "answer", "image")}
        for i, row in enumerate(_drawings()[0])
    ]
    texts = dict.fromkeys(("id", "question_id", "question", "answer", "image_source", "category"), _S)
    return _split("test", rows, **texts, image=_I)


def _mme() -> DatasetDict:
    rows = []
    for i, row in enumerate(_drawings()[0]):
        category = ("count", "code_reasoning")[i // 2 % 2]  # two questions share an id
        question = row["question"] + " Please answer yes or no."
        about = {"question_id": f"{category}/{i // 2}.png", "category": category, "question": question}
        rows.append({**about, "answer": row["answer"].capitalize(), "image": row["image"]})
    return _split("test", rows, **dict.fromkeys(("question_id", "question", "answer", "category"), _S), image=_I)


def _scienceqa() -> DatasetDict:
    empty = dict.fromkeys(("hint", "task", "grade", "topic", "category", "skill", "lecture", "solution"), "")
    rows = [
        # As in the real one, not every question has a picture.
        {**empty, "image": None if i == 3 else row["image"], "question": row["question"], "choices": row["options"]}
        | {"answer": row["right"], "subject": ("natural science", "social science")[i % 2]}
        for i, row in enumerate(_drawings()[1])
    ]
    texts = dict.fromkeys([*empty, "question", "subject"], _S)
    return _split("test", rows, **texts, image=_I, choices=List(_S), answer=Value("int8"))


def _annotated() -> DatasetDict:
    """Ten annotators, who do not always agree: textvqa grades by how many gave an answer."""
    rows = [
        {"question_id": i, "image_id": str(i), "question": row["question"], "image": row["image"], "ocr_tokens": ["a"]}
        | {"answer": row["answer"], "answers": [row["answer"]] * (10 if i % 3 else 3) + ["other"] * (0 if i % 3 else 7)}
        for i, row in enumerate(_drawings()[1])
    ]
    texts = dict.fromkeys(("image_id", "question", "answer"), _S)
    return _split("validation", rows, **texts, image=_I, question_id=_N, answers=List(_S), ocr_tokens=List(_S))


def _ai2d() -> DatasetDict:
    rows = [
        # Other words than in other stand-ins: what asks and shows the same shares its answers in the store.
        {"question": f"Diagram: {row['question']}", "options": row["options"], "image": row["image"]}
        | {"answer": str(row["right"])}
        for row in _drawings()[1]
    ]
    return _split("test", rows, question=_S, options=List(_S), answer=_S, image=_I)


def _gsm8k() -> DatasetDict:
    numbers = random.Random(0)
    pairs = [(numbers.randint(2, 9), numbers.randint(10, 90)) for _ in range(20)]
    rows = [
        {"question": f"Tom has {a} apples and gets {b} more. How many?", "answer": f"{a} + {b}\n#### {a + b}"}
        for a, b in pairs
    ]
    made = _split("test", rows[8:], question=_S, answer=_S)
    return DatasetDict({**made, **_split("train", rows[:8], question=_S, answer=_S)})


def _docvqa() -> DatasetDict:
    rows = [
        {"questionId": str(i), "question": row["question"], "answers": [row["answer"]], "image": row["image"]}
        for i, row in enumerate(_drawings()[1])
    ]
    return _split("validation", rows, questionId=_S, question=_S, answers=List(_S), image=_I)


def _chartqa() -> DatasetDict:
    rows = [
        {"type": ("human_test", "augmented_test")[i % 2], "question": row["question"], "answer": row["answer"]}
        | {"image": row["image"]}
        for i, row in enumerate(_drawings()[1])
    ]
    return _split("test", rows, type=_S, question=_S, answer=_S, image=_I)


def _countbench() -> DatasetDict:
    rows = [{"question": "How many?", "number": i % 4, "image": row["image"]} for i, row in enumerate(_drawings()[1])]
    return _split("test", rows, question=_S, number=_N, image=_I)


def _vocalsound() -> DatasetDict:
    sounds = ("Laughter", "Cough", "Sigh")
    rows = [
        # Stands for a decoded sound: what a task shows that is no picture.
        {"audio": {"array": [0.1 * i, 0.2], "sampling_rate": 8000}, "answer": sounds[i % 3]}
        | {"age_group": 1, "spk_id": f"{'fm'[i % 2]}{i}"}
        for i in range(12)
    ]
    sound = {"array": List(Value("float32")), "sampling_rate": _N}
    return _split("test", rows, audio=sound, answer=_S, age_group=_N, spk_id=_S)


_TABLES = {
    ("lmms-lab-encoder/MMMU", None): _mmmu,
    ("lmms-lab-encoder/POPE", None): _pope,
    ("lmms-lab-encoder/MME", None): _mme,
    ("lmms-lab-encoder/ScienceQA", "ScienceQA-IMG"): _scienceqa,
    ("lmms-lab-encoder/textvqa", None): _annotated,
    ("lmms-lab-encoder/ai2d", None): _ai2d,
    ("gsm8k", "main"): _gsm8k,
    ("openai/gsm8k", "main"): _gsm8k,
    ("lmms-lab-encoder/DocVQA", "DocVQA"): _docvqa,
    ("lmms-lab-encoder/ChartQA", None): _chartqa,
    ("vikhyatk/CountBenchQA", None): _countbench,
    ("lmms-lab-audio/vocalsound", None): _vocalsound,
}
