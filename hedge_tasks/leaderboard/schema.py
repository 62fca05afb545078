"""The records of a submission: what a file must look like before anything in it is looked at, and its JSON Schema."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict, ValidationError

from hedge_tasks.io.records import Count, Items, Label, Objects, Pair, Record, Share, fault, json_schema
from hedge_tasks.runs.run_settings import RunSettings

_LONGEST = 300

ShortText = Annotated[str, Field(max_length=500)]
Title = Annotated[str, Field(min_length=1, max_length=100)]
LongText = Annotated[str, Field(max_length=20_000)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
NamedSha256 = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Detector = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,80}$")]
Metric = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,80}$")]
Finish = Literal["stop", "length", "filtered"]
Plain = bool | int | float | ShortText | None
LogProbability = Annotated[float, Field(le=0)] | Literal["-inf"] | None
_MOST_SETTINGS = 1 << 20
_ADDRESS = r"^https://[A-Za-z0-9.-]+(?::[0-9]+)?(?:[/?#][!#-&(-;=?-~]*)?$"
_TIME = r"^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?(?:Z|[+-]\d{2}:\d{2})?)?$"


def _calendar_date(text: str) -> str:
    datetime.fromisoformat(text)  # raises ValueError: month 13
    return text


Time = Annotated[str, Field(max_length=40, pattern=_TIME), AfterValidator(_calendar_date)]
NotThere: Any = Field(default=None)
"""Of a key that may be left out, and is not null."""


class SubmittedEntry(Record):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    task: Annotated[str, Field(min_length=1, max_length=200)]
    model: ShortText
    created: Time
    url: Annotated[str, Field(pattern=_ADDRESS, max_length=500)] = NotThere
    weights: Annotated[Literal["open", "closed"], Field(description="Whether anybody can have the weights.")] = NotThere
    parameters: Annotated[float, Field(ge=1e-6, le=100_000, description="Of the model, in billions.")] = NotThere
    note: Annotated[str, Field(max_length=2000)] = NotThere


class SubmittedRun(Record):
    """SHA-256 that the closing line of the run file states; null for a run that was none."""

    sha256: Sha256 | None


class Labels(Record):
    """Settings of the judge; and a digest of the label store's keys with the labels, sorted, null without a store."""

    judge: Objects[Any] | list[Any] | None
    store: NamedSha256 | None


class HealthFinding(Record):
    text: Annotated[str, Field(max_length=2000)]
    unreliable: bool


class SubmittedSetting(Record):
    """Whether a setting of the sampling was what was asked for: what says so, and the power of the test that could have
    said otherwise, by deviation."""

    setting: Annotated[str, Field(max_length=100)]
    state: Literal["verified", "not contradicted", "not verifiable", "contradicted"]
    evidence: Annotated[str, Field(max_length=1000)]
    asked: float = NotThere
    power: Objects[Share] = NotThere
    unreliable: bool = NotThere
    by: Literal["draws", "probe", "replies"] = NotThere


class SubmittedHealth(Record):
    """Findings of `hedge health` on the run; a run that is unreliable is not ranked."""

    unreliable: Annotated[str, Field(max_length=2000)] | None
    findings: Items[HealthFinding]
    settings: Items[SubmittedSetting]


class Summary(Record):
    documents: Annotated[int, Field(ge=1)]
    labelled: Count
    hallucinated: Count
    declined: Annotated[Count, Field(description="Answers that claim nothing: refusals, doubts, nothing.")]
    hallucination_rate: Share | None
    n_clean: Count
    n_noisy: Count


class _StatedNumber(Record):
    """Standard error, 95 % interval, and why there is none, of any number beside its value."""

    stderr: float | None
    low: float | None
    high: float | None
    reason: ShortText | None


class _StatedShare(_StatedNumber):
    low: Share | None
    high: Share | None


class SuiteNumber(_StatedNumber):
    title: Title
    higher_is_better: bool
    value: float | None
    n: Count
    n_groups: Count


class SubmittedAuroc(_StatedShare):
    """ROC-AUC with its standard error and 95 % interval (DeLong; by group where documents share one), six decimals."""

    auroc: Share | None
    n: Count
    n_positive: Count


class PricedDetector(Record):
    """Title of a detector, and how many answers a question it costs besides the baseline answer."""

    title: Title
    draws: Count


class SubmittedClustering(Record):
    settings: Objects[Any]
    alpha: float
    choice_errors: Annotated[
        Objects[Share],
        Field(description="By detector: what the choice of the clustering's threshold adds to the standard error."),
    ]
    detectors: Annotated[dict[Detector, PricedDetector], Field(min_length=1)]
    aggregates: Objects[SubmittedAuroc]


