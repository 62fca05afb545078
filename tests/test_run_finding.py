"""The sentences and the state of trust that report, terminal and Python share."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from finished_runs import finished_run, suite_run

from hedge_tasks.cli import main
from hedge_tasks.measures.run_finding import finding_of, judge_in_words, trust_of_run
from hedge_tasks.report import ReportOptions, build_report
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(80)


def with_wrong(run: Run, wrong: int, n: int) -> Run:
    """The first `n` documents, the first `wrong` of which are hallucinated."""
    sets = tuple(a.with_label(int(i < wrong)) for i, a in enumerate(run.answer_sets[:n]))
    return replace(run, answer_sets=sets)


def by_counting(run: Run, detector: str) -> float:
    """How often a wrong answer has a higher score than a right one, pair by pair."""
    scores = scorer_of(run, None).score(run.answer_sets)
    wrong, right = ([s[detector] or 0.0 for s in scores if s.label == label] for label in (1, 0))
    return sum((a > b) + (a == b) / 2 for a in wrong for b in right) / len(wrong) / len(right)


@pytest.mark.slow
def test_the_sentence_says_the_numbers_of_the_run() -> None:
    finding = finding_of(RUN)
    labels = [a.label for a in RUN.answer_sets if a.label is not None]
    assert f"{100 * sum(labels) / len(labels):.0f} % of {len(labels)} judged answers are wrong [" in finding.text
    assert finding.lead is not None
    best = max(("se", "radflag", "vase"), key=lambda name: by_counting(RUN, name))
    assert finding.lead.detector == best
    assert f"right one {100 * by_counting(RUN, best):.0f} % of the time [" in finding.text
    assert finding.text.endswith("The labels are by the rule judge (version 1), unaudited.")


@pytest.mark.parametrize(("wrong", "n"), [(2, 24), (4, 40), (38, 40), (0, 20), (20, 20)])
def test_with_fewer_than_five_of_a_class_there_is_no_auroc(wrong: int, n: int) -> None:
    finding = finding_of(with_wrong(RUN, wrong, n))
    assert finding.lead is None
    why = "There is no ROC-AUC of a detector: " if 0 < wrong < n else " so detectors have nothing to tell apart."
    assert why in finding.text
    assert "of the time" not in finding.text
    assert finding.rate is not None
    assert finding.trust.level != "green"


@pytest.mark.parametrize(("undecided", "bounded"), [(4, False), (5, True)])
def test_with_more_than_five_percent_undecided_there_are_counts_and_bounds(undecided: int, bounded: bool) -> None:
    run = with_wrong(RUN, 20, 80)
    verdicts = {id: {**verdict, "label": 0} for id, verdict in run.verdicts.items()}
    last = [a.id for a in run.answer_sets[-undecided:]]
    verdicts |= {id: {"label": None, "judge": "rule 1", "reason": "open question"} for id in last}
    sets = tuple(a.with_label(None) if a.id in last else a for a in run.answer_sets)
    text = finding_of(replace(run, answer_sets=sets, verdicts=verdicts)).text
    counts = "Of 80 answers 20 are wrong, 55 right and 5 undecided: between 25 and 31 % are wrong."
    assert (counts in text) is bounded
    assert ("judged answers are wrong" in text) is not bounded
    assert ("hedge judge --judge llm" in text) is bounded
    # What the model declined is decided, and is none of the answers.
    verdicts |= {id: {"label": None, "judge": "rule 1", "basis": "refusal", "category": "no_answer"} for id in last}
    assert "undecided" not in finding_of(replace(run, answer_sets=sets, verdicts=verdicts)).text


def test_without_labels_nothing_is_said_of_wrong_answers() -> None:
    run = replace(RUN, answer_sets=tuple(a.with_label(None) for a in RUN.answer_sets), verdicts={})
    finding = finding_of(run)
    assert finding.sentences[0] == "No answer has a label, so nobody knows how many of them are wrong."
    assert finding.lead is None
    assert "No answer has a label, so there is no ROC-AUC." in " ".join(finding.trust.objections)


def test_a_detector_whose_interval_reaches_chance_is_no_finding() -> None:
    run = replace(RUN, answer_sets=tuple(a.with_label(i % 2) for i, a in enumerate(RUN.answer_sets)))
    assert "The best detector cannot be told from chance: " in finding_of(run).text


def test_an_evaluation_of_its_own_leads_with_its_number() -> None:
    assert re.match(r"F1: 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]\.", finding_of(suite_run(60)).text)


def test_an_unreliable_run_is_red_and_says_why_first() -> None:
    greedy = replace(
        RUN, answer_sets=tuple(replace(a, clean=(a.clean[0],) * 3, noisy=(a.clean[0],) * 3) for a in RUN.answer_sets)
    )
    trust = trust_of_run(greedy)
    assert trust.level == "red"
    assert trust.reasons[0].level == "red"
    assert "greedily" in trust.short
    assert [r.level for r in trust.reasons] == sorted(
        (r.level for r in trust.reasons), key=["red", "yellow", "not checked", "note"].index
    )


@pytest.mark.slow
def test_labels_of_a_model_that_nobody_checked_are_a_reservation() -> None:
    judged = replace(RUN, verdicts={id: {**v, "judge": "llm:model=x 1"} for id, v in RUN.verdicts.items()})
    assert any("no expert has checked" in text for text in trust_of_run(judged).objections)
    assert not any("expert" in text for text in trust_of_run(RUN).objections)


@pytest.mark.slow
def test_every_place_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_run(RUN, tmp_path / "hedge_runs")
    finding = finding_of(RUN)
    assert main(["detectors", str(path)]) == 0
    printed = capsys.readouterr().out
    assert f"Finding: {finding.text}" in printed
    assert main(["health", str(path)]) == 0
    assert f"Trust: {finding.trust.level}" in capsys.readouterr().out
    page = build_report([RUN], options=ReportOptions(pictures=False, curves=False))
    unbroken = finding.text.replace(" %", "\N{NO-BREAK SPACE}%")
    assert f'<p class="finding">{unbroken}</p>' in page
    assert f'class="trust {finding.trust.level}"' in page


def test_judges_have_names_for_people() -> None:
    assert judge_in_words("rule 3") == "the rule judge (version 3)"
    assert judge_in_words("labels:people.csv") == "labels:people.csv"
