"""A model's words: draws, answers, and all the answers to one question.

An `AnswerSet` is the one record that travels through the whole package: from the model to the clustering, into the
answer store, in lmms-eval's sample files and in the JSON lines that `hedge score` reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, Strict, TypeAdapter, ValidationInfo

from hedge_tasks.data import cells
from hedge_tasks.data.option_order import spellings
from hedge_tasks.data.spans import LabelledSpan, read_spans, spans_as_json
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.records import CleanText, Text, checked

Condition = Literal["baseline", "clean", "noisy"]

Finish = Literal["stop", "length", "filtered"]
"""Why a model stopped: it was done, it reached the token limit, or a content filter stopped it."""

_REPORT = "sampled"


def _log_probability(value: object) -> object:
    return outside.log_probability(value, "log-probability") if isinstance(value, float) else value


def _label(value: object) -> object:
    plain = cells.without_decimals(value)
    if isinstance(value, bool) or plain not in (None, 0, 1):
        raise DataError(f"expected 0 (supported), 1 (hallucinated) or null, got {outside.shown(value)}")
    return plain


def _id(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _none_is(default: Any) -> BeforeValidator:
    return BeforeValidator(lambda value: default if value is None else value)


def _without_follow_ups(value: tuple[AnswerSet, ...]) -> tuple[AnswerSet, ...]:
    if any(answers.follow_ups for answers in value):
        raise DataError("follow-ups have no follow-ups of their own")
    return value


def _spans(value: object, info: ValidationInfo) -> tuple[LabelledSpan, ...]:
    return read_spans(value, info.data["baseline"].text) if "baseline" in info.data else ()


def _one_per_answer(value: tuple[int, ...] | None, info: ValidationInfo) -> tuple[int, ...] | None:
    n_clean, n_noisy = len(info.data.get("clean", ())), len(info.data.get("noisy", ()))
    if value is not None and len(value) != 1 + n_clean + n_noisy:
        raise DataError(
            f"{len(value)} ids for 1 baseline + {n_clean} clean + {n_noisy} noisy = {1 + n_clean + n_noisy}"
        )
    return value


LogProbability = Annotated[float, Strict(), Field(le=0), BeforeValidator(_log_probability)]
Id = Annotated[Text, BeforeValidator(_id)]
Token = tuple[CleanText, LogProbability]


@dataclass(frozen=True, slots=True)
class Draw:
    """One answer to be sampled.

    Attributes:
        condition: "baseline" (T = 0.1 on the clean image), "clean" or "noisy" (perturbed image).
        index: position within its condition, from 0.
        temperature: sampling temperature.
        seed: non-negative 63-bit integer that drives the sampling noise and, when noisy, the perturbation. It depends
            on the document's content and on (condition, index) alone, so that neither order, number of draws nor
            batching change what is drawn.
        perturbation: name of the image perturbation, None for the clean image.
    """

    condition: Condition
    index: int
    temperature: float
    seed: int
    perturbation: str | None = None


@dataclass(frozen=True, slots=True)
class Thought:
    """The thought of a model before its answer: a price, and evidence.

    Attributes:
        n_tokens: its length, with the marks around it.
        mean_logprob: of these tokens, in nats per token; None where it is not known.
    """

    n_tokens: Annotated[int, Strict(), Field(ge=0)]
    mean_logprob: LogProbability | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """Model and server that answered, as the server's reply says.

    Attributes:
        model: name of the model; of a path its last part.
        provider: of the model, as gateways tell it.
        system_fingerprint: of the server's software and settings.
    """

    model: CleanText | None = None
    provider: CleanText | None = None
    system_fingerprint: CleanText | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One sampled answer: its words, not its thoughts.

    Attributes:
        text: what the model wrote behind its thoughts, surrounding whitespace removed. May be empty. Where a thought
            has no end, all that was written. What no file can hold (a lone surrogate, NUL) becomes U+FFFD.
        mean_logprob: mean log-probability of its tokens in nats per token, over the model's distribution at
            temperature 1, special tokens left out. None where the model does not tell.
        n_tokens: number of tokens behind that mean.
        finish: why the model stopped; None where it does not tell.
        tokens: text and log-probability (nats) of each token, where they are known; they need not add up to the text.
        alternatives: for each of the tokens the likeliest ones in its place, itself perhaps among them, as text and
            log-probability; None where they are not known.
        end_logprob: log-probability of the end token (nats), where the model ended the answer and tells.
        thought: what it thought before; None without a thought, or where nothing is known of it.
        no_logprob: why the answer has no log-probability although the model told some.
        least_logprob: of one of its tokens (nats), and `n_zero`, how many tokens behind the first have exactly 0: by
            these placeholders are known (`hedge_tasks.data.placeholders`). None where no token is known.
        served: model and server that answered, where a server says so. Says nothing about the answer itself.
    """

    text: Text
    mean_logprob: LogProbability | None = None
    n_tokens: Annotated[int, Strict(), Field(ge=0)] | None = None
    finish: Finish | None = None
    tokens: tuple[Token, ...] | None = None
    alternatives: tuple[tuple[Token, ...], ...] | None = None
    end_logprob: LogProbability | None = None
    thought: Thought | None = None
    no_logprob: CleanText | None = None
    least_logprob: LogProbability | None = field(default=None, compare=False)
    n_zero: Annotated[int, Strict(), Field(ge=0)] | None = field(default=None, compare=False)
    served: Served | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", outside.clean(self.text))
        if self.alternatives is not None and (self.tokens is None or len(self.alternatives) != len(self.tokens)):
            raise DataError("alternatives: expected a list for each of the tokens")

    def to_dict(self) -> dict[str, Any]:
        return _dumped(self)

    @classmethod
    def read(cls, fields: object, where: str = "answer") -> Answer:
        """Check and build. Raises DataError that names `where` and the field."""
        return checked(cls, fields, where)


