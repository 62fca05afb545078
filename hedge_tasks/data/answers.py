"""What a model said: draws, answers, and all the answers to one question.

An `AnswerSet` is the one record that travels through the whole package: from the model to the clustering, into the
answer store, in lmms-eval's sample files and in the JSON lines that `hedge score` reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from hedge_tasks.data.spans import LabelledSpan, read_spans
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside

Condition = Literal["baseline", "clean", "noisy"]

Finish = Literal["stop", "length", "filtered"]
"""Why a model stopped: it was done, it reached the token limit, or a content filter stopped it."""

_FINISHES = ("stop", "length", "filtered")
_REPORT = "sampled"


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
class Answer:
    """One sampled answer.

    Attributes:
        text: what the model wrote, surrounding whitespace removed. May be empty. What no file can hold (a lone
            surrogate, NUL) becomes U+FFFD.
        mean_logprob: mean log-probability of its tokens in nats per token, over the model's distribution at
            temperature 1, special tokens left out. None where the model does not tell.
        n_tokens: number of tokens behind that mean.
        finish: why the model stopped; None where it does not tell.
        tokens: text and log-probability (nats) of each token, where they are known; they need not add up to the text.
        alternatives: for each of the tokens the likeliest ones in its place, itself perhaps among them, as text and
            log-probability; None where they are not known.
    """

    text: str
    mean_logprob: float | None = None
    n_tokens: int | None = None
    finish: Finish | None = None
    tokens: tuple[tuple[str, float], ...] | None = None
    alternatives: tuple[tuple[tuple[str, float], ...], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", outside.clean(self.text))

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"text": self.text}
        if self.mean_logprob is not None:
            # JSON has no infinity; an impossible answer (probability 0) is written as the string "-inf".
            fields["mean_logprob"] = "-inf" if self.mean_logprob == -math.inf else self.mean_logprob
        if self.n_tokens is not None:
            fields["n_tokens"] = self.n_tokens
        if self.finish is not None:
            fields["finish"] = self.finish
        if self.tokens is not None:
            fields["tokens"] = _written_tokens(self.tokens)
        if self.alternatives is not None:
            fields["alternatives"] = [_written_tokens(of) for of in self.alternatives]
        return fields

    @classmethod
    def from_dict(cls, fields: object, where: str = "answer") -> Answer:
        """Check and build. Raises DataError that names `where` and the field."""
        if not isinstance(fields, Mapping):
            raise DataError(f"{where}: expected an object with 'text', got {_kind(fields)}")
        text = fields.get("text")
        if not isinstance(text, str):
            raise DataError(f"{where}.text: expected a string, got {_kind(text)}")
        n_tokens = fields.get("n_tokens")
        if n_tokens is not None and (not isinstance(n_tokens, int) or isinstance(n_tokens, bool) or n_tokens < 0):
            raise DataError(f"{where}.n_tokens: expected a non-negative integer, got {n_tokens!r}")
        finish = fields.get("finish")
        if finish not in (None, *_FINISHES):
            raise DataError(f"{where}.finish: expected {', '.join(_FINISHES)} or nothing, got {finish!r}")
        mean = _read_logprob(fields.get("mean_logprob"), f"{where}.mean_logprob")
        tokens = _read_tokens(fields.get("tokens"), f"{where}.tokens")
        return cls(text, mean, n_tokens, finish, tokens, _read_alternatives(fields.get("alternatives"), tokens, where))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Where the answers to one question came from: the link from an answer store to a run.

    Attributes:
        definition: id of what its answers have in common (`hedge_tasks.sampling.definition.Definition.id`).
        document: key of the document's content.
        sha256: of the draws' keys and answers as the store has them, in the order baseline, clean, noisy.
    """

    definition: str
    document: str
    sha256: str

    @classmethod
    def from_dict(cls, fields: object, where: str) -> Drawn | None:
        if fields is None:
            return None
        names = ("definition", "document", "sha256")
        if not isinstance(fields, Mapping) or not all(isinstance(fields.get(name), str) for name in names):
            raise DataError(f"{where}: expected an object with {', '.join(names)}, got {_kind(fields)}")
        return cls(*(outside.clean(fields[name]) for name in names))


