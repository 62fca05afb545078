"""Which sentence is hallucinated: detectors of claims on biographies with people's labels, and at size.

    python benchmarks/claims.py --biographies wikibio_gpt3_half.jsonl
    python benchmarks/claims.py --captions captions.jsonl
    python benchmarks/claims.py --scale 10000

- `--biographies`: GPT-3's biographies of SelfCheckGPT's data set (Manakul et al. 2023; CC BY-SA 3.0). Every line has
  `id`, `sentences`, `labels` of people (accurate, minor_inaccurate, major_inaccurate), 20 `samples`, for each sentence
  a letter a sample by each judge (`judge_*`: y where the sample supports the sentence), and SelfCheck-NLI's published
  mean contradiction (`nli_contradiction_mean`, null for some). No model is asked but MiniLM, on 5 samples, with
  `--cosine`: the other supports are shared words and those of the file.
- `--captions`: several people's captions of each image with its annotated objects (lines with `captions`, `instances`;
  COCO). Every caption is an answer, the others of its image are its draws, and an object that it names and nobody has
  annotated is wrong.
- `--scale`: seconds and memory of that many answers of 10 claims with 10 draws each, support by shared words.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hedge_tasks.claims.decomposition import Passage, build_decomposition
from hedge_tasks.claims.entailment import Entailment, SupportQuery, build_entailment, silent_or_entailed
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.spans import LabelledSpan
from hedge_tasks.measures.unit_table import UnitTable, unit_table
from hedge_tasks.runs.claims import ScoredClaims, claim_units, inquiry, score_claims
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import estimate_auroc, stratified_auroc
from hedge_tasks.suites.vope.vocabulary import coco

JUDGES = {"judge_gemma_31b": "judge Gemma-31B", "judge_qwen35_9b": "judge Qwen-9B"}
FEW = 5
"""Samples of the cosine, whose price grows with them."""


class Stored:
    """Verdicts of a file: `y` entails, everything else is silent."""

    contradicts, priced = False, "judge calls"

    def __init__(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.name = name
        self._verdicts = {(*row["sentences"], row["samples"][0]): row[name] for row in rows}

    def support(self, asked: Sequence[SupportQuery]) -> list[np.ndarray]:
        verdicts = [self._verdicts[(*one.claims, one.draws[0])] for one in asked]
        return [silent_or_entailed([[letter == "y" for letter in row] for row in of]) for of in verdicts]

    def price(self, asked: Sequence[SupportQuery]) -> int:
        return sum(len(one.claims) * len(one.draws) for one in asked)

    def check(self) -> None: ...

    def settings(self) -> dict[str, Any]:
        return {"support": self.name}


def answer_set(row: Mapping[str, Any]) -> AnswerSet:
    text, spans, at = " ".join(row["sentences"]), [], 0
    for sentence, said in zip(row["sentences"], row["labels"], strict=True):
        wrong = said != "accurate"
        spans.append(LabelledSpan(at, at + len(sentence), int(wrong), False, said.split("_")[0] if wrong else None))
        at += len(sentence) + 1
    return AnswerSet(str(row["id"]), Answer(text), tuple(map(Answer, row["samples"])), claims=tuple(spans))


def scored(sets: Sequence[AnswerSet], engine: Entailment, *, elsewhere: bool) -> ScoredClaims:
    asked = inquiry(sets, build_decomposition("given"), elsewhere=elsewhere)
    return score_claims(Run("biographies", "GPT-3", tuple(sets)), asked.ask(engine))


def biographies(path: Path) -> Iterator[str]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    sets = [answer_set(row) for row in rows]
    tables = {title: scored(sets, Stored(name, rows), elsewhere=False) for name, title in JUDGES.items()}
    tables["words"] = scored(sets, build_entailment("words"), elsewhere=True)
    found = {title: unit_table(one) for title, one in tables.items()}
    data = next(iter(found["words"].columns.values()))
    yield f"{len(data.labels)} sentences of {len(sets)} answers, {data.labels.mean():.3f} wrong\n"
    yield "| score | AUROC | within the answer | top sentence wrong (chance) | − best blind | within |"
    yield "|---|---|---|---|---|---|"
    for title, table in found.items():
        yield from table_rows(title, table)
    yield ""
    yield from stored_nli(rows, tables[JUDGES["judge_gemma_31b"]])
    yield from by_severity(tables)


def table_rows(title: str, table: UnitTable) -> Iterator[str]:
    for row in table.rows:
        blind = row.blind and (title == "words" or row.detector == "claim_elsewhere")
        if not blind and row.detector not in ("claim_luq", "claim_radflag"):
            continue
        if row.detector == "claim_radflag" and title != "words":
            continue  # of verdicts it is the same as LUQ
        name = f"{row.title} ({title})" if row.detector == "claim_elsewhere" or not row.blind else row.title
        turned = ", turned round" if row.reversed else ""
        top = f"{row.top.rate.value:.3f} ({row.top.chance.value:.3f})" if row.top else ""
        differences = [
            "" if one is None or one.difference is None else f"{one.difference:+.3f} {shown(one.interval, '+')}"
            for one in (row.difference, row.difference_within)
        ]
        within = f"{row.within.value:.3f} {shown(row.within.interval)}"
        cells = [
            f"{name}{turned}",
            f"{row.estimate.value:.3f} {shown(row.estimate.interval)}",
            within,
            top,
            *differences,
        ]
        yield f"| {' | '.join(cells)} |"


def shown(interval: tuple[float, float] | None, sign: str = "") -> str:
    return f"[{interval[0]:{sign}.3f}, {interval[1]:{sign}.3f}]" if interval else ""


def stored_nli(rows: Sequence[Mapping[str, Any]], judge: ScoredClaims) -> Iterator[str]:
    """SelfCheck-NLI where it is published, and a judge on the same answers."""
    kept = [i for i, row in enumerate(rows) if row["nli_contradiction_mean"] is not None]
    labels = [int(label != "accurate") for i in kept for label in rows[i]["labels"]]
    answers = [i for i in kept for _ in rows[i]["labels"]]
    columns = {
        "SelfCheck-NLI, published": [x for i in kept for x in rows[i]["nli_contradiction_mean"]],
        "judge Gemma-31B": [x for i in kept for x in judge.answers[i].scores["claim_luq"].tolist()],
    }
    for name, values in columns.items():
        pooled = estimate_auroc(values, labels, groups=answers)
        within = stratified_auroc(values, labels, answers, groups=answers)
        numbers = f"{pooled.value:.3f} {shown(pooled.interval)}, within {within.value:.3f} {shown(within.interval)}"
        yield f"- on the {len(kept)} answers that have it, {name}: {numbers}"


def by_severity(tables: Mapping[str, ScoredClaims]) -> Iterator[str]:
    yield "\n| errors | claims | " + " | ".join(tables) + " |"
    yield "|---|---|" + "---|" * len(tables)
    for errors in ("all", "major", "minor"):
        cells = []
        for one in tables.values():
            table = unit_table(one, errors=errors)
            [row] = [row for row in table.rows if row.detector == "claim_luq"]
            cells.append(f"{row.estimate.value:.3f} {shown(row.estimate.interval)}")
        n = len(claim_units(one, errors=errors).labelled)
        yield f"| {errors} | {n} | {' | '.join(cells)} |"


def captioned(path: Path) -> list[AnswerSet]:
    """A caption as the answer, the other people's captions as draws, objects labelled by the annotations."""
    objects = build_decomposition("object")
    sets = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        there = {coco().category(one["category"], "instances") for one in row["instances"]}
        texts = row["captions"]
        for i, (text, found) in enumerate(zip(texts, objects.pieces([Passage(t) for t in texts]), strict=True)):
            spans = tuple(
                LabelledSpan(piece.start, piece.end, int(coco().category(piece.text, "caption") not in there))
                for piece in found.pieces
            )
            others = tuple(Answer(other) for j, other in enumerate(texts) if j != i)
            sets.append(AnswerSet(f"{row['id']}-{i}", Answer(text), others, group=str(row["id"]), claims=spans))
    return sets