def log_probability(answer: Answer, *, with_end: bool = True) -> float | None:
    """Return the log-probability of a whole answer in nats, its end token included; None where it is not known.

    Args:
        with_end: the end token has to be known; otherwise what is returned is an upper bound.

    Example:
        >>> log_probability(Answer("a cyst", -0.5, 2, end_logprob=-0.25))
        -1.25
    """
    if answer.mean_logprob is None or answer.n_tokens is None or answer.thought is not None:
        return None
    if answer.end_logprob is None:
        # An answer of no token is as likely as its end token, which is not known then.
        return None if with_end else answer.mean_logprob * answer.n_tokens if answer.n_tokens else 0.0
    return (answer.mean_logprob * answer.n_tokens if answer.n_tokens else 0.0) + answer.end_logprob


@dataclass(frozen=True, slots=True)
class Drawn:
    """Where the answers to one question came from: the link from an answer store to a run.

    Attributes:
        definition: id of what its answers have in common (`hedge_tasks.sampling.definition.Definition.id`).
        document: key of the document's content.
        sha256: of the draws' keys and answers as the store has them, in the order baseline, clean, noisy.
    """

    definition: CleanText
    document: CleanText
    sha256: CleanText


OPTION = "option:"
"""The beginning of the name of a forced pass about an offered answer; the option follows."""


REVERSED = "reversed:"
"""The same where the options are shown in the other order; the letter that the option has in the given one follows."""


READ = "read:"
"""The same as the final answer behind the model's own baseline reply."""

NOISY = "noisy:"
"""The same on the picture of a noisy draw; the draw's number follows, a colon, and the option: "noisy:3:left"."""


def option_logprobs(forced: Mapping[str, Answer], prefix: str = OPTION) -> dict[str, float]:
    """Log-probability of each offered answer as the whole reply, in nats; empty where they were not asked for.

    Where a server tells no more than the first tokens of replies (`finish` "length"), of a reply that begins so.

    Args:
        forced: of an answer set.
        prefix: `OPTION`, `REVERSED` or `READ`, or `NOISY` with the number of a draw and a colon.

    Example:
        >>> option_logprobs({"option:yes": Answer("yes", -0.25, 2), "blank": Answer("a cyst", -1.0, 3)})
        {'yes': -0.5}
    """
    return {
        name.removeprefix(prefix): answer.mean_logprob * answer.n_tokens
        for name, answer in forced.items()
        if name.startswith(prefix) and answer.mean_logprob is not None and answer.n_tokens
    }