OPTION = "option:"
"""What the name of a forced pass begins with that is about an offered answer; the option follows."""


def option_logprobs(forced: Mapping[str, Answer]) -> dict[str, float]:
    """Log-probability of each offered answer as the whole reply, in nats; empty where they were not asked for.

    Args:
        forced: of an answer set; an option whose pass failed is not there, so compare with what was offered.

    Example:
        >>> option_logprobs({"option:yes": Answer("yes", -0.25, 2), "blank": Answer("a cyst", -1.0, 3)})
        {'yes': -0.5}
    """
    return {
        name.removeprefix(OPTION): answer.mean_logprob * answer.n_tokens
        for name, answer in forced.items()
        if name.startswith(OPTION) and answer.mean_logprob is not None and answer.n_tokens
    }


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

    id: str
    baseline: Answer
    clean: tuple[Answer, ...]
    noisy: tuple[Answer, ...] = ()
    question: str | None = None
    reference: str | None = None
    label: int | None = None
    group: str | None = None
    question_type: str | None = None
    cluster_ids: tuple[int, ...] | None = None
    follow_ups: tuple[AnswerSet, ...] = ()
    held_out: bool = False
    choice_errors: Mapping[str, float] = field(default_factory=dict)
    forced: Mapping[str, Answer] = field(default_factory=dict)
    claims: tuple[LabelledSpan, ...] = ()
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

    def with_label(self, label: int | None) -> AnswerSet:
        return replace(self, label=label)

    def with_choice(self, held_out: bool, errors: Mapping[str, float]) -> AnswerSet:
        """What the choice of a clustering's threshold means for the AUROCs of this document's scores."""
        same = (self.held_out, self.choice_errors) == (held_out, errors)
        return self if same else replace(self, held_out=held_out, choice_errors=dict(errors))

    def with_follow_ups(self, follow_ups: Sequence[AnswerSet]) -> AnswerSet:
        return replace(self, follow_ups=tuple(follow_ups))

    def with_forced(self, forced: Mapping[str, Answer]) -> AnswerSet:
        return replace(self, forced=dict(forced))

    def with_clusters(self, cluster_ids: Sequence[int]) -> AnswerSet:
        if len(cluster_ids) != len(self.answers):
            raise DataError(f"{self.id}: {len(cluster_ids)} cluster ids for {len(self.answers)} answers")
        return replace(self, cluster_ids=tuple(int(i) for i in cluster_ids))

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"id": self.id}
        for name in ("question", "reference", "label", "group", "question_type"):
            if (value := getattr(self, name)) is not None:
                fields[name] = value
        fields["baseline"] = self.baseline.to_dict()
        fields["clean"] = [answer.to_dict() for answer in self.clean]
        fields["noisy"] = [answer.to_dict() for answer in self.noisy]
        if self.cluster_ids is not None:
            fields["cluster_ids"] = list(self.cluster_ids)
        if self.held_out:
            fields["held_out"] = True
        if self.forced:
            fields["forced"] = {name: answer.to_dict() for name, answer in self.forced.items()}
        if self.claims:
            fields["claims"] = [span.to_dict() for span in self.claims]
        if self.follow_ups:
            fields["follow_ups"] = [answer_set.to_dict() for answer_set in self.follow_ups]
        if self.drawn is not None:
            fields["drawn"] = asdict(self.drawn)
        return fields

    def to_json(self, report: Mapping[str, Any] | None = None) -> str:
        """One line of JSON.

        Args:
            report: how the model behaved, to travel with the first document of a task; see `read_report`.
        """
        return _json(self.to_dict(), report)

    @classmethod
    def from_dict(cls, fields: object, where: str = "") -> AnswerSet:
        """Check and build from parsed JSON.

        Args:
            fields: `{"id", "question"?, "reference"?, "label"?, "group"?, "question_type"?, "baseline": {"text",
                "mean_logprob"?}, "clean": [...], "noisy"?: [...], "cluster_ids"?: [...], "follow_ups"?: [...],
                "forced"?: {NAME: {"text", "mean_logprob", "n_tokens"}}, "claims"?: [...]}`; of the last one see
                `hedge_tasks.data.spans.read_spans`.
                Unknown keys are ignored.
            where: put in front of every error, such as a file name and line number.

        Raises:
            DataError: names the place, the field and what was found there.
        """
        at = f"{where}: " if where else ""
        if not isinstance(fields, Mapping):
            raise DataError(f"{at}expected a JSON object, got {_kind(fields)}")
        for key in ("id", "baseline", "clean"):
            if key not in fields:
                raise DataError(f"{at}field {key!r} is missing")
        baseline = Answer.from_dict(fields["baseline"], f"{at}baseline")
        answer_set = cls(
            id=_read_id(fields["id"], f"{at}id"),
            baseline=baseline,
            clean=_read_answers(fields["clean"], f"{at}clean"),
            noisy=_read_answers(_or_none_of_them(fields, "noisy"), f"{at}noisy"),
            question=_read_optional_str(fields.get("question"), f"{at}question"),
            reference=_read_optional_str(fields.get("reference"), f"{at}reference"),
            label=_read_label(fields.get("label"), f"{at}label"),
            group=_read_optional_id(fields.get("group"), f"{at}group"),
            question_type=_read_optional_id(fields.get("question_type"), f"{at}question_type"),
            held_out=_read_flag(fields.get("held_out"), f"{at}held_out"),
            forced=_read_forced(fields.get("forced"), f"{at}forced"),
            follow_ups=_read_follow_ups(_or_none_of_them(fields, "follow_ups"), f"{at}follow_ups"),
            claims=read_spans(fields.get("claims"), baseline.text, f"{at}claims"),
            drawn=Drawn.from_dict(fields.get("drawn"), f"{at}drawn"),
        )
        if fields.get("cluster_ids") is None:
            return answer_set
        return answer_set.with_clusters(_read_cluster_ids(fields["cluster_ids"], answer_set, f"{at}cluster_ids"))

    @classmethod
    def from_json(cls, text: str, where: str = "") -> AnswerSet:
        return cls.from_dict(outside.parse_json(text, where or "answer set"), where)


