"""The table command of every suite on scripted models whose numbers follow by arithmetic.

    python benchmarks/scripted_tables.py OUT [--medhallu HUB] [--medhallmark JSON_FILES] [--vope coco_writing.json]

Models that are perfect, always say 1 (Yes, (A)), always say 0 (No, (B)), are noisy, verbose, thinking, refusing or cut
off. MedHallu and Med-HallMark run through lmms-eval against a local server, the latter on blank pictures. Of SHALE the
closed questions of a drawn set and of VOPE its items come as run files like those that a task writes. Run files,
and what `hedge paper medhallu|medhallmark|shale|vope` says of them as JSON and as text, are left under OUT; the leading
numbers are printed. Suites whose data is not named are left out, but for SHALE, whose set is drawn.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from medical_models import medhallmark, medhallu

from hedge_tasks.cli import main as hedge
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.judging.base import Case
from hedge_tasks.judging.config import verdict_record
from hedge_tasks.making.shale.construction import ShaleMaking
from hedge_tasks.making.shale.drawn import DrawnGenerator
from hedge_tasks.making.shale.pictures import PictureMaking
from hedge_tasks.replies import spoken_text
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.suites.shale.building import scene_groups
from hedge_tasks.suites.shale.items import DISCRIMINATIVE, ShaleItem, options_of
from hedge_tasks.suites.shale.judge import ShaleJudge
from hedge_tasks.suites.vope.building import read_items
from hedge_tasks.suites.vope.judge import VopeJudge
from hedge_tasks.suites.vope.objects import recheck_records, story_scores, story_verdict
from hedge_tasks.suites.vope.rechecks import story_objects
from hedge_tasks.suites.vope.vocabulary import coco, object_phrase

Reply = Callable[[str, str, random.Random], Answer]
"""(right answer, wrong answer, chance) -> what the model writes."""

MODELS: dict[str, Reply] = {
    "perfect": lambda right, wrong, chance: Answer(right),
    "noisy": lambda right, wrong, chance: Answer(wrong if chance.random() < 0.2 else right),
    "verbose": lambda right, wrong, chance: Answer(f"Let me look. The answer is {right}. It is not {wrong}."),
    "thinking": lambda right, wrong, chance: Answer(f"<think>Is it {wrong}? No.</think>{right}"),
    "refusing": lambda right, wrong, chance: Answer("I'm sorry, I cannot see the image."),
    "cut": lambda right, wrong, chance: Answer("<think>It might be", finish="length"),
}
ALWAYS = {"always1": ("Yes", "(A)"), "always0": ("No", "(B)")}
NAMES = ("perfect", "always1", "always0", *(name for name in MODELS if name != "perfect"))

_PAPER = "LLaVA1.5-7b"
"""The model of Med-HallMark's and VOPE's papers that stands beside ours; of the other papers it is their mean."""


def closed_run(items: Sequence[ShaleItem], name: str) -> Run:
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


def _reply(item: ShaleItem, name: str, chance: random.Random) -> Answer:
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
        for word, _ in story_objects(told):
            right = "yes" if coco().category(word) in item.objects else "no"
            wrong = {"yes": "no", "no": "yes"}[right]
            said = Answer(ALWAYS[name][0]) if name in ALWAYS else MODELS[name](right, wrong, chance)
            said = Answer(spoken_text(said.text), finish=said.finish)
            rechecks.append(
                AnswerSet(f"{item.id}/{word}", said, (said,), question=object_phrase(word)[0], reference=right)
            )
        told = told.with_follow_ups(rechecks)
        records = recheck_records(told, judge)
        verdict = story_verdict(records, judge.name, judge.version)
        sets.append(told.with_label(verdict.label))
        verdicts[item.id] = {
            **verdict.to_dict(),
            **{"judge": "vope 3", "objects": [entry.to_dict() for entry in records], "story": story_scores(told)},
        }
    return Run("hedge_vope_official_writing", name, tuple(sets), verdicts, {}, "2026")


# --- what the commands say of them ------------------------------------------------------------------------------------

Cells = dict[str, tuple[float | None, float | None]]
"""By column: a number and its standard error or, with an interval, half of that."""


def said(suite: str, out: Path, *more: str) -> Any:
    """What `hedge paper SUITE OUT/SUITE` says, as JSON; kept beside the runs, as text, too."""
    folders = [str(folder) for folder in sorted((out / suite).iterdir())] if suite == "shale" else [str(out / suite)]
    for ending, options in (("txt", []), ("json", ["--json"])):
        with (out / f"{suite}.{ending}").open("w", encoding="utf-8") as file, redirect_stdout(file):
            hedge(["paper", suite, *folders, *more, *options])
    return json.loads((out / f"{suite}.json").read_text("utf-8"))


def of_medhallu(facts: Mapping[str, Any]) -> dict[str, Cells]:
    rows = {}
    for run in facts["runs"]:
        given = [name for name in ("knowledge", "not_sure") if run[name]]
        columns = ("f1", "precision", "recall", "accuracy", "f1_hard", "response_rate", "f1_unread_wrong")
        rows[" + ".join([run["model"], *given])] = _cells(run["cells"], columns)
    for p in facts["published"]:
        if "(mean)" in p["model"]:
            rows[f"paper: {p['model']}, {p['setting']}"] = {p["measure"]: (p["value"], None)}
    return rows


def of_medhallmark(facts: Mapping[str, Any]) -> dict[str, Cells]:
    rows: dict[str, Cells] = {}
    columns = {"vqa": ("medihall", "accuracy", "accuracy_unread_wrong", "rouge1_f1", "meteor")}
    columns["irg"] = ("medihall", "accuracy", "wrong_sentences")
    for run in facts["runs"]:
        found = _cells(run["cells"], columns.get(run["setting"], ()))
        rows.setdefault(run["model"], {}).update({f"{run['setting']} {name}": cell for name, cell in found.items()})
    for effect in facts["prefix_effects"]:
        if effect["measure"] == "medihall":
            found = effect["comparison"]
            rows[effect["model"]]["prefix, medihall"] = found["difference"], found["stderr"]
    for p in facts["published"]:
        name = f"{p['setting']} {p['measure']}"
        if p["model"] == _PAPER and name in rows["perfect"]:
            rows.setdefault(f"paper: {_PAPER}", {}).setdefault(name, (p["value"], None))
    return rows


def of_shale(facts: Mapping[str, Any]) -> dict[str, Cells]:
    rows: dict[str, Cells] = {}
    for cell in facts["cells"]:
        if cell["table"] == 2 and cell["column"] in ("clean", "crp", "syn", "pfx", "rr"):
            half = None if cell["low"] is None else (cell["high"] - cell["low"]) / 2
            rows.setdefault(cell["model"], {})[cell["column"]] = cell["value"], half
            rows.setdefault(f"paper: {cell['published_model']}", {})[cell["column"]] = cell["published"], None
    return rows


def of_vope(facts: Sequence[Mapping[str, Any]]) -> dict[str, Cells]:
    theirs = facts[0]["published"]["shares"]
    return {
        **{
            run["model"]: {**_cells(run["shares"], run["shares"]), "unread": (run["unread"] / run["objects"], None)}
            for run in facts
        },
        f"paper: {facts[0]['published']['model']}": {name: (value, None) for name, value in theirs.items()},
    }


def _cells(found: Mapping[str, Any], names: Iterable[str]) -> Cells:
    return {name: (found[name]["value"], found[name]["stderr"]) for name in names}


def markdown(suite: str, rows: Mapping[str, Cells]) -> str:
    """One line a model, the eight in their order."""
    columns = list(dict.fromkeys(name for cells in rows.values() for name in cells))
    lines = [f"### {suite}", "", " | ".join(["| model", *columns]) + " |", "|---" * (1 + len(columns)) + "|"]
    place = {name: number for number, name in enumerate(NAMES)}
    for model in sorted(rows, key=lambda name: (place.get(name.split(" ")[0], len(place)), name)):
        cells = [_shown(*rows[model][name]) if name in rows[model] else "" for name in columns]
        lines.append(" | ".join([f"| {model}", *cells]) + " |")
    return "\n".join(lines)


def _shown(value: float | None, about: float | None) -> str:
    if value is None:
        return "undefined"
    return f"{value:.3f}" + (f" ± {about:.3f}" if about else "")


def closed_runs(out: Path, per_aspect: int) -> None:
    making = ShaleMaking(PictureMaking(DrawnGenerator(32), ()), per_aspect=per_aspect, scenarios=["crp", "syn", "pfx"])
    with tempfile.TemporaryDirectory() as folder:
        made = making.run(Path(folder))
    for model in NAMES:
        save_run(closed_run(made.items, model), out / model)


def story_runs(items: Path, out: Path) -> None:
    for model in NAMES:
        save_run(story_run(items, model), out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--medhallu", type=Path, metavar="HUB", help="with UTAustin-AIHealth__MedHallu/pqa_labeled")
    parser.add_argument("--medhallmark", type=Path, metavar="JSON_FILES", help="the released files")
    parser.add_argument("--vope", type=Path, metavar="ITEMS", help="VOPE's coco_writing.json")
    parser.add_argument("--per-aspect", type=int, default=8, help="of SHALE's set (default: 8)")
    given = parser.parse_args()
    if given.medhallu:
        medhallu(given.medhallu.resolve(), given.out / "medhallu")
        print(markdown("MedHallu", of_medhallu(said("medhallu", given.out))), end="\n\n")
    if given.medhallmark:
        medhallmark(given.medhallmark, given.out / "medhallmark")
        print(markdown("Med-HallMark", of_medhallmark(said("medhallmark", given.out))), end="\n\n")
    closed_runs(given.out / "shale", given.per_aspect)
    print(markdown("SHALE, Table 2", of_shale(said("shale", given.out))), end="\n\n")
    if given.vope:
        story_runs(given.vope, given.out / "vope")
        print(markdown("VOPE", of_vope(said("vope", given.out, "--published", "LLaVA1.5"))))