def _n_passes(name: str, answer: Answer) -> int:
    """Of one forced text: a letter as the whole reply is read in every way to write it."""
    whole = name.startswith((OPTION, REVERSED, READ, NOISY)) and answer.finish != "length"
    return len(spellings(answer.text)) if whole else 1


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """All the answers to one question.

    Attributes:
        id: identifies the question within its data set.
        baseline: A0, the answer that is judged.
        clean: A1..An, n >= 1 answers at high temperature on the clean image.
        noisy: N1..Nm, m >= 0 answers at high temperature on perturbed images. VASE needs at least one.
        question: used by the with-question clustering.
        reference: the true answer, if known.
        label: 1 = the baseline answer is hallucinated, 0 = supported, None = not judged.
        group: what several questions share, usually the image; resampling for intervals respects it.
        question_type: such as open or closed; AUROCs within a type compare only questions of one.
        cluster_ids: one id an answer in the order of `texts`, once clustered.
        held_out: whether the threshold of the clustering was chosen on this document, so that no AUROC may count it.
        choice_errors: by score, what the choice of the clustering's threshold adds to the standard error of the AUROC.
        follow_ups: answers to what was asked about the same document after these, in the light of them.
        forced: by name, texts that the model was made to say and how likely it finds them; see
            `hedge_tasks.sampling.forced`.
        claims: parts of the baseline answer that are labelled each; see `hedge_tasks.claims`.
        drawn: where the answers came from, where they came out of a store. Says nothing about the answers themselves.
    """

    id: Id
    baseline: Answer
    clean: tuple[Answer, ...]
    noisy: Annotated[tuple[Answer, ...], _none_is(())] = ()
    question: Text | None = None
    reference: Text | None = None
    label: Annotated[int | None, BeforeValidator(_label)] = None
    group: Id | None = None
    question_type: Id | None = None
    cluster_ids: Annotated[tuple[Annotated[int, Strict()], ...] | None, AfterValidator(_one_per_answer)] = None
    follow_ups: Annotated[tuple[AnswerSet, ...], _none_is(()), AfterValidator(_without_follow_ups)] = ()
    held_out: Annotated[bool, Strict(), _none_is(False)] = False
    choice_errors: Annotated[Mapping[str, float], Field(exclude=True)] = field(default_factory=dict)
    forced: Annotated[Mapping[str, Answer], _none_is({})] = field(default_factory=dict)
    claims: Annotated[tuple[LabelledSpan, ...], BeforeValidator(_spans), PlainSerializer(spans_as_json)] = ()
    drawn: Drawn | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("id", "question", "reference", "group", "question_type"):
            if isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, outside.clean(text))

    @property
    def answers(self) -> tuple[Answer, ...]:
        """[A0] + clean + noisy, the order that cluster ids follow (HEDGE §3.1.2)."""
        return (self.baseline, *self.clean, *self.noisy)

    @property
    def texts(self) -> list[str]:
        return [answer.text for answer in self.answers]

    @property
    def has_logprobs(self) -> bool:
        """Whether every sampled (clean and noisy) answer has a log-probability. Half of them is as good as none.

        Where nothing was sampled, it is about the baseline answer.
        """
        return all(answer.mean_logprob is not None for answer in (*self.clean, *self.noisy) or (self.baseline,))

    @property
    def n_forced(self) -> int:
        """Forced passes behind it, those of its follow-ups included."""
        own = sum(_n_passes(name, answer) for name, answer in self.forced.items())
        return own + sum(further.n_forced for further in self.follow_ups)

    def with_label(self, label: int | None) -> AnswerSet:
        return replace(self, label=label)

    def with_choice(self, held_out: bool, errors: Mapping[str, float]) -> AnswerSet:
        """Return the set with what the choice of a clustering's threshold means for the AUROCs of its scores."""
        unchanged = (self.held_out, self.choice_errors) == (held_out, errors)
        return self if unchanged else replace(self, held_out=held_out, choice_errors=dict(errors))

    def with_follow_ups(self, follow_ups: Sequence[AnswerSet]) -> AnswerSet:
        return replace(self, follow_ups=tuple(follow_ups))

    def with_forced(self, forced: Mapping[str, Answer]) -> AnswerSet:
        return replace(self, forced=dict(forced))

    def with_clusters(self, cluster_ids: Sequence[int]) -> AnswerSet:
        """Raises ValueError where there is not one id an answer."""
        return replace(self, cluster_ids=tuple(int(i) for i, _ in zip(cluster_ids, self.answers, strict=True)))

    def with_answers(self, change: Callable[[Answer], Answer]) -> AnswerSet:
        """Return the set with every answer changed."""
        changed, noisy = tuple(map(change, self.answers)), 1 + len(self.clean)
        return replace(self, baseline=changed[0], clean=changed[1:noisy], noisy=changed[noisy:])

    def to_dict(self) -> dict[str, Any]:
        return {"noisy": [], **_dumped(self)}

    def to_json(self, report: Mapping[str, Any] | None = None) -> str:
        """One line of JSON.

        Args:
            report: how the model behaved, to travel with the first document of a task; see `read_report`.
        """
        return _json(self.to_dict(), report)

    @classmethod
    def read(cls, fields: object, where: str = "") -> AnswerSet:
        """Check and build from parsed JSON.

        Args:
            fields: `{"id", "question"?, "reference"?, "label"?, "group"?, "question_type"?, "baseline": {"text",
                "mean_logprob"?}, "clean": [...], "noisy"?: [...], "cluster_ids"?: [...], "follow_ups"?: [...],
                "forced"?: {NAME: {"text", "mean_logprob", "n_tokens"}}, "claims"?: [...]}`; of the last one see
                `hedge_tasks.data.spans.read_spans`. Unknown keys are ignored.
            where: put in front of every error, such as a file name and line number.

        Raises:
            DataError: names the place, the field and what was found there.
        """
        return checked(cls, fields, where)

    @classmethod
    def from_json(cls, text: str, where: str = "") -> AnswerSet:
        return cls.read(outside.parse_json(text, where or "answer set"), where)