def captions(path: Path) -> Iterator[str]:
    sets = captioned(path)
    tables = {}
    for name in ("object", "words"):
        engine = build_entailment(name)
        asked = inquiry(sets, build_decomposition("object"))
        run = Run("captions", "people", tuple(sets))
        tables[name] = unit_table(score_claims(run, asked.ask(engine)))
    data = next(iter(tables["words"].columns.values()))
    images = len({one.group for one in sets})
    about = f"{len(data.labels)} objects of {len(sets)} captions of {images} images"
    yield f"{about}, {data.labels.mean():.3f} not annotated\n"
    yield "| score | AUROC | within the answer | top object wrong (chance) | − best blind | within |"
    yield "|---|---|---|---|---|---|"
    for title, table in tables.items():
        yield from table_rows(title, table)


def scale(n: int) -> Iterator[str]:
    dice = random.Random(0)
    words = [f"{a}{b}" for a in ("left", "right", "small", "large") for b in range(500)]
    sentences = [f"There is {' '.join(dice.choices(words, k=6))}." for _ in range(2000)]
    sets = []
    for i in range(n):
        texts = [dice.sample(sentences, 10) for _ in range(11)]
        spans, at = [], 0
        for sentence in texts[0]:
            spans.append(LabelledSpan(at, at + len(sentence), int(dice.random() < 0.3)))
            at += len(sentence) + 1
        answers = [Answer(" ".join(one)) for one in texts]
        sets.append(AnswerSet(str(i), answers[0], tuple(answers[1:]), claims=tuple(spans)))
    started = time.perf_counter()
    asked, engine = inquiry(sets, build_decomposition("sentence")), build_entailment("words")
    decomposed = time.perf_counter()
    supported = asked.ask(engine)
    said = time.perf_counter()
    run = score_claims(Run("scale", "", tuple(sets)), supported)
    numbers = time.perf_counter()
    unit_table(run)
    done = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    steps = {"decomposed": decomposed - started, "support": said - decomposed, "scores": numbers - said}
    steps["numbers"] = done - numbers
    told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in steps.items())
    yield f"{n} answers x 10 claims x 10 draws: {told}; {memory:.1f} GB at most"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--biographies", type=Path)
    parser.add_argument("--captions", type=Path)
    parser.add_argument("--scale", type=int)
    arguments = parser.parse_args()
    if arguments.biographies:
        for line in biographies(arguments.biographies):
            print(line)
    if arguments.captions:
        for line in captions(arguments.captions):
            print(line)
    if arguments.scale:
        for line in scale(arguments.scale):
            print(line)


if __name__ == "__main__":
    main()
