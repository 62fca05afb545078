"""Entries of the embedded model made without lmms-eval, forgeries of them, and statements on both.

Forgers are able: whatever follows from a forged answer is made to match, log-probabilities under the stated model
included, as whoever has its weights can.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from finished_runs import EXACT

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.judging import build_judge
from hedge_tasks.leaderboard import make_submission
from hedge_tasks.leaderboard.attestation import beacon_of, picked, statement_of
from hedge_tasks.leaderboard.attestation_draws import engine_of, read_again
from hedge_tasks.leaderboard.attestation_records import Attestation, Beacon
from hedge_tasks.leaderboard.submission import answer_set_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.requests import DrawRequest
from hedge_tasks.sampling.reread import Reread, reread

TASK = "hedge_demo"
BEACON = beacon_of("1000:" + "ab" * 32)

Drawn = list[tuple[list[DrawRequest], AnswerSet]]
"""Documents, each with the draws that were asked for and their answers."""


@cache
def task() -> Any:
    from hedge_tasks.lmms.manifests import load_task

    return load_task(TASK)


def plan(**settings: Any) -> SamplingPlan:
    return SamplingPlan.from_generation_kwargs({**task().config.generation_kwargs, "n": 5, **settings})


def draws_of(of: SamplingPlan, documents: int | None) -> list[list[DrawRequest]]:
    """The draws of the first documents."""
    split = task().config.test_split
    ids = [task()._data.id(i, row) for i, row in enumerate(task().dataset_no_image[split])][:documents]
    found = []
    for request, row in task().sample_requests(of, ids).values():
        fetch = partial(_row, row)
        found.append([DrawRequest(request, draw, fetch, row) for draw in of.draws(request.key)])
    return found


def _row(row: tuple[str, str, int]) -> Any:
    return task().dataset[row[1]][row[2]]


class Remembering:
    """A model that is asked each thing once: many tests have the same documents read and drawn again.

    A call's answers are those of the same call, not of its single draws, so that no batch is another.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._answers: dict[Hashable, list[Any]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def generate_draws(self, draws: Sequence[DrawRequest]) -> list[Any]:
        return self._once(tuple(map(_key, draws)), lambda: self._model.generate_draws(draws))

    def reread(self, draws: Sequence[DrawRequest], answers: Sequence[Answer]) -> list[Any]:
        key = tuple((_key(draw), answer.text, answer.finish) for draw, answer in zip(draws, answers, strict=True))
        return self._once(key, lambda: self._model.reread(draws, answers))

    def _once(self, key: Hashable, ask: Callable[[], Iterable[Any]]) -> list[Any]:
        if key not in self._answers:
            self._answers[key] = list(ask())
        return self._answers[key]


def _key(draw: DrawRequest) -> Hashable:
    pictures = tuple(picture.tobytes() for picture in draw.images())
    return draw.prompt_key, draw.draw, draw.alternatives, str(draw.request.plan.limits()), pictures


def sampled(model: Any, of: SamplingPlan, documents: int | None = 12) -> Drawn:
    """Answers as a run draws them; labelled by whether they are the reference."""
    found = []
    for draws in draws_of(of, documents):
        answers: dict[int, Answer] = {}
        for batch in model.generate_draws(draws):
            answers |= dict(batch)
        found.append((draws, _answer_set(draws, [answers[i] for i in range(len(draws))])))
    return found


def _answer_set(draws: Sequence[DrawRequest], answers: Sequence[Answer]) -> AnswerSet:
    request, n = draws[0].request, draws[0].request.plan.n
    label = int((request.reference or "").casefold() not in answers[0].text.casefold())
    about = (request.question, request.reference, label, request.group, request.question_type)
    return AnswerSet(request.id, answers[0], tuple(answers[1 : 1 + n]), tuple(answers[1 + n :]), *about)


