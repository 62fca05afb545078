"""Med-HallMark's training ablations (Table 5) with a tiny model: what is trained, on what, in which order.

    python benchmarks/judge_ablations.py [--steps 120] [--pictures 48] [--folder FOLDER]

Plain pictures in three colours, asked for their colour. Answers to judge: the colour (correct), another colour
(attribute), or an animal (catastrophic); tasks and benchmark are the same question with its answer, on other pictures.
The model is the embedded one with token embeddings drawn anew (its own never wrote JSON). Everything goes through
`hedge judge data` and `hedge judge train`; what is counted is the share of held-out answers whose level is said right.

The paper's letters a-f stand for seven configurations in its text; which it left out is not said, so none is given a
letter here. This shows that every configuration trains what it says it does, and nothing of a model of real size.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from hedge_tasks.cli import main as hedge
from hedge_tasks.judging import judge_from
from hedge_tasks.judging.base import Case
from hedge_tasks.models.tiny import vlm_path
from hedge_tasks.numbers import Column, Number, Table
from hedge_tasks.numbers.table import Cell
from hedge_tasks.statistics.rates import estimate_rate

COLOURS, ANIMALS = ("red", "blue", "green"), ("dog", "cat", "horse")
LEVELS = ("correct", "attribute", "catastrophic")
PROMPT = {
    "name": "levels",
    "version": 1,
    "images": "required",
    "answer_field": "level",
    "system": ["which level?"],
    "fields": [
        {"case": "question", "name": "question", "required": True},
        {"case": "reference", "name": "truth", "required": False},
        {"case": "answer", "name": "answer", "required": False},
    ],
    "examples": [],
    "again": "again",
    "schema": {
        "type": "object",
        "properties": {"level": {"type": "string", "enum": list(LEVELS)}},
        "required": ["level"],
    },
    "values": [{"key": level, "label": int(level != "correct")} for level in LEVELS],
}


class Configuration(NamedTuple):
    """One way to train.

    Attributes:
        name: As the paper says it.
        part: What is trained.
        stages: Kinds of conversations, stage by stage; empty for all in one.
    """

    name: str
    part: str
    stages: tuple[str, ...] = ()


CONFIGURATIONS = (
    Configuration("only the connector", "connector"),
    Configuration("only traditional tasks", "language_model", ("task",)),
    Configuration("only instructions", "language_model", ("instruction",)),
    Configuration("only the benchmark", "language_model", ("benchmark",)),
    Configuration("without traditional tasks", "language_model", ("benchmark,instruction",)),
    Configuration("three stages", "language_model", ("task", "benchmark", "instruction")),
    Configuration("all in one stage (the paper's own)", "language_model"),
    Configuration("all in one stage, adapters", "adapters"),
)
RATES = {"adapters": 0.01, "language_model": 0.003, "connector": 0.01}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--steps", type=int, default=120, help="optimizer steps of each configuration, all stages together"
    )
    parser.add_argument("--pictures", type=int, default=48, help="pictures of judged answers")
    parser.add_argument("--folder", type=Path, help="where everything is kept (default: a temporary folder)")
    given = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        base = write_base(folder / "base")
        write_data(folder, given.pictures)
        rows = [_row("no training", str(base), None, "none", 0, folder)]
        for one in CONFIGURATIONS:
            facts = train(folder, base, one, given.steps)
            model, peft = (str(base), facts["weights"]) if one.part == "adapters" else (facts["weights"], None)
            rows.append(_row(one.name, model, peft, one.part, facts["trained_weights"][0], folder))
    columns = [Column("name", "trained on"), Column("part"), Column("weights"), Column("all", "right", interval=True)]
    columns += [Column(level, level) for level in LEVELS] + [Column("unread", "unread")]
    n = rows[0]["all"].n if isinstance(rows[0]["all"], Number) else 0
    print(Table(columns, rows, title=f"Held-out answers whose level is said right, n = {n}; {given.steps} steps each"))


def write_base(folder: Path) -> Path:
    """The embedded model with other token embeddings."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    model = AutoModelForImageTextToText.from_pretrained(vlm_path())
    weights = model.get_input_embeddings().weight
    with torch.no_grad():
        weights.copy_(torch.randn(weights.shape, generator=torch.Generator().manual_seed(0)) * weights.std())
    model.save_pretrained(folder)
    AutoProcessor.from_pretrained(vlm_path()).save_pretrained(folder)
    return folder


