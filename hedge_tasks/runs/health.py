"""How sound a finished run is: what could make its numbers mean something else than they seem to.

A server that decodes greedily, answers that were cut, or a judge that could not tell leave tables that look like any
other. Everything here is counted from the run file, without a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from hedge_tasks.data.answers import Answer, AnswerSet, Served
from hedge_tasks.data.template_tokens import without_template_tokens
from hedge_tasks.data.thoughts import OTHER_TOKENS, without_thoughts
from hedge_tasks.io.outside import shown
from hedge_tasks.judging.outcomes import (
    CUT_OFF,
    DECLINED,
    OUTCOMES,
    REQUEST_FAILED,
    SOFTLY_READ,
    UNREAD,
    UNREAD_JUDGE,
    outcome_of,
    readings_of,
)
from hedge_tasks.judging.reliability import reliability
from hedge_tasks.judging.reply_judge import reads_replies
from hedge_tasks.numbers import PERCENT, WHOLE_PERCENT, Format, format_p, format_value
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.runs.answer_checks import AnswerCheck, answer_checks
from hedge_tasks.runs.independence import FEW_GROUPS, Independence, hidden_dependence, independence_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.setting_verdicts import (
    BASE,
    SEED,
    SettingVerdict,
    mitigation_line,
    repeats_text,
    setting_verdicts,
    summary_of,
)
from hedge_tasks.sampling.probe import server_lines
from hedge_tasks.statistics.draws import DrawsVerdict, verdict_on

# Shares from which a property is worth a word, and from which the numbers cannot be relied on.
_CERTAIN = (0.80, 0.98)
_CUT = (0.01, 0.25)
_EMPTY = (0.01, 0.25)
_FILTERED = (0.01, 0.25)
_FAILED = (0.0, 0.05)
_UNREADABLE = 0.01
_NO_LABEL = (0.05, 0.5)
_UNREAD_REPLIES = 0.05
_BLIND = 0.8
"""Answers that stay on a blank picture: above this share, no score that compares samples sees the picture's part."""

_DEPENDENT = 1.1
"""Design effect from which groups are worth a word."""

_FEWEST_CHECKED = 5
_FEWEST_LABELS = 5
"""Answers of the rarer class: with fewer, the interval of an AUROC of .8 reaches down to chance."""

_LABELS = ("supported", "hallucinated")
_MOST_NAMED = 4


@dataclass(frozen=True)
class Finding:
    """Something that a reader of the numbers should know.

    Attributes:
        text: one sentence.
        unreliable: whether the run's numbers cannot be relied on because of it.
        accounted: whether the intervals take it into account already.
    """

    text: str
    unreliable: bool = False
    accounted: bool = False