class Refused(str):
    """Why a draw failed for good: asking for it again would end the same way (a picture the server cannot read)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FailedDocument:
    """A document that is left out, because a draw of it failed for good and the plan allows for some of these.

    Attributes:
        id: of the document.
        reason: why the first of its draws failed.
    """

    id: str
    reason: str

    def __str__(self) -> str:
        """One line of JSON: lmms-eval writes the text of a filtered response into its sample file."""
        return self.to_json()

    def to_json(self, report: Mapping[str, Any] | None = None) -> str:
        """One line of JSON; `report` as for `AnswerSet.to_json`."""
        return _json({"id": self.id, "failed": self.reason}, report)


def read_report(text: str) -> Mapping[str, Any] | None:
    """How the model behaved, where the response brings it along."""
    fields = outside.parse_json(text, "answer set")
    report = fields.get(_REPORT) if isinstance(fields, Mapping) else None
    return report if isinstance(report, Mapping) else None


def read_response(text: str) -> AnswerSet | FailedDocument:
    """What the hook returned for one document.

    Raises:
        DataError: it is neither of the two.
    """
    fields = outside.parse_json(text, "answer set")
    if isinstance(fields, Mapping) and isinstance(fields.get("failed"), str):
        return FailedDocument(str(fields.get("id")), fields["failed"])
    return AnswerSet.from_dict(fields)


def _json(fields: dict[str, Any], report: Mapping[str, Any] | None) -> str:
    return json.dumps(fields | ({_REPORT: report} if report else {}), ensure_ascii=False)


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def _read_id(value: object, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise DataError(f"{where}: expected a string or an integer, got {_kind(value)}")
    return str(value)


def _read_optional_id(value: object, where: str) -> str | None:
    return None if value is None else _read_id(value, where)


def _read_optional_str(value: object, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise DataError(f"{where}: expected a string, got {_kind(value)}")
    return value


def _or_none_of_them(fields: Mapping[str, Any], key: str) -> object:
    return [] if fields.get(key) is None else fields[key]


def _read_flag(value: object, where: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise DataError(f"{where}: expected true or false, got {outside.shown(value)}")
    return bool(value)


def _read_label(value: object, where: str) -> int | None:
    if value is None or value != value:  # pandas writes NaN where there is no label
        return None
    if isinstance(value, bool) or value not in (0, 1):
        raise DataError(f"{where}: expected 0 (supported), 1 (hallucinated) or null, got {value!r}")
    return int(value)


def _read_logprob(value: object, where: str) -> float | None:
    if value is None:
        return None
    if value in ("-inf", -math.inf):
        return -math.inf
    if isinstance(value, int):
        value = outside.number(value, where)  # one that no float can hold must not get to the next lines
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"{where}: expected a number, got {value!r}")
    if math.isnan(value) or value > 0:
        raise DataError(f"{where}: {value} is no log-probability, which is at most 0")
    return float(value)


def _read_tokens(value: object, where: str) -> tuple[tuple[str, float], ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise DataError(f"{where}: expected a list of [text, log-probability], got {_kind(value)}")
    found = []
    for i, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise DataError(f"{where}[{i}]: expected [text, log-probability], got {outside.shown(pair)}")
        if (logprob := _read_logprob(pair[1], f"{where}[{i}]")) is None:
            raise DataError(f"{where}[{i}]: expected a log-probability, got nothing")
        found.append((outside.clean(pair[0]), logprob))
    return tuple(found)


def _written_tokens(tokens: Sequence[tuple[str, float]]) -> list[list[Any]]:
    return [[text, "-inf" if p == -math.inf else p] for text, p in tokens]


def _read_alternatives(
    value: object, tokens: Sequence[Any] | None, where: str
) -> tuple[tuple[tuple[str, float], ...], ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or tokens is None or len(value) != len(tokens):
        raise DataError(f"{where}.alternatives: expected a list for each of the tokens")
    return tuple(_read_tokens(of, f"{where}.alternatives[{i}]") or () for i, of in enumerate(value))


def _read_follow_ups(value: object, where: str) -> tuple[AnswerSet, ...]:
    if not isinstance(value, list):
        raise DataError(f"{where}: expected a list of answer sets, got {_kind(value)}")
    if any(isinstance(item, Mapping) and item.get("follow_ups") for item in value):
        raise DataError(f"{where}: follow-ups have no follow-ups of their own")
    return tuple(AnswerSet.from_dict(item, f"{where}[{i}]") for i, item in enumerate(value))


def _read_forced(value: object, where: str) -> dict[str, Answer]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DataError(f"{where}: expected an object, got {_kind(value)}")
    return {name: Answer.from_dict(item, f"{where}.{outside.shown(name)}") for name, item in value.items()}


def _read_answers(value: object, where: str) -> tuple[Answer, ...]:
    if not isinstance(value, list):
        raise DataError(f"{where}: expected a list of answers, got {_kind(value)}")
    return tuple(Answer.from_dict(item, f"{where}[{i}]") for i, item in enumerate(value))


def _read_cluster_ids(value: object, answer_set: AnswerSet, where: str) -> list[int]:
    if not isinstance(value, list) or any(isinstance(i, bool) or not isinstance(i, int) for i in value):
        raise DataError(f"{where}: expected a list of integers")
    if len(value) != len(answer_set.answers):
        n_clean, n_noisy = len(answer_set.clean), len(answer_set.noisy)
        raise DataError(
            f"{where}: {len(value)} ids for 1 baseline + {n_clean} clean + {n_noisy} noisy = {1 + n_clean + n_noisy}"
        )
    return value