def answers_to(number: int) -> tuple[str, list[tuple[str, str]]]:
    """The colour of a picture, and an answer of each level."""
    colour = COLOURS[number % 3]
    other = COLOURS[(number + 1 + number // 3 % 2) % 3]
    return colour, [(colour, "correct"), (other, "attribute"), (ANIMALS[number // 2 % 3], "catastrophic")]


def write_data(folder: Path, pictures: int) -> None:
    """Pictures, judged answers, tasks and the benchmark's questions; and of them the conversations."""
    (folder / "pictures").mkdir(exist_ok=True)
    judged, plain = [], []
    for number in range(2 * pictures):
        shade = 160 + 2 * number % 90
        channels = [shade if COLOURS[number % 3] == name else 20 for name in ("red", "green", "blue")]
        Image.new("RGB", (64, 64), tuple(channels)).save(folder / "pictures" / f"{number}.png")
        colour, answers = answers_to(number)
        about = {"image": f"{number}.png", "question": "colour?", "reference": colour}
        if number < pictures:
            judged += [{**about, "answer": answer, "label": level} for answer, level in answers]
        else:
            plain.append({"image": about["image"], "question": "colour?", "answer": colour})
    half = len(plain) // 2
    for name, rows in (("judged", judged), ("tasks", plain[:half]), ("benchmark", plain[half:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "levels.json").write_text(json.dumps(PROMPT), "utf-8")
    options = ["--prompt", str(folder / "levels.json"), "--images", str(folder / "pictures"), "--hold-out", "0.3"]
    tasks = ["--vqa", str(folder / "tasks.jsonl"), "--benchmark", str(folder / "benchmark.jsonl"), "--floor", "1"]
    said = [
        "judge",
        "data",
        "--twin-outcome",
        "attribute",
        str(folder / "judged.jsonl"),
        "--out",
        str(folder / "sft"),
        *options,
        *tasks,
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        assert hedge(said) == 0


def train(folder: Path, base: Path, one: Configuration, steps: int) -> Mapping[str, Any]:
    """Train one configuration, the same number of steps in all."""
    stages = max(1, len(one.stages))
    recipe = {
        "trained": one.part,
        "learning_rate": RATES[one.part],
        "lora_dropout": 0,
        "gradient_accumulation_steps": 1,
        "per_device_train_batch_size": 16,
        "num_train_epochs": 1000,
        "save_steps": steps,
    }
    changes = [part for key, value in recipe.items() for part in ("--set", f"{key}={value}")]
    facts: Mapping[str, Any] = {}
    for number, kinds in enumerate(one.stages or (None,), start=1):
        out = folder / "trained" / f"{one.name.replace(' ', '-')}-{number}"
        begins = facts.get("weights", str(base))
        said = ["judge", "train", str(folder / "sft"), "--base", begins, "--out", str(out), *changes]
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            only = ["--kinds", kinds] if kinds else []
            assert hedge([*said, *only, "--max-steps", str(max(1, steps // stages)), "--json"]) == 0
        printed = text.getvalue()
        facts = json.loads(printed[printed.index('{\n  "weights"') :])
    return facts


def _row(name: str, model: str, peft: str | None, part: str, weights: int, folder: Path) -> dict[str, Cell]:
    options = {"prompt": str(folder / "levels.json"), "dtype": "float32", **({"peft": peft} if peft else {})}
    judge = judge_from({"name": "hf", "model": model, **options})
    conversations = [json.loads(line) for line in (folder / "sft" / "eval.jsonl").read_text("utf-8").splitlines()]
    held_out = {row["group"] for row in conversations}
    cases, levels, groups = [], [], []
    for number, line in enumerate((folder / "judged.jsonl").read_text("utf-8").splitlines()):
        row = json.loads(line)
        if row["image"] in held_out:
            picture = folder / "pictures" / row["image"]
            shown = {"images": partial(list, [picture]), "image_key": row["image"]}
            cases.append(Case(str(number), row["question"], row["reference"], row["answer"], **shown))
            levels.append(row["label"])
            groups.append(row["image"])
    said = judge.judge(cases)
    right = [verdict.category == level for verdict, level in zip(said, levels, strict=True)]
    cells: dict[str, Cell] = {"name": name, "part": part, "weights": f"{weights:,}"}
    cells["all"] = estimate_rate(right, groups=groups)
    for level in LEVELS:
        cells[level] = estimate_rate([hit for hit, own in zip(right, levels, strict=True) if own == level])
    return {**cells, "unread": sum(verdict.category is None for verdict in said)}


if __name__ == "__main__":
    main()
