"""`hedge detectors vope-attention`: attention to the image while an object is said; needs the run and its model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import Parser, add_out, as_json, command, show
from hedge_tasks.numbers import FOUR_DIGITS, Cell, Column, Table

if TYPE_CHECKING:
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.suites.vope.attention import AttendedObject, AttentionNumbers, Token

_SHOWN = 12
_CLAIMS = {
    "imagined": "imagined, not described",
    "hallucinated": "hallucinated, all objects",
    "hallucinated_described": "hallucinated, described objects",
}


def add(commands: Parser) -> None:
    text = "attention to the image while an object is said (VOPE section 4.6, experimental); needs model and data"
    parser = command(commands, "vope-attention", _run, text)
    parser.add_argument("run", type=Path, metavar="RUN", help="output folder of lmms-eval, or a run file")
    parser.add_argument("--task", metavar="TASK", help="where the folder has several runs")
    parser.add_argument("--model", default="hedge_hf", metavar="NAME", help="hedge_hf (default) or hedge_tiny")
    parser.add_argument("--model_args", default="", metavar="ARGS", help="as for lmms-eval: pretrained=...")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N stories")
    add_out(parser, "a line for each object (JSON lines)")


def _run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError, DataError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.models import adapter_class
    from hedge_tasks.runs.run_files import load_run
    from hedge_tasks.suites.vope.attention import attended, kinds_of, numbers_of

    run = load_run(arguments.run, arguments.task)
    if not any("objects" in verdict for verdict in run.verdicts.values()):
        raise DataError(f"{run.title} is no run of VOPE")
    kind = adapter_class(arguments.model)
    if not hasattr(kind, "image_attention"):
        raise ConfigError(f"--model: {arguments.model} does not tell its attention; hedge_hf does")
    sets = run.answer_sets[: arguments.limit]
    conversations = dict(_conversations(run, {a.id for a in sets}))
    if missing := [a.id for a in sets if a.id not in conversations]:
        raise DataError(f"{run.task}: the data set has no document {', '.join(missing[:5])}; is it the one of the run?")
    model = kind.create_from_arg_string(arguments.model_args)

    def tokens_of(id: str, text: str) -> Sequence[Token]:
        tokens: Sequence[Token] = model.image_attention(conversations[id](), text)
        return tokens

    stories = [(a.id, a.group or a.id, a.baseline.text, kinds_of(run.verdicts.get(a.id) or {})) for a in sets]
    objects = attended(stories, tokens_of)
    if arguments.out:
        write_whole(arguments.out, "".join(json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in objects))
    numbers = numbers_of(objects)
    facts = {"run": run.title, "model": arguments.model, "objects": len(objects), **as_json(numbers)}
    show(arguments, facts, f"{run.title}: {len(objects)} objects", *_tables(objects, numbers))
    return 0


def _conversations(run: Run, ids: set[str]) -> Iterator[tuple[str, Any]]:
    """(id, function that gives the conversation) of the stories, with the pictures of the task's data set."""
    from hedge_tasks.data.pictures import at_most, to_rgb8
    from hedge_tasks.lmms.manifests import load_task
    from hedge_tasks.perturb import Wording
    from hedge_tasks.sampling.prompts import Prompt

    prompt = Prompt(**{key: run.settings["prompt"][key] for key in ("name", "user", "system")})
    side = (run.settings.get("sampling") or {}).get("max_image_side")
    task = load_task(run.task)
    [documents] = task.dataset.values()
    questions = {answers.id: answers.question or "" for answers in run.answer_sets}

    def conversation(row: int, id: str) -> list[dict[str, Any]]:
        document: Mapping[str, Any] = documents[row]
        images = [at_most(to_rgb8(image), side) for image in task.doc_to_visual(document)]
        return prompt.messages(Wording(questions[id]), images)

    for row, id in enumerate(map(str, documents["id"])):
        if id in ids:
            yield id, lambda row=row, id=id: conversation(row, id)


def _tables(objects: Sequence[AttendedObject], numbers: AttentionNumbers) -> list[Table]:
    mean = Column("mean", format=FOUR_DIGITS)
    stderr = Column("stderr", "s.e.", format=FOUR_DIGITS, show="stderr", of="mean")
    tables = [
        Table(
            [Column("kind"), Column("objects", show="n", of="mean"), mean, stderr],
            [{"kind": name.replace("_", " "), "mean": number} for name, number in numbers.means.items()],
            "Share of attention on image tokens while an object is said (mean over layers, heads and its tokens):",
        ),
        Table(
            [Column("claim"), Column("auroc", "ROC-AUC"), Column("stderr", "s.e.", show="stderr", of="auroc")],
            [{"claim": title, "auroc": getattr(numbers, name)} for name, title in _CLAIMS.items()],
            "ROC-AUC of little attention (experimental):",
        ),
    ]
    if numbers.words:
        below = sum(word.imagined < word.described for word in numbers.words)
        most = sorted(numbers.words, key=lambda word: -(word.n_described + word.n_imagined))[:_SHOWN]
        rows: list[list[Cell]] = [[w.word, w.described, w.imagined, w.n_described + w.n_imagined] for w in most]
        title = f"Figure 9: {below} of {len(numbers.words)} words have less where they are imagined:"
        tables.append(Table.of(["word", "described", "imagined", "objects"], rows, title=title))
    return tables
