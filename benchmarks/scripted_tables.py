"""`hedge shale` and `hedge vope` on scripted models whose numbers follow by arithmetic.

    python benchmarks/scripted_tables.py OUT [--items coco_writing.json] [--per-aspect 8]
    hedge shale OUT/shale/perfect; hedge vope OUT/vope/perfect

Run files as a task writes them, of the closed questions of a drawn SHALE set and of VOPE's items, with replies of
models that are perfect, say always the same, are wrong in a fifth of the cases, verbose, thinking, refusing or cut off.
No model is loaded, and no picture is drawn but the set's.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication.base import Case
from hedge_tasks.adjudication.config import verdict_record
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.evaluations.shale.building import scene_groups
from hedge_tasks.evaluations.shale.items import DISCRIMINATIVE, Item, options_of
from hedge_tasks.evaluations.shale.judge import ShaleJudge
from hedge_tasks.evaluations.shale.making.drawn import DrawnPainter
from hedge_tasks.evaluations.shale.making.making import ShaleMaking
from hedge_tasks.evaluations.vope.building import read_items
from hedge_tasks.evaluations.vope.judge import VopeJudge
from hedge_tasks.evaluations.vope.objects import answered_records, story_scores, story_verdict
from hedge_tasks.evaluations.vope.rechecks import story_objects
from hedge_tasks.evaluations.vope.vocabulary import coco, object_phrase
from hedge_tasks.replies import spoken_text
from hedge_tasks.runs.run_files import Run, save_run

Reply = Callable[[str, str, random.Random], Answer]
"""(right answer, wrong answer, chance) -> what the model writes."""

MODELS: dict[str, Reply] = {
    "perfect": lambda right, wrong, chance: Answer(right),
    "wrong": lambda right, wrong, chance: Answer(wrong),
    "noisy": lambda right, wrong, chance: Answer(wrong if chance.random() < 0.2 else right),
    "verbose": lambda right, wrong, chance: Answer(f"Let me look. The answer is {right}. It is not {wrong}."),
    "thinking": lambda right, wrong, chance: Answer(f"<think>Is it {wrong}? No.</think>{right}"),
    "refusing": lambda right, wrong, chance: Answer("I'm sorry, I cannot see the image."),
    "cut": lambda right, wrong, chance: Answer("<think>It might be", finish="length"),
}
ALWAYS = {"always yes, (A)": ("Yes", "(A)"), "always no, (B)": ("No", "(B)")}


def closed_run(items: Sequence[Item], name: str) -> Run:
    chance, judge, groups = random.Random(name), ShaleJudge(), scene_groups(items)
    asked = [item for item in items if item.task in DISCRIMINATIVE]
    answers = [_reply(item, name, chance) for item in asked]
    ids = [f"{item.id}-{item.scenario}" for item in asked]
    cases = [
        Case(id, item.question, item.answer, answer.text, cut=answer.finish == "length")
        for id, item, answer in zip(ids, asked, answers, strict=True)
    ]
    sets, verdicts, columns = [], {}, {}
    for case, item, answer, verdict in zip(cases, asked, answers, judge.judge(cases), strict=True):
        more: dict[str, Any] = {"group": groups[item.id], "question_type": item.scenario, "label": verdict.label}
        sets.append(AnswerSet(case.id, answer, (answer,), question=item.question, reference=item.answer, **more))
        columns[case.id] = {"task": item.task, "scenario": item.scenario, "aspect": item.aspect, "pair": item.id}
        verdicts[case.id] = verdict_record(case, verdict)
    settings = {"documents": {"judge": judge.settings()}}
    return Run("hedge_shale_closed", name, tuple(sets), verdicts, settings, "2026", columns=columns)


def _reply(item: Item, name: str, chance: random.Random) -> Answer:
    if name in ALWAYS:
        return Answer(ALWAYS[name][item.task == "mcq"])
    right = item.answer if item.task == "ynq" else item.answer[:3]
    letters = [f"({letter})" for letter in options_of(item.question) if f"({letter})" != right]
    wrong = ("No" if right == "Yes" else "Yes") if item.task == "ynq" else chance.choice(letters)
    return MODELS[name](right, wrong, chance)


def story_run(items: Path, name: str) -> Run:
    """Stories of all that is there and of a zebra and a kite, rechecked."""
    chance, judge = random.Random(name), VopeJudge()
    sets, verdicts = [], {}
    for item in read_items(items):
        text = f"There is a {' and a '.join(item.objects)}." if item.objects else "Nothing."
        told = AnswerSet(
            item.id, Answer(f"{text} A zebra dreams of a kite."), (Answer(text),), reference=", ".join(item.objects)
        )
        rechecks = []
        for word, _ in story_objects(told, "words"):
            right = "yes" if coco().category(word) in item.objects else "no"
            wrong = {"yes": "no", "no": "yes"}[right]
            said = Answer(ALWAYS[name][0]) if name in ALWAYS else MODELS[name](right, wrong, chance)
            said = Answer(spoken_text(said.text), finish=said.finish)
            rechecks.append(
                AnswerSet(f"{item.id}/{word}", said, (said,), question=object_phrase(word)[0], reference=right)
            )
        told = told.with_follow_ups(rechecks)
        records = answered_records(told, judge)
        verdict = story_verdict(records, judge.name, judge.version)
        sets.append(told.with_label(verdict.label))
        verdicts[item.id] = {
            **verdict.to_dict(),
            **{"judge": "vope 3", "objects": [entry.to_dict() for entry in records], "story": story_scores(told)},
        }
    return Run("hedge_vope_official_writing", name, tuple(sets), verdicts, {}, "2026")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--items", type=Path, help="VOPE's coco_writing.json")
    parser.add_argument("--per-aspect", type=int, default=8)
    given = parser.parse_args()
    making = ShaleMaking(DrawnPainter(32), per_aspect=given.per_aspect, scenarios=["crp", "syn", "pfx"])
    with tempfile.TemporaryDirectory() as folder:
        made = making.run(Path(folder))
    for model in (*MODELS, *ALWAYS):
        folder = "".join(letter if letter.isalnum() else "-" for letter in model)
        save_run(closed_run(made.items, model), given.out / "shale" / folder)
        if given.items:
            save_run(story_run(given.items, model), given.out / "vope" / folder)