def entry_of(drawn: Drawn, of: SamplingPlan, *, sampled_here: bool = True, model: str = "tiny") -> dict[str, Any]:
    """The submission of some answers, which says that they were drawn by this plan."""
    sets = tuple(answers for _, answers in drawn)
    judge = f"rule {build_judge('rule').version}"
    verdicts = {answers.id: {"judge": judge, "reason": ""} for answers in sets}
    decoding = {"asked": "pure", "temperature": of.temperature, "baseline_temperature": of.baseline_temperature}
    decoding |= {"sampled_here": True} if sampled_here else {}
    settings = {
        "filters": EXACT,
        "documents": {"judge": build_judge("rule").settings()},
        "sampling": of.settings(),
        "prompt": task().prompt_settings,
        "sampled": {"decoding": decoding},
    }
    run = Run(TASK, model, sets, verdicts, settings, "2026-01-02T03:04:05+00:00")
    return make_submission(run, texts=True)


def statement_on(
    model: Any, entry: Mapping[str, Any], k: int = 12, beacon: Beacon = BEACON, adapter: str = "hedge_tiny"
) -> Attestation:
    """The statement on an entry by whoever has a model."""
    documents = {document["id"]: document for document in entry["documents"]}
    ids = picked(beacon, entry["digest"], list(documents), k)
    answers = {id: answer_set_of(documents[id]) for id in ids}
    found = list(read_again(model, task(), entry, answers, beacon))
    return statement_of(entry, beacon, engine_of(model, adapter, adapter), found, created="2026-01-03T00:00:00+00:00")


# --- forgeries --------------------------------------------------------------------------------------------------------


def told_by(model: Any, drawn: Drawn) -> Drawn:
    """The same texts with the log-probabilities that a model finds: an able forger's."""
    found = []
    for draws, answers in drawn:
        told = reread(model, draws, answers.answers)
        found.append((draws, _with(answers, [_told(*both) for both in zip(answers.answers, told, strict=True)])))
    return found


def _told(answer: Answer, told: Reread | str) -> Answer:
    assert isinstance(told, Reread)
    numbers = {"mean_logprob": told.mean_logprob, "n_tokens": told.n_tokens, "end_logprob": told.end_logprob}
    return replace(answer, **numbers)  # type: ignore[arg-type]


def _with(answers: AnswerSet, said: Sequence[Answer]) -> AnswerSet:
    n = len(answers.clean)
    return replace(answers, baseline=said[0], clean=tuple(said[1 : 1 + n]), noisy=tuple(said[1 + n :]))


def scripted(drawn: Drawn, share: float = 1.0, seed: int = 0) -> Drawn:
    """A share of documents answered by a script: the reference, every time."""
    chance = random.Random(seed)
    forged = set(chance.sample(range(len(drawn)), round(share * len(drawn))))
    return [(draws, _scripted(answers) if i in forged else answers) for i, (draws, answers) in enumerate(drawn)]


def _scripted(answers: AnswerSet) -> AnswerSet:
    said = [replace(a, text=answers.reference or "", mean_logprob=-0.01, n_tokens=1) for a in answers.answers]
    return replace(_with(answers, said), label=0)


def copied_noisy(drawn: Drawn) -> Drawn:
    """Noisy draws that are the clean ones."""
    return [(draws, replace(answers, noisy=answers.clean)) for draws, answers in drawn]


def kept_best(drawn: Drawn, n: int) -> Drawn:
    """Of all clean draws those `n` that agree most with a right baseline answer, and least with a wrong one."""
    found = []
    for draws, answers in drawn:
        order = sorted(answers.clean, key=lambda a: (a.text == answers.baseline.text) == bool(answers.label))
        kept = [d for d in draws if not (d.draw.condition == "clean" and d.draw.index >= n)]
        kept = [d for d in kept if not (d.draw.condition == "noisy" and d.draw.index >= n)]
        found.append((kept, replace(answers, clean=tuple(order[:n]), noisy=answers.noisy[:n])))
    return found
