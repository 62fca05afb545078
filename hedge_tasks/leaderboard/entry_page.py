"""The page of an entry: what of it was checked, its numbers, its curves, its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, name_of
from hedge_tasks.detectors.registry import names
from hedge_tasks.leaderboard.audits import audited_number, whose
from hedge_tasks.leaderboard.blind import not_better, shown_rows
from hedge_tasks.leaderboard.board import stated_auroc, suite_titles, task_page
from hedge_tasks.leaderboard.detector_ranks import Priced
from hedge_tasks.leaderboard.entry import documents_part
from hedge_tasks.leaderboard.protocol import parameters_of, protocol_of, weights_of
from hedge_tasks.leaderboard.stated import number_in
from hedge_tasks.leaderboard.submission import stored_scores
from hedge_tasks.leaderboard.units import CLAIM_PARTS, claims_for_page
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.measures.run_finding import RunFinding
from hedge_tasks.numbers import Number
from hedge_tasks.report.pages import WITH_FIGURES, asset, render
from hedge_tasks.report.plots.figures import risk_coverage_chart, roc_chart
from hedge_tasks.report.svg import picture
from hedge_tasks.report.texts import clean, flat_settings
from hedge_tasks.runs.signed_runs import SETTING as SIGNED

PACKAGE = "hedge_tasks.leaderboard"


def entry_page(
    content: Mapping[str, Any],
    findings: ValidationFindings,
    file: str,
    rate: Number | None,
    detectors: Mapping[str, Mapping[str, Priced]],
    finding: RunFinding | None = None,
    why_none: str = "",
) -> str:
    """The page as HTML.

    Args:
        content: the submission.
        findings: what its validation found.
        file: name of the file that it was read from.
        rate: share of hallucinated answers.
        detectors: by clustering, what was computed here of each detector with all draws.
        finding: of the run, from what was computed again.
        why_none: why there is none.
    """
    clusterings = content["clusterings"]
    metrics = [
        (name, [_row(content, findings, name, detector, detectors) for detector in record["detectors"]])
        for name, record in clusterings.items()
    ]
    charts = [_charts(stored_scores(content, name), list(record["detectors"])) for name, record in clusterings.items()]
    aside = findings.set_aside
    return render(
        "entry.html.j2",
        scripts=[*map(asset, WITH_FIGURES)],
        styles=[asset("board.css", PACKAGE)],
        package=PACKAGE,
        title=f"{content['entry']['name']}, {content['entry']['task']}: HEDGE leaderboard",
        version=__version__,
        entry=content["entry"],
        summary=content["summary"],
        rate=rate,
        replayed=findings.answers.verified,
        private=findings.private,
        finding=finding,
        why_none=why_none,
        protocol=protocol_of(content),
        weights=weights_of(content),
        parameters=parameters_of(content),
        task_page=task_page(content["entry"]["task"]),
        facts=flat_settings({**content["entry"], **content["summary"], "digest": content["digest"], "file": file}),
        aside=aside,
        remarks=[text for text in _remarks(content, findings) if not any(text in reason for reason in aside)],
        parts=list(_parts(content, findings)),
        sampled=list(findings.sampled if findings.sampled is not None else _sampled(content)),
        suite=[
            (title, higher, number_in(content["suite"][name]), findings.suite[name])
            for name, (title, higher, _) in suite_titles([content]).items()
        ],
        claims=claims_for_page(content, findings.claims),
        whose=whose(content),
        blind={name: shown_rows(content, name) for name in clusterings},
        audit=content.get("audit"),
        audited_rate=audited_number(content, None, "hallucination_rate"),
        metrics=metrics,
        charts=charts,
        settings=flat_settings(
            {
                "versions": content["versions"],
                **{key: value for key, value in content["settings"].items() if key != SIGNED},
                "clusterings": {name: record["settings"] for name, record in clusterings.items()},
            }
        ),
    )


def _charts(scores: Sequence[Scores], detectors: Sequence[str]) -> list[Any]:
    """Draw the curves of the paper's detectors, or of the first that the entry has."""
    detector_names = [name for name in SCORE_NAMES if name in detectors] or list(detectors)[: len(SCORE_NAMES)]
    return [picture(roc_chart(scores, detector_names)), picture(risk_coverage_chart(scores, detector_names))]


