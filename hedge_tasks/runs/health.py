"""How sound a finished run is: what could make its numbers mean something else than they seem to.

A server that decodes greedily, answers that were cut, or a judge that could not tell leave tables that look like any
other. Health is one list of tests, each of which contradicts, or could have and does not, or cannot tell. Everything is
counted from the run file, without a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.answers import Answer
from hedge_tasks.data.groups import effective_groups
from hedge_tasks.data.template_tokens import without_template_tokens
from hedge_tasks.data.thoughts import without_thoughts
from hedge_tasks.judging.outcomes import (
    CUT_OFF,
    DECLINED,
    REQUEST_FAILED,
    SOFTLY_READ,
    UNREAD,
    UNREAD_JUDGE,
    outcome_of,
    readings_of,
)
from hedge_tasks.judging.reliability import reliability
from hedge_tasks.numbers import Format
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.runs.answer_tests import answer_tests
from hedge_tasks.runs.health_tests import STATES, HealthTest, Sampled, share_test
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.setting_tests import draws_text, setting_tests
from hedge_tasks.sampling.probe import server_lines

SAME = "clean answers differ"
CUT, EMPTY, FILTERED = "answers have their end", "answers have a text", "answers are not filtered"
LOGPROBS, TOKENS = "log-probabilities", "answers without template tokens"

# From which share a property is worth a word, and from which the numbers cannot be relied on.
_CERTAIN = (0.80, 0.98)
_SEVERAL = (0.01, 0.25)
_ANY = (0.0, 1.0)
_FAILED = (0.0, 0.05)
_NO_LABEL = (0.05, 0.5)
_UNREAD_REPLIES = 0.05
_BLIND, _FEWEST_CHECKED = 0.8, 5
"""Answers that stay on another picture: above this share, no score that compares samples sees the picture's part."""

FEW_GROUPS = 20
"""With fewer effective groups than this no interval is to be relied on (Carter, Schnepel & Steigerwald 2017)."""

_WITHOUT_LABEL = (DECLINED, SOFTLY_READ, UNREAD, UNREAD_JUDGE, CUT_OFF, REQUEST_FAILED)


@dataclass(frozen=True)
class Health:
    """The tests of one run.

    Attributes:
        documents: that have answers.
        failed: documents left out because a draw of theirs failed for good.
        draws: baseline, clean and noisy answers.
        readings: documents by how firmly their reply was read; see `judging.outcomes.readings_of`.
        decoding: what was asked for, and what the model's adapter sent.
        tests: all of them.
    """

    documents: int
    failed: int
    draws: int
    readings: Mapping[str, Mapping[str, int]]
    decoding: Mapping[str, Any]
    tests: tuple[HealthTest, ...]

    @property
    def findings(self) -> list[HealthTest]:
        """Tests that contradict, the serious first."""
        contradicted = [test for test in self.tests if test.state == "contradicted" and not test.implied]
        return sorted(contradicted, key=lambda test: not test.unreliable)

    @property
    def settings(self) -> list[HealthTest]:
        """The verdict on each setting; empty where nobody said what was asked for."""
        return [test for test in self.tests if test.setting]

    @property
    def unreliable(self) -> str | None:
        """Why the run's numbers cannot be relied on, None where nothing speaks against it."""
        return "; ".join(f.text for f in self.findings if f.unreliable) or None

    @property
    def unchecked(self) -> list[str]:
        """Tests that could not be made where something was sampled, and why."""
        return [f"{t.name} ({t.text})" for t in self.tests if t.state == "not verifiable" and not t.setting]

    def to_dict(self) -> dict[str, Any]:
        by_state = sorted(self.tests, key=lambda test: STATES.index(test.state))
        tests = [{key: value for key, value in vars(test).items() if value} for test in by_state]
        return {**vars(self), "tests": tests, "unreliable": self.unreliable}


def health_of(run: Run) -> Health:
    """Test a run: by its answers, and by `sampled`, `failed` and `outcome.zero_entropy` of its settings."""
    looked_at = Sampled(run)
    return Health(
        documents=len(run.answer_sets),
        failed=looked_at.n_failed,
        draws=len(looked_at.answers),
        readings=readings_of(looked_at.verdicts),
        decoding=looked_at.decoding,
        tests=tuple(test for tests in TESTS for test in tests(looked_at)),
    )


def _draw_tests(run: Sampled) -> Iterator[HealthTest]:
    """How many draws, of all of them, are otherwise than they should be."""

    def share(name: str, is_odd: Callable[[Answer], bool], text: str, some: float, many: float) -> Iterator[HealthTest]:
        return share_test(name, sum(map(is_odd, run.answers)), len(run.answers), f"draws {text}", some, many)

    cut = "reached the token limit or never ended a thought (max_new_tokens)"
    yield from share(CUT, lambda a: a.finish == "length" or without_thoughts(a.text)[1], cut, *_SEVERAL)
    yield from share(EMPTY, lambda a: not a.text.strip(), "are empty", *_SEVERAL)
    yield from share(FILTERED, lambda a: a.finish == "filtered", "were stopped by a content filter", *_SEVERAL)
    reasons = Counter(a.no_logprob or "no reason" for a in run.answers if a.mean_logprob is None)
    why = ", ".join(f"{reason}: {n}" for reason, n in sorted(reasons.items()))
    discrete = f"have no log-probability: their samples weigh the same (discrete entropy); {why}"
    yield from share(LOGPROBS, lambda a: a.mean_logprob is None, discrete, *_ANY)
    tokens = "have tokens of a chat template around them: without them the same answer counts as another one"
    yield from share(TOKENS, lambda a: without_template_tokens(a.text) != a.text, tokens, *_ANY)