@dataclass(frozen=True)
class Health:
    """Counts and shares of one run. Shares are in [0, 1]; None means unknown.

    Attributes:
        documents: that have answers.
        failed: documents left out because a draw of theirs failed for good.
        draws: baseline, clean and noisy answers.
        same_clean: share of the documents whose clean answers are all the same text.
        distinct_clean: mean number of different clean answers a document.
        cut, empty, filtered: shares of the draws that reached the token limit (or never ended a thought), are empty, or
            were stopped by a content filter.
        without_logprob: share of the draws without a log-probability.
        no_logprob: how many draws came with log-probabilities that could not be taken, by reason.
        unlabelled: share of the documents without a label.
        unreadable: share of the documents whose judge (or, where answers have a fixed form, whose model) said something
            that nobody could read.
        outcomes: documents by what came of their answer, as `judging.outcomes.OUTCOMES` has it; empty where nobody
            judged.
        labels: documents by label, "supported" and "hallucinated".
        readings: documents by how firmly their reply was read, and by what that rests on, as
            `judging.outcomes.readings_of` has it; empty where none was read.
        unread_replies: share of the rechecks of objects, and of the draws that are read as options, that nobody could
            read; None where there are none.
        zero_entropy: share of the documents with a semantic entropy of 0, by clustering; empty where nothing was
            clustered.
        decoding: what was asked for, and what the model's adapter sent.
        probe: findings of the probe before sampling.
        server: what the adapter found out about its server.
        image_use: how many answers stayed the same on a blank and on another document's picture.
        served: models and servers that answered: by field of `Served`, how many answers each value has.
        draws_verdict: of the clean draws against their own log-probabilities.
        checks: of the answers against each other.
        setting_verdicts: whether each setting was what was asked for; empty where nobody said what was asked.
        independence: how many groups the documents are.
        findings: for people, the serious ones first.
    """

    documents: int
    failed: int
    draws: int
    same_clean: float | None
    distinct_clean: float | None
    cut: float | None
    empty: float | None
    filtered: float | None
    without_logprob: float | None
    unlabelled: float | None
    unreadable: float | None = None
    unread_replies: float | None = None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    readings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    zero_entropy: Mapping[str, float] = field(default_factory=dict)
    decoding: Mapping[str, Any] = field(default_factory=dict)
    probe: Mapping[str, Any] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)
    image_use: Mapping[str, int] = field(default_factory=dict)
    no_logprob: Mapping[str, int] = field(default_factory=dict)
    served: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    draws_verdict: DrawsVerdict | None = None
    checks: tuple[AnswerCheck, ...] = ()
    setting_verdicts: tuple[SettingVerdict, ...] = ()
    independence: Independence | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def unreliable(self) -> str | None:
        """Why the run's numbers cannot be relied on, None where nothing speaks against it."""
        return "; ".join(f.text for f in self.findings if f.unreliable) or None

    @property
    def unchecked(self) -> list[str]:
        """Tests that could not be made where something was sampled, and why."""
        draws = self.draws_verdict if self.checks else None
        verdicts = (
            [AnswerCheck("draws against their log-probabilities", draws.state, draws.reason or "")] if draws else []
        )
        return [f"{c.name} ({c.text})" for c in (*verdicts, *self.checks) if c.state == "not verifiable"]

    def to_dict(self) -> dict[str, Any]:
        values = {**asdict(self), "setting_verdicts": [verdict.to_dict() for verdict in self.setting_verdicts]}
        return {**values, "findings": [asdict(f) for f in self.findings], "unreliable": self.unreliable}


def health_of(run: Run) -> Health:
    """Count a run's soundness.

    Args:
        run: with `settings["sampled"]` (decoding, probe, image use), `settings["failed"]` and
            `settings["outcome"]["zero_entropy"]` where these were recorded.
    """
    sampled = run.settings.get("sampled") or {}
    n_failed = len(run.settings.get("failed") or ())
    # The label of the answer set: people's own labels come without a verdict.
    decided = [{**(run.verdicts.get(a.id) or {}), "label": a.label} for a in run.answer_sets]
    entropies = (run.settings.get("outcome") or {}).get("zero_entropy") or {}
    shares = {name: share for name, share in entropies.items() if share is not None}
    documents = run.settings.get("documents") or {}
    read = reads_replies(documents.get("judge"))
    return measure_health(run.answer_sets, sampled, n_failed, decided, shares, documents.get("grouping"), read=read)