class Refused(str):
    """Why a draw failed for good: asking for it again would end the same way (a picture the server cannot read)."""

    __slots__ = ()


class Unaskable(Refused):
    """Why the model that is asked cannot be asked this document at all, whoever tries; the others are asked."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FailedDocument:
    """A document that is left out, because a draw of it failed for good and the plan allows for some of these.

    Attributes:
        id: of the document.
        reason: why the first of its draws failed; an `Unaskable` one needs nobody's leave.
    """

    id: str
    reason: str

    def __str__(self) -> str:
        """One line of JSON: lmms-eval writes the text of a filtered response into its sample file."""
        return self.to_json()

    def to_json(self, report: Mapping[str, Any] | None = None) -> str:
        """One line of JSON; `report` as for `AnswerSet.to_json`."""
        return _json({"id": self.id, "failed": self.reason, "unaskable": isinstance(self.reason, Unaskable)}, report)


def read_report(text: str) -> Mapping[str, Any] | None:
    """How the model behaved, where the response brings it along."""
    fields = outside.parse_json(text, "answer set")
    report = fields.get(_REPORT) if isinstance(fields, Mapping) else None
    return report if isinstance(report, Mapping) else None


def read_response(text: str) -> AnswerSet | FailedDocument:
    """Return what the hook returned for one document.

    Raises:
        DataError: it is neither of the two.
    """
    fields = outside.parse_json(text, "answer set")
    if isinstance(fields, Mapping) and isinstance(fields.get("failed"), str):
        kind = Unaskable if fields.get("unaskable") is True else str
        return FailedDocument(str(fields.get("id")), kind(fields["failed"]))
    return AnswerSet.read(fields)


def _json(fields: dict[str, Any], report: Mapping[str, Any] | None) -> str:
    return json.dumps(fields | ({_REPORT: report} if report else {}), ensure_ascii=False)


@cache
def _writer(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _dumped(value: Any) -> dict[str, Any]:
    """The fields of a record for JSON, without those that have their default."""
    kind: Any = type(value)
    fields: dict[str, Any] = _writer(kind).dump_python(value, mode="json", exclude_defaults=True)
    return fields