class ClaimLabels(Record):
    silent: Literal["unlabelled", "hallucinated"]
    errors: Literal["all", "major", "minor", "major-against-rest"]
    by: ShortText


class ClaimDetector(PricedDetector):
    blind: bool


class Pooled(_StatedShare):
    value: Share | None
    n: Count
    n_positive: Count


class Within(_StatedShare):
    value: Share | None
    n_pairs: Count


class ClaimAurocs(Record):
    pooled: Pooled
    within: Within


class SubmittedClaims(Record):
    """Which claims of long answers are hallucinated: detectors of claims, and ROC-AUCs over all claims and within the
    answer; six decimals."""

    settings: Annotated[Objects[Any], Field(description="Of the decomposition and of who gave the support.")]
    contradicts: Annotated[bool, Field(description="Whether the support tells contradiction from silence.")]
    labels: ClaimLabels
    detectors: dict[Detector, ClaimDetector]
    aggregates: Objects[ClaimAurocs]


class BlindNumber(Record):
    """ROC-AUC of a blind baseline; reversed: turned round, because it is better so."""

    name: Detector
    reversed: bool
    auroc: Share
    stderr: float | None
    low: Share | None
    high: Share | None
    n: Count
    n_positive: Count


class SubmittedBlind(Record):
    """Blind baselines on the documents that the detectors of a clustering count, the best first, and the detectors that
    do not beat the best (paired, max-T); six decimals."""

    rows: Items[BlindNumber]
    not_better: Items[Detector]


class AuditStratum(Record):
    """Documents that had the same chance of being labelled."""

    title: Annotated[str, Field(max_length=500)]
    documents: Count
    labelled: Count


class SubmittedAudited(_StatedShare):
    """A number against experts: for documents like these, and the interval for these very documents; six decimals."""

    value: Share | None
    run_low: Share | None
    run_high: Share | None
    n: Count
    n_labels: Count


class SubmittedAudit(Record):
    """Labels of experts on a designed sample (`hedge audit`): who they are in roles and numbers, Cohen's kappa of two
    who labelled the same, hidden controls (asked, right), the strata, and numbers against experts."""

    by: Annotated[str, Field(max_length=100)]
    people: Count
    kappa: Annotated[float, Field(ge=-1, le=1)] | None
    controls: Pair[Count]
    strata: Annotated[Items[AuditStratum], Field(min_length=1)]
    aggregates: Objects[Objects[SubmittedAudited]]
    rates: Objects[SubmittedAudited]


class AuditedDocument(Record):
    """Its stratum, what each expert said (nothing where it was not drawn), and the image that was drawn whole."""

    stratum: Count
    said: Items[Literal["hallucinated", "supported", "no answer"]]
    unit: Count | None = None


class Matrix(Record):
    """Numbers in base64, little-endian, with their shape."""

    shape: Annotated[tuple[Count, Count, Count], Strict(False)]
    type: Literal["<f4", "<f8"]
    data: str


class SubmittedDigests(Record):
    """First 16 hexadecimal digits of SHA-256 of question, reference and pictures, as in the task's manifest."""

    question: Digest | None
    reference: Digest | None
    pictures: Digest | None


class SubmittedJudgement(Record):
    """Who judged, with the version; the kind of hallucination; and the keys of label stores."""

    judge: ShortText | None
    category: ShortText | None
    keys: Items[Sha256]


class ClaimsOfDocument(Record):
    """The claims of the baseline answer: their characters, their labels, and their support (contradiction, neutral,
    entailment) by each draw."""

    spans: Items[Pair[Count]]
    labels: Items[Label | None]
    clean: Matrix
    noisy: Matrix
    elsewhere: Matrix = NotThere
    scores: Objects[Items[float | None]]
    texts: Items[LongText] = NotThere


class AnsweredBy(Record):
    """Who answered, as the replies of a server say."""

    model: ShortText = NotThere
    provider: ShortText = NotThere
    system_fingerprint: ShortText = NotThere


class DrawnFrom(Record):
    """Definition, document and SHA-256 of all draws in the answer store."""

    definition: Annotated[str, Field(max_length=100)]
    document: Annotated[str, Field(max_length=200)]
    sha256: Sha256


class SubmittedClusters(Record):
    clusters: Annotated[Items[Count], Field(min_length=1)]
    scores: Objects[float | None]
    held_out: Annotated[
        bool, Field(description="The clustering's threshold was tuned on this document, so no aggregate counts it.")
    ] = NotThere