def measure_health(
    answer_sets: Sequence[AnswerSet],
    sampled: Mapping[str, Any],
    n_failed: int = 0,
    verdicts: Sequence[Mapping[str, Any] | None] | None = None,
    zero_entropy: Mapping[str, float] | None = None,
    grouping: Mapping[str, Any] | None = None,
    *,
    read: bool = False,
) -> Health:
    """Health of answers that are in no run yet; see `health_of`. `read`: the texts are what was read in replies."""
    answers = [answer for answer_set in answer_sets for answer in answer_set.answers]
    distinct = [len({answer.text for answer in a.clean}) for a in answer_sets if len(a.clean) > 1]
    draws = [a.clean for a in answer_sets]
    draws_verdict = verdict_on(draws, sampled.get("decoding") or {})
    served = _served(answers)
    counts = Health(
        documents=len(answer_sets),
        failed=n_failed,
        draws=len(answers),
        same_clean=_share([n == 1 for n in distinct]),
        distinct_clean=sum(distinct) / len(distinct) if distinct else None,
        cut=_share([_is_cut(answer) for answer in answers]),
        empty=_share([not answer.text.strip() for answer in answers]),
        filtered=_share([answer.finish == "filtered" for answer in answers]),
        without_logprob=_share([answer.mean_logprob is None for answer in answers]),
        unlabelled=_share([a.label is None for a in answer_sets]),
        unreadable=_share([_is_unreadable(verdict or {}) for verdict in verdicts]) if verdicts is not None else None,
        unread_replies=_unread_replies(verdicts or []),
        outcomes=_outcomes(verdicts or []),
        labels={name: sum(a.label == label for a in answer_sets) for label, name in enumerate(_LABELS)},
        readings=readings_of(verdicts or []),
        zero_entropy=dict(zero_entropy or {}),
        decoding=sampled.get("decoding") or {},
        probe=sampled.get("probe") or {},
        server=sampled.get("server") or {},
        image_use=sampled.get("image_use") or {},
        no_logprob=dict(Counter(answer.no_logprob for answer in answers if answer.no_logprob is not None)),
        served=served,
        draws_verdict=draws_verdict,
        checks=tuple(answer_checks(answer_sets, sampled.get("decoding") or {}, read=read)),
        setting_verdicts=setting_verdicts(sampled, draws_verdict, served, answer_sets),
        independence=independence_of(answer_sets),
    )
    findings = [
        *_sample_findings(counts),
        *(Finding(c.text, c.unreliable) for c in counts.checks if c.state == "contradicted"),
        *_server_findings(counts),
        *_answer_findings(counts),
        *_label_findings(counts, verdicts),
        *_image_findings(counts),
        *_group_findings(counts),
        *_token_findings(answers),
        *(Finding(text) for text in hidden_dependence(answer_sets, grouping or {})),
    ]
    ordered = sorted(findings, key=lambda finding: not finding.unreliable)
    return Health(**{**vars(counts), "findings": tuple(ordered)})


def _sample_findings(h: Health) -> Iterator[Finding]:
    hot = h.decoding.get("temperature") != 0
    if h.same_clean is not None and h.same_clean >= _CERTAIN[0] and hot:
        greedy = h.same_clean >= _CERTAIN[1]
        why = (
            "; the model or its server seems to decode greedily, so that no entropy can tell anything" if greedy else ""
        )
        yield Finding(f"{WHOLE_PERCENT(h.same_clean)} of the documents have one and the same clean answer{why}", greedy)
    if hot:
        for name, share in h.zero_entropy.items():
            if share >= _CERTAIN[0]:
                yield Finding(f"under {name} {WHOLE_PERCENT(share)} of the documents have a semantic entropy of 0")
    if h.probe.get("raw_logprobs") is False:
        yield Finding("log-probabilities change with the temperature: they are not those of the raw distribution")
    if h.probe.get("seeds_repeat") is False:
        yield Finding("the same seed gives other answers: a draw that is made again may differ")
    if h.without_logprob == 1:
        yield Finding("there are no log-probabilities at all: all samples weigh the same (discrete entropy)")
    elif h.without_logprob:
        yield Finding(
            f"{PERCENT(h.without_logprob)} of the draws lack a log-probability: equal weights in their documents"
        )
    if h.draws_verdict is not None and h.draws_verdict.state == "contradicted":
        yield Finding(f"draws against their own log-probabilities: {draws_line(h.draws_verdict)}", True)
    for verdict in h.setting_verdicts:
        if verdict.state == "contradicted" and verdict.by == "probe" and verdict.setting not in (SEED, BASE):
            yield Finding(f"{verdict.setting}: {verdict.evidence}", verdict.unreliable)
    for reason, count in sorted(h.no_logprob.items()):
        yield Finding(f"{count} of {h.draws} draws have no log-probability: {reason}")


def _server_findings(h: Health) -> Iterator[Finding]:
    reported_elsewhere = ("refused", *(("answers_of_other_tokens",) if OTHER_TOKENS in h.no_logprob else ()))
    for line in server_lines({**h.server, **dict.fromkeys(reported_elsewhere)}):
        yield Finding(line)
    for name, values in h.served.items():
        if len(values) > 1:
            counted = ", ".join(f"{value} ({n} answers)" for value, n in list(values.items())[:_MOST_NAMED])
            text = f"answers come from more than one model behind one name: {name} {counted}"
            others = f" and {len(values) - _MOST_NAMED} more" if len(values) > _MOST_NAMED else ""
            yield Finding(text + others, name == "model")
    sent = h.decoding.get("sent") or {}
    refused = sent.get("refused")
    if refused and "rest" in sent:
        names = ", ".join(map(str, refused))
        yield Finding(f"the server refuses {names}: what it has in place of {names} is not known")