def _row(
    content: Mapping[str, Any],
    findings: ValidationFindings,
    clustering: str,
    detector: str,
    computed: Mapping[str, Mapping[str, Priced]],
) -> dict[str, Any]:
    record = content["clusterings"][clustering]["detectors"][detector]
    priced = computed.get(clustering, {}).get(detector)
    return {
        "by_draws": None if priced is None else priced.by_draws,
        "name": name_of(detector) if detector in names() else clean(record["title"], 100),
        "draws": record["draws"],
        "private": None if findings.private is None else findings.private.aurocs.get(clustering, {}).get(detector),
        "estimate": stated_auroc(content, clustering, detector),
        "part": findings.detectors[clustering][detector],
        "experts": audited_number(content, clustering, detector),
        "not_better": not_better(content, clustering, detector),
    }


def _remarks(content: Mapping[str, Any], findings: ValidationFindings) -> list[str]:
    """Return remarks on the run: computed here, or the submission's own where texts are missing."""
    better = () if findings.private is None else findings.private.better
    stated = [f"The submission says: {finding['text']}" for finding in content["health"]["findings"]]
    own = stated if findings.remarks is None else findings.remarks
    return [*(f"Worse on private documents: {text}" for text in better), *own]


def _sampled(content: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (setting, verdict, evidence) of every setting of the sampling, as a submission without texts states it."""
    for setting in content["health"]["settings"]:
        value = "" if "asked" not in setting else f" {setting['asked']:g}"
        state = "self-reported" if setting["state"] == "verified" else setting["state"]
        evidence = f"the submission says: {setting['evidence']}" if setting["evidence"] else ""
        yield setting["setting"] + value, state, evidence


def _parts(content: Mapping[str, Any], findings: ValidationFindings) -> Iterator[tuple[str, str, bool | None, str]]:
    """Yield (part, state, whether it is verified, reason) of everything that somebody could have made up."""
    coverage, documents = findings.coverage, documents_part(findings)
    state = {None: "unknown", True: "whole", False: "partial"}[coverage.whole if coverage else None]
    yield "documents", state, documents.verified, documents.reason
    if (audit := findings.audit) is not None:
        yield "labels of experts", "signed" if audit.verified else "self-reported", audit.verified, audit.reason
    parts = {"labels": findings.labels}
    titles = suite_titles([content])
    for part in dict.fromkeys(findings.suite.values()):
        parts[", ".join(titles[name][0] for name, its in findings.suite.items() if its == part)] = part
    parts |= {f"clusters of {name}": part for name, part in findings.clusterings.items()}
    parts |= {what: findings.claims[key] for key, what in CLAIM_PARTS.items() if key in findings.claims}
    parts |= {f"scores of {name} (blind)": part for name, part in findings.blind.items()}
    for clustering, parts_by_detector in findings.detectors.items():
        for part in sorted(set(parts_by_detector.values()), key=lambda part: not part.verified):
            named = ", ".join(name for name, its in parts_by_detector.items() if its == part)
            parts[f"scores of {clustering}: {named}"] = part
    for what, part in parts.items():
        yield what, "recomputed" if part.verified else "self-reported", part.verified, part.reason
    if (private := findings.private) is not None:
        yield "private documents", "scored" if private.part.verified else "refused", *vars(private.part).values()
    yield "owner", "signed" if findings.owner.verified else "not signed", *vars(findings.owner).values()
    answers = findings.answers
    state = "replayed" if answers.verified else "self-reported"
    yield "answers and log-probabilities", state, answers.verified, answers.reason