def _document_tests(run: Sampled) -> Iterator[HealthTest]:
    n = run.n_failed + len(run.answer_sets)
    if not n:
        yield HealthTest("documents answered", "contradicted", "there are no documents: nothing was measured", True)
    yield from share_test("documents answered", run.n_failed, n, "documents failed and are left out", *_FAILED)
    if not run.hot:
        return
    text = "documents have one and the same clean answer, as of greedy decoding: no entropy can tell anything"
    yield from share_test(SAME, run.distinct.count(1), len(run.distinct), text, *_CERTAIN)
    for name, share in ((run.settings.get("outcome") or {}).get("zero_entropy") or {}).items():
        if share is not None and share > _CERTAIN[0]:
            text = f"documents have a semantic entropy of 0 under {name}"
            yield from share_test(f"entropies of {name}", round(share * n), n, text, *_ANY)


def _picture_tests(run: Sampled) -> Iterator[HealthTest]:
    for kind, what in (("blank", "a blank picture"), ("other", "another document's picture")):
        text = f"baseline answers stay the same on {what}: they hardly depend on the picture"
        if (checked := run.image_use.get(kind, 0)) >= _FEWEST_CHECKED:
            yield from share_test(f"answers on {what}", run.image_use.get(f"{kind}_same", 0), checked, text, _BLIND)


def _server_tests(run: Sampled) -> Iterator[HealthTest]:
    if any(a.clean for a in run.answer_sets):
        name, state = "draws against their log-probabilities", run.draws.state
        yield HealthTest(name, state, draws_text(run.draws), state == "contradicted")
    # Other models are in the verdicts on settings, and other tokens among the reasons of missing log-probabilities.
    for line in server_lines({"refused": run.server.get("refused")}):
        yield HealthTest("server", "contradicted", line)
    if run.untold:
        yield HealthTest("forced passes", "not verifiable", str(run.untold))


def _label_tests(run: Sampled) -> Iterator[HealthTest]:
    verdicts = run.verdicts
    if all(verdict.get("label") is None and not verdict.get("reason") for verdict in verdicts):
        return  # not judged yet, which every table says
    if reason := reliability(verdicts):
        yield HealthTest("labels", "contradicted", reason.removeprefix("unreliable: "), True)
    rechecks = [entry["kind"] is None for verdict in verdicts for entry in verdict.get("objects") or ()]
    unread = [*rechecks, *(text == UNREADABLE for verdict in verdicts for text in verdict.get("sampled") or ())]
    text = "rechecks and sampled replies could not be read"
    yield from share_test("readable rechecks", sum(unread), len(unread), text, _UNREAD_REPLIES)
    outcomes = Counter(outcome for verdict in verdicts if (outcome := outcome_of(verdict)) in _WITHOUT_LABEL)
    parts = ", ".join(f"{outcomes[name]} {name}" for name in _WITHOUT_LABEL if outcomes[name])
    text = f"answers have no label ({parts}) and are in no AUROC"
    yield from share_test("labelled answers", outcomes.total(), len(verdicts), text, *_NO_LABEL)


def _group_tests(run: Sampled) -> Iterator[HealthTest]:
    """How independent the documents are: how many groups they are worth."""
    alone = [f"document {i}" if a.group is None else f"group {a.group}" for i, a in enumerate(run.answer_sets)]
    if len(set(alone)) < len(alone) and (effective := effective_groups(alone)) < FEW_GROUPS:
        text = f"the documents are worth {Format(1)(effective)} groups of equal size: intervals are rough"
        yield HealthTest("number of groups", "contradicted", text)


TESTS = (
    *(_draw_tests, _document_tests, _picture_tests, setting_tests, _server_tests),
    *(answer_tests, _label_tests, _group_tests),
)
"""Every test of a run: what is yielded has something to say of it."""


def mitigation_line(decoding: Mapping[str, Any]) -> str | None:
    """How logits were contrasted before a token was chosen, as a run has it under `sampled`; None where they were not.

    Example:
        >>> mitigation_line({"asked": "pure", "method": {"name": "vcd", "alpha": 1.0, "noise_step": 500}})
        'vcd (alpha 1, noise step 500)'
    """
    method = decoding.get("method")
    if not method:
        return None
    values = {key: f"{value:g}" if isinstance(value, float) else value for key, value in method.items()}
    name = values.pop("name", "")
    settings = ", ".join(f"{key} {value}" for key, value in values.items())
    return "".join(filter(str.isprintable, f"{name} ({settings})".replace("_", " ")))[:80]


def decoding_line(health: Health) -> str | None:
    """Return the settings asked for and their verdicts, the gravest first, on one line; None without any."""
    decoding, settings = health.decoding, health.settings
    if not decoding.get("asked"):
        return None
    line = ", ".join(filter(None, [f"{decoding['asked']}, T {decoding.get('temperature')}", mitigation_line(decoding)]))
    by_state = {state: ", ".join(test.name for test in settings if test.state == state) for state in STATES}
    return "; ".join([line, *(f"{state}: {names}" for state, names in by_state.items() if names)])