def _answer_findings(h: Health) -> Iterator[Finding]:
    if h.failed:
        share = h.failed / (h.failed + h.documents)
        yield Finding(f"{h.failed} of {h.failed + h.documents} documents failed and are left out", share > _FAILED[1])
    kinds = (
        (h.cut, _CUT, "reached the token limit or never ended a thought (max_new_tokens)"),
        (h.empty, _EMPTY, "are empty"),
        (h.filtered, _FILTERED, "were stopped by a content filter"),
    )
    for share_of, (some, many), what in kinds:
        if share_of is not None and share_of > some:
            yield Finding(f"{PERCENT(share_of)} of the draws {what}", share_of > many)


def _label_findings(h: Health, verdicts: Sequence[Mapping[str, Any] | None] | None) -> Iterator[Finding]:
    if verdicts is None or not h.documents:
        return
    if not h.outcomes:
        return  # not judged yet, which every table says
    few = min(h.labels, key=lambda name: h.labels[name], default=None)
    if reason := reliability(verdicts):
        yield Finding(reason.removeprefix("unreliable: "), unreliable=True)
    if h.unreadable is not None and h.unreadable > _UNREADABLE:
        yield Finding(f"in {PERCENT(h.unreadable)} of the documents a reply was unreadable, so that there is no label")
    if h.unread_replies is not None and h.unread_replies > _UNREAD_REPLIES:
        yield Finding(f"{PERCENT(h.unread_replies)} of the rechecks and sampled replies could not be read")
    labelled = sum(h.labels.values())
    if few is not None and labelled and (n := h.labels[few]) < _FEWEST_LABELS:
        consequence = "every AUROC is undefined" if n == 0 else "AUROCs tell next to nothing"
        yield Finding(f"only {n} of {labelled} labelled answers are {few}: {consequence}")
    yield from _outcome_findings(h)


def _outcome_findings(h: Health) -> Iterator[Finding]:
    """Outcomes of the answers, where they take many of them out of the numbers."""
    without = {name: h.outcomes.get(name, 0) for name in _WITHOUT_LABEL if h.outcomes.get(name)}
    share = sum(without.values()) / h.documents
    if share > _NO_LABEL[0]:
        parts = ", ".join(f"{n} {name}" for name, n in without.items())
        yield Finding(
            f"{PERCENT(share)} of the answers have no label ({parts}) and are in no AUROC", share > _NO_LABEL[1]
        )
    if soft := h.outcomes.get(SOFTLY_READ, 0):
        bases = ", ".join(f"{name} {n}" for name, n in h.readings.get("soft", {}).items())
        yield Finding(
            f"{soft} replies were read only softly{f' ({bases})' if bases else ''} and no second reading confirmed "
            "them: no label (the judge's `fallback` names a model that reads them)"
        )


_WITHOUT_LABEL = (DECLINED, SOFTLY_READ, UNREAD, UNREAD_JUDGE, CUT_OFF, REQUEST_FAILED)


def _outcomes(verdicts: Sequence[Mapping[str, Any] | None]) -> dict[str, int]:
    """Number of documents by outcome; empty where no verdict has a label or a reason."""
    if all(not verdict or (verdict.get("label") is None and not verdict.get("reason")) for verdict in verdicts):
        return {}
    counts = Counter(outcome_of(verdict) for verdict in verdicts)
    return {name: counts[name] for name in OUTCOMES if counts[name]}


def _image_findings(h: Health) -> Iterator[Finding]:
    for kind, what in (("blank", "a blank picture"), ("other", "another document's picture")):
        n, unchanged = h.image_use.get(kind, 0), h.image_use.get(f"{kind}_same", 0)
        if n >= _FEWEST_CHECKED and unchanged >= _BLIND * n:
            yield Finding(
                f"{unchanged} of {n} baseline answers stay the same on {what}: they hardly depend on the picture"
            )