class FollowUp(Record):
    """A question asked in the light of the baseline answer, with the first reply."""

    id: ShortText
    question: str | None
    reply: str
    finish: Finish | None


class Texts(Record):
    """Where their licence allows it, or the submitter asked for it."""

    question: str | None = None
    reference: str | None = None
    answers: Items[str]
    reply: Annotated[
        LongText, Field(description="Of judges that read replies: what the model wrote, before it was read.")
    ] = NotThere
    follow_ups: Items[FollowUp] = NotThere
    finish: Items[Finish | None] = NotThere


class SubmittedDocument(Record):
    id: Annotated[str, Field(min_length=1, max_length=500)]
    label: Label | None
    group: ShortText | None
    question_type: ShortText | None
    digests: SubmittedDigests
    judged: SubmittedJudgement
    suite: Annotated[
        Objects[Objects[Plain | Objects[Plain]]],
        Field(description="By metric of the suite: what its number is made of, no texts."),
    ] = NotThere
    claims: ClaimsOfDocument = NotThere
    audit: AuditedDocument = NotThere
    blind: Annotated[
        Objects[float | None],
        Field(description="Scores of blind baselines, which see neither picture nor draws; null without a label."),
    ] = NotThere
    drawn: DrawnFrom = NotThere
    n_clean: Count
    logprobs: Annotated[
        Items[LogProbability],
        Field(
            min_length=1,
            description="Mean token log-probability of each answer in nats, at most 0: baseline, clean, noisy. null: "
            'unknown; "-inf": impossible.',
        ),
    ]
    n_tokens: Annotated[
        Items[Count | None], Field(min_length=1, description="Tokens of each answer, in the same order.")
    ] = NotThere
    end_logprobs: Annotated[
        Items[LogProbability],
        Field(
            description="Log-probability of the end token of each answer, in nats. Without them fewer settings can be "
            "verified."
        ),
    ] = NotThere
    thoughts: Annotated[Items[Count | None], Field(description="Tokens that each answer was thought over in.")] = (
        NotThere
    )
    answered_by: Annotated[
        Items[Annotated[tuple[Annotated[int, Field(ge=1)], AnsweredBy | None], Strict(False)]],
        Field(
            description="How many answers in a row, in the same order, came from whom. Without it nobody can tell "
            "whether one model answered."
        ),
    ] = NotThere
    clusterings: Objects[SubmittedClusters]
    texts: Texts = NotThere


class Submission(Record):
    """One run of one task: aggregates, and per document the label, the cluster ids, the log-probabilities and the
    scores that they follow from; with the texts where their licence allows it. Written by `hedge leaderboard submit`,
    checked by `hedge leaderboard validate`."""

    hedge_submission: Literal[4]
    digest: Annotated[
        NamedSha256,
        Field(description="SHA-256 of everything else as JSON with sorted keys, no blanks, non-ASCII escaped."),
    ]
    entry: SubmittedEntry
    versions: Objects[Annotated[str, Field(max_length=200)]]
    run: SubmittedRun
    settings: RunSettings
    labels: Labels
    health: SubmittedHealth
    summary: Summary
    suite: Annotated[
        dict[Metric, SuiteNumber],
        Field(
            description="The suite's own numbers (F1, MediHall Score, Hal-D ...), by name of their row in lmms-eval's "
            "table; six decimals."
        ),
    ]
    clusterings: Annotated[Objects[SubmittedClustering], Field(min_length=1)]
    claims: SubmittedClaims = NotThere
    audit: SubmittedAudit = NotThere
    blind: Annotated[Objects[SubmittedBlind], Field(description="By clustering.")]
    documents: Annotated[Items[SubmittedDocument], Field(min_length=1)]


def submission_schema() -> dict[str, Any]:
    """The JSON Schema of submissions."""
    return {**json_schema(Submission), "title": "hedge-tasks leaderboard submission"}


def schema_fault(value: Any) -> str | None:
    """The first thing that is wrong with a submission, with its place such as `documents[3].label`; None if valid."""
    try:
        Submission.model_validate(value)
    except ValidationError as error:
        return _printable(fault(Submission, error))
    if (length := len(json.dumps(value["settings"]))) > _MOST_SETTINGS:
        return f"settings: {length} characters, more than {_MOST_SETTINGS}"
    return None


def _printable(text: str) -> str:
    """An error that may be shown: names and values in it are the submitter's."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:_LONGEST])
