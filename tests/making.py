"""A server that plays every part in the making of a data set, by fixed rules, and a made set's parts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from openai_server import texts_of

CATEGORIES = ["Misinterpretation of #Question#", "Incomplete Information", "Mechanism and Pathway Misattribution"]


def question(number: int, length: int = 100) -> dict[str, Any]:
    """A source row whose true answer has a length of its own."""
    body = f"True answer number {number} says that the drug lowers the pressure "
    return {
        "id": f"q{number}",
        "question": f"Does drug {number} lower the pressure?",
        "answer": body.ljust(length, "x"),
        "knowledge": [f"Passage about drug {number}."],
    }


def written(path: Path, *rows: object) -> Path:
    """A file of a line of JSON a row."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def asked_of(body: dict[str, Any]) -> dict[str, Any]:
    """The object of fields that a request shows."""
    shown = next(text for text in texts_of(body) if text.startswith("{"))
    return json.JSONDecoder().raw_decode(shown)[0]  # another try has a sentence after it


def number_of(fields: dict[str, Any]) -> int:
    return int(fields["question"].split()[2])


def attempt_of(text: str) -> int:
    """How many times an answer of `wrong_answer` was rewritten."""
    return text.count("~")


def wrong_answer(fields: dict[str, Any], rewritten: int) -> str:
    """Of the length that is asked for, with a mark for each rewriting."""
    true = fields["true_answer"].rstrip("x").replace("lowers", "raises")
    body = f"{true} " + "~" * rewritten
    return body.ljust(fields["length"]["least"] + 1, "y")


def fooled_judges(number: int, rewritten: int) -> int:
    """The rule of the scripted judges: how many of three are deceived by an answer.

    Questions by their number modulo 5: 0 is hard at once, 1 medium at once, 2 easy at once, 3 medium after two
    rewritings, 4 never.
    """
    kind = number % 5
    if kind == 4 or (kind == 3 and rewritten < 2):
        return 0
    return {0: 3, 1: 2, 2: 1, 3: 2}[kind]


def play(body: dict[str, Any]) -> str:
    """A reply of whatever part is asked for, by the prompt's words and the model's name."""
    fields = asked_of(body)
    if "answer_1" in fields:
        if "raises" not in fields["answer_1"] + fields["answer_2"]:  # a control
            return json.dumps({"more_accurate": 1 if "True answer" in fields["answer_1"] else 2})
        wrong = 1 if "raises" in fields["answer_1"] else 2
        text = fields[f"answer_{wrong}"]
        judge = int(body["model"].removeprefix("judge-"))
        deceived = judge < fooled_judges(number_of(fields), attempt_of(text))
        return json.dumps({"more_accurate": wrong if deceived else 3 - wrong})
    if "candidate_answer" in fields:
        return json.dumps(
            {"verdict": "contradicted" if "raises" in fields["candidate_answer"] else "supported", "sentence": 1}
        )
    if "failed_checks" in fields:
        return json.dumps({"feedback": f"Too obvious: {fields['failed_checks'][0]}"})
    rewritten = attempt_of(fields["earlier_answer"]) + 1 if "earlier_answer" in fields else 0
    category = CATEGORIES[int(hashlib.sha256(fields["question"].encode()).hexdigest(), 16) % 3]
    reply = {
        "category": category,
        "hallucinated_answer": wrong_answer(fields, rewritten),
        "error": "raises, not lowers",
    }
    return f"Here it is:\n```json\n{json.dumps(reply)}\n```"