def _group_findings(h: Health) -> Iterator[Finding]:
    independence = h.independence
    if independence is None or independence.groups == h.documents:
        return
    # Where answers to one question are no more alike than others, as in a set of true and false twins, it is no matter.
    if independence.repeated and (independence.design_effect is None or independence.design_effect >= _DEPENDENT):
        yield Finding(f"{independence.repeated:,} documents ask again what another one of their group has asked")
    if independence.design_effect is not None and independence.design_effect >= _DEPENDENT:
        effect = Format(digits=2)(independence.design_effect)
        yield Finding(
            f"{h.documents:,} documents are {independence.groups:,} groups: the variance of the hallucination rate is "
            f"{effect} times that of independent documents (design effect); intervals take the groups",
            accounted=True,
        )
    if independence.effective < FEW_GROUPS:
        effective = Format(digits=1)(independence.effective)
        yield Finding(f"the documents are worth {effective} groups of equal size: intervals are rough")


def _token_findings(answers: Sequence[Answer]) -> Iterator[Finding]:
    marked = [answer.text for answer in answers if without_template_tokens(answer.text) != answer.text]
    if not marked:
        return
    text = f"{len(marked)} answers have tokens of a chat template around them, such as {shown(marked[0])}"
    yield Finding(f"{text}: the same answer without them counts as another one")


def _is_cut(answer: Answer) -> bool:
    """Whether the answer reached the token limit, or its last thought has no end."""
    return answer.finish == "length" or without_thoughts(answer.text)[1]


def _is_unreadable(verdict: Mapping[str, Any]) -> bool:
    """Whether the judge's reply could not be read; judges record that in different ways."""
    if verdict.get("label") is not None:
        return False
    category, reason = verdict.get("category"), verdict.get("reason")
    has_unread_reply = isinstance(verdict.get("raw"), str) and category is None
    return has_unread_reply or category == "unreadable" or (isinstance(reason, str) and reason.startswith("unreadable"))


def _unread_replies(verdicts: Sequence[Mapping[str, Any] | None]) -> float | None:
    """Share of unread replies among the rechecks of objects and the draws that are read, as suites record them."""
    present = [verdict for verdict in verdicts if verdict]
    rechecks = [entry["kind"] is None for verdict in present for entry in verdict.get("objects") or ()]
    draws = [text == UNREADABLE for verdict in present for text in verdict.get("sampled") or ()]
    return _share([*rechecks, *draws])


def _served(answers: Sequence[Answer]) -> dict[str, dict[str, int]]:
    """Number of answers with each value, by field of `Served`, the most frequent first; unknown values are left out."""
    servers = [answer.served for answer in answers if answer.served is not None]
    values = {
        f.name: Counter(value for server in servers if (value := getattr(server, f.name)) is not None)
        for f in fields(Served)
    }
    return {name: dict(counts.most_common()) for name, counts in values.items() if counts}


def draws_line(verdict: DrawsVerdict) -> str:
    """The verdict on draws against their own log-probabilities, with its numbers."""
    parts = [verdict.reason] if verdict.reason else []
    if verdict.repeats is not None and verdict.expected is not None:
        parts.append(repeats_text(verdict.repeats, verdict.expected))
    if verdict.p_value is not None:
        t = "" if verdict.t is None else f"t {format_value(verdict.t, Format(digits=1, signed=True))}, "
        parts.append(f"{t}p {format_p(verdict.p_value)}, {verdict.documents} documents")
    if verdict.state == "not contradicted":
        parts += [] if verdict.two_sided else ["the end token is not known: by what draws begin with"]
    return f"{verdict.state}: {'; '.join(parts)}"


def decoding_line(health: Health) -> str | None:
    """Return the settings asked for and their verdicts on one line; None where none were recorded.

    Args:
        health: of a run.
    """
    decoding = health.decoding
    if not decoding.get("asked"):
        return None
    requested = f"{decoding['asked']}, T {decoding.get('temperature')}"
    method = mitigation_line(decoding)
    requested = f"{requested}, {method}" if method else requested
    return "; ".join([requested, *([verdicts] if (verdicts := summary_of(health.setting_verdicts)) else [])])


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
