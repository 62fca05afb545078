"""What 100,000 questions cost beside the model: the size of the store, and the time to read and score it.

    python benchmarks/scale.py [--questions 2500 5000 10000 20000] [--n 10] [--folder .]

Stores of synthetic answers, 2n + 1 a question, are written, read back and scored as `hedge rescore STORE` does it: the
store is opened, the answer sets are put together and labelled by the rule judge, clustered, scored and summarised. The
embeddings are made up, so that no model's time is in it. Prints seconds of CPU time for every size, how they grow (the
exponent between the two largest sizes), and what that makes of 100,000 questions. One measurement a size: what counts
is the growth.
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hedge_tasks.clustering import EmbeddingClustering, ExactClustering
from hedge_tasks.detectors.pipeline import summarise
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.runs.from_store import run_from_store
from hedge_tasks.sampling import Answer, SamplingPlan
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.segments import home
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw, StoredDocument

TARGET = 100_000
_AT_ONCE = 64  # documents a write

FINDINGS = ("a small pleural effusion", "an enlarged heart", "no abnormality", "a fracture of the rib", "a nodule")
PLACES = ("on the left side", "on the right side", "in the upper lobe", "in the lower lobe")
FRAMES = ("There is {} {}.", "The image shows {} {}.", "{} {} can be seen.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, nargs="+", default=[2500, 5000, 10000, 20000])
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="where the stores are made (default: the temporary folder)")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for questions in arguments.questions:
            rows.append(measure(Path(folder) / str(questions), questions, arguments.n))
            print(", ".join(f"{name} {value:.4g}" for name, value in rows[-1].items()), flush=True)
    if len(rows) > 1:
        for name in rows[0]:
            if name.endswith(" s") or name.endswith(" MB"):
                print(growth(name, [row["questions"] for row in rows], [row[name] for row in rows]))


def measure(folder: Path, questions: int, n: int) -> dict[str, float]:
    written = timed(lambda: fill(folder, range(questions), n))[0]
    size = sum(file.stat().st_size for file in folder.iterdir())
    opened, store = timed(lambda: AnswerStore(folder))
    assert len(store) == questions * (2 * n + 1)
    del store
    read, run = timed(lambda: run_from_store(folder, None, "rule"))
    assert len(run.answer_sets) == questions
    row: dict[str, float] = {
        "questions": questions,
        "store MB": size / 1e6,
        "bytes a draw": size / (questions * (2 * n + 1)),
        "written s": written,
        "opened s": opened,
        "opened, put together and labelled s": read,
    }
    for backend in (ExactClustering(), EmbeddingClustering(encoder=made_up, threshold=0.9)):
        name = type(backend).__name__.removesuffix("Clustering").lower()
        scorer = Scorer(name, backend)
        row[f"{name}: scored s"], scores = timed(lambda scorer=scorer: scorer.score(run.answer_sets))
        row[f"{name}: summarised s"] = timed(lambda scores=scores: summarise(scores))[0]
    row["peak MB"] = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    )  # of this size: the sizes before are smaller
    return row


def fill(folder: Path, questions: range, n: int) -> None:
    """A store as a run leaves it: a definition, its documents, and all their draws."""
    plan, definition = plan_of(n)
    dice = random.Random(questions.start)
    documents = [document(i, definition, n) for i in questions]
    with AnswerStore(folder, lazy=True) as store:  # as a run does
        store.put_documents([definition], documents)
        for start in range(0, len(documents), _AT_ONCE):
            some = documents[start : start + _AT_ONCE]
            store.put([record for each in some for record in records(each, definition, plan, dice)])


def plan_of(n: int) -> tuple[SamplingPlan, Definition]:
    plan = SamplingPlan(n=n)
    return plan, Definition.of("benchmark", "scale", load_prompt("plain/question"), plan)


def document(i: int, definition: Definition, n: int) -> StoredDocument:
    reference = f"{FINDINGS[i % len(FINDINGS)]} {PLACES[i % len(PLACES)]}"
    facts = {"group": f"image-{i // 3}", "question_type": ("open", "closed")[i % 2]}
    question = "What abnormality is visible in this image?"
    return StoredDocument(
        definition=definition.id,
        key=f"{i:040x}",
        id=f"q{i}",
        question=question,
        reference=reference,
        **facts,
        n=n,
        n_noisy=n,
    )


def records(
    asked: StoredDocument, definition: Definition, plan: SamplingPlan, dice: random.Random
) -> list[FinishedDraw]:
    """Paraphrases around a few meanings, more of them for a question that is hard."""
    meanings = 1 + dice.randrange(4)

    def answer() -> Answer:
        meaning = dice.randrange(meanings)
        text = dice.choice(FRAMES).format(FINDINGS[(meaning + dice.randrange(2)) % 5], PLACES[meaning])
        return Answer(text, -round(dice.expovariate(2), 5), 4 + len(text) // 5)

    draws = plan.draws(asked.key)
    keys, of = [definition.key(asked.key, asked.question, draw) for draw in draws], home(asked.key)
    return [FinishedDraw(k, answer(), asked.id, d.condition, d.index, of) for k, d in zip(keys, draws, strict=True)]


def made_up(texts: Sequence[str]) -> Any:
    """A vector a text: its own, and that of its words."""
    vectors = np.stack([sum((_word(word) for word in text.split()), start=np.zeros(384)) for text in texts])
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _word(word: str) -> Any:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=384)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of CPU time, which other jobs of the machine do not change; all of this runs in one thread."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def growth(name: str, questions: Sequence[float], values: Sequence[float]) -> str:
    """How a quantity grows, and what it would be at the target if it went on like this.

    An exponent below 1 is the noise of a single measurement: what is done for every question costs at least as much for
    the next one. Memory has a part that does not grow, so what counts there is what a question adds.
    """
    if name.startswith("peak"):
        added = (values[-1] - values[-2]) / (questions[-1] - questions[-2])
        expected = values[-1] + added * (TARGET - questions[-1])
        return f"{name}: {1e3 * added:.3g} kB a question; at {TARGET} questions {expected:.4g}"
    exponent = math.log(values[-1] / values[-2]) / math.log(questions[-1] / questions[-2])
    expected = values[-1] * (TARGET / questions[-1]) ** max(exponent, 1.0)
    return f"{name}: grows with exponent {exponent:.2f}; at {TARGET} questions {expected:.4g}"


if __name__ == "__main__":
    main()
