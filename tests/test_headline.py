"""The headline of a run: its numbers, its rules at their borders, and that every place says the same."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from at_border import at_border
from finished_runs import EXACT, finished_run
from printed import json_of

from hedge_tasks.cli import main
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.judging.designed import ExpertSaid, plan_at_random
from hedge_tasks.leaderboard.board import measured_run
from hedge_tasks.measures.coverage import Coverage
from hedge_tasks.measures.headline import Headline, Lead, auroc_bounds, headline
from hedge_tasks.measures.trust_state import TrustState
from hedge_tasks.numbers import Number
from hedge_tasks.report import ReportOptions, build_report
from hedge_tasks.report.loaded import load
from hedge_tasks.runs.audit_files import keep_audit
from hedge_tasks.runs.run_files import Run, load_run, save_run
from hedge_tasks.statistics import auroc

RUN = finished_run(80)


def with_labels(run: Run, label: Callable[[int, AnswerSet], int | None]) -> Run:
    sets = tuple(a.with_label(label(i, a)) for i, a in enumerate(run.answer_sets))
    return replace(run, answer_sets=sets, verdicts={a.id: {"judge": "rule 1", "label": a.label} for a in sets})


def log_probability_tells(run: Run) -> Run:
    """The same answers with a log-probability that is lower where the answer is wrong."""
    sets = tuple(
        replace(a, baseline=replace(a.baseline, mean_logprob=-1.0 - 2 * (a.label or 0) - random.Random(a.id).random()))
        for a in run.answer_sets
    )
    return replace(run, answer_sets=sets)


def audited(run: Run, folder: Path, says: Callable[[AnswerSet], bool], n: int = 80) -> Path:
    """The run in a file, with the labels of experts beside it."""
    path = save_run(run, folder)
    plan = plan_at_random([a.id for a in run.answer_sets])
    plan = plan.model_copy(update={"task": run.task, "model": run.model, "created": run.created})
    words = [ExpertSaid("", a.id, "x", "hallucinated" if says(a) else "supported") for a in run.answer_sets[:n]]
    keep_audit(load_run(path), plan, words)
    return path


def test_the_free_log_probability_leads_where_sampling_adds_nothing() -> None:
    finding = headline(log_probability_tells(RUN))
    assert finding.lead is not None
    assert (finding.lead.detector, finding.lead.draws, finding.adds) == ("msp", 0, False)
    rate, lead = finding.sentences
    assert re.fullmatch(r"\d+ % of answers are wrong \[\d+, \d+\]\.", rate)
    assert re.fullmatch(
        r"The model's own log-probability \(msp\) finds them .*; that sampling finds more is not shown\.", lead
    )


def sentences_of(rate: Number, **fields: Any) -> tuple[str, ...]:
    return Headline(RUN, TrustState(), Coverage(labelled=80), None, rate, **fields).sentences


def test_sentences_at_their_borders() -> None:
    for value, share in {0.254: "25 %", 0.256: "26 %", 0.996: "100 %"}.items():
        assert sentences_of(Number(value, interval=(0.1, 0.9)))[0] == f"{share} of answers are wrong [10, 90]."

    def found(low: float) -> str:
        lead = Lead("se", "exact", Number(0.7, interval=(low, 0.9)), 6.4, None, ())
        return sentences_of(Number(0.25, interval=(0.1, 0.9)), lead=lead, sampling=lead)[1]

    at_border(lambda low: "better than chance" in found(low), 0.5, "110")


@pytest.mark.parametrize(("missing", "bounded"), [(4, False), (5, True)])
def test_more_than_five_percent_without_a_label_are_bounds(missing: int, bounded: bool) -> None:
    run = with_labels(RUN, lambda i, a: None if i >= 80 - missing else int(i < 20))
    finding = headline(run)
    assert (finding.bounds is not None, "between 25 and 31 % are wrong" in finding.text) == (bounded, bounded)
    assert finding.lead is not None
    assert (finding.lead.bounds is not None) is bounded
    # What the model declined is decided.
    declined = {id: {**v, "category": "no_answer"} if v["label"] is None else v for id, v in run.verdicts.items()}
    finding = headline(replace(run, verdicts=declined))
    assert finding.bounds is None
    assert f"; {missing} more were declined." in finding.text
    assert finding.coverage == Coverage(labelled=80 - missing, declined=missing)
    # What failed is not there at all, and is no more like the rest.
    failed = headline(replace(with_labels(RUN, lambda i, a: i % 2), settings={**RUN.settings, "failed": ["x"] * 5}))
    assert failed.bounds == (40 / 85, 45 / 85)


def test_bounds_of_a_roc_auc_are_those_of_all_labels() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 4, 8).astype(float).tolist()
        labels: list[int | None] = [0, 1, *rng.choice(np.array([0, 1, None], dtype=object), 6)]
        places = [i for i, label in enumerate(labels) if label is None]
        areas = []
        for guess in product((0, 1), repeat=len(places)):
            chosen = dict(zip(places, guess, strict=True))
            areas.append(auroc(values, [chosen.get(i, label) for i, label in enumerate(labels)]))
        assert auroc_bounds(values, labels) == pytest.approx((min(areas), max(areas)))


def test_without_labels_and_by_chance_nothing_is_claimed() -> None:
    nobody = headline(replace(with_labels(RUN, lambda i, a: None), verdicts={}))
    assert nobody.text == "No answer has a label, so nobody knows how many of them are wrong."
    assert "better than chance for certain" in headline(with_labels(RUN, lambda i, a: i % 2)).text


def test_with_an_audit_every_number_is_the_experts(tmp_path: Path) -> None:
    """Experts call right what the judge calls wrong: rate, lead, rank and state follow them."""
    run = log_probability_tells(RUN)
    finding = headline(load_run(audited(run, tmp_path, lambda a: not a.label)))
    assert finding.rate is not None
    judge = headline(run)
    assert judge.rate is not None
    assert finding.rate.value == pytest.approx(1 - (judge.rate.value or 0))
    assert finding.estimates["se", "exact"].number.value == pytest.approx(
        1 - (judge.estimates["se", "exact"].number.value or 0), abs=0.02
    )
    assert finding.lead is not None
    assert finding.lead.detector != "msp"
    assert finding.trust.level == "red"
    assert any("Experts contradict the judge" in reason.text for reason in finding.trust.reasons)
    agreeing = headline(load_run(audited(run, tmp_path / "agreeing", lambda a: bool(a.label))))
    assert not any("contradict" in text for text in agreeing.trust.objections)


OF_AN_AUDITED_RUN = (
    *(["detectors", "--all"], ["detectors", "--sweep", "n"], ["rescore"], ["compare"], ["compare", "other"]),
    *(["show", "--id", "q3"], ["health"], ["report", "--figures", "figures", "--out", "one.html"]),
    ["report", "other", "--no-curves", "--out", "both.html"],
)


def lines_of(facts: Any, path: str = "") -> Iterator[str]:
    """JSON an entry a line, or a row of a table."""
    for key, value in facts.items():
        if isinstance(value, dict):
            yield from lines_of(value, f"{path}.{key}")
        else:
            yield from (f"{path}.{key}: {json.dumps(row)}" for row in (value if isinstance(value, list) else [value]))


def by_experts_or_nobody(run: Run, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Lines that commands, figures and the page have about a run with 50 labels of experts, and do not call a judge's.

    The working folder is where it is written.
    """
    path = audited(run, Path(), lambda a: random.Random(a.id).random() < 0.3, 50)
    save_run(replace(RUN, created="2026-02-03T00:00:00+00:00"), Path("other"))
    lines: list[str] = []
    for command, *options in OF_AN_AUDITED_RUN:
        assert main([command, str(path), *options]) == 0
        text = capsys.readouterr().out
        if command == "report":
            continue
        facts = json_of(capsys, [command, str(path), *options, "--json"])
        assert "labels of experts" in text or "the judge's (rule 1)" in text or command in ("show", "health")
        if "--sweep" not in options:
            lines += [*text.splitlines(), *lines_of(facts[0] if isinstance(facts, list) else facts)]
    lines += next(Path("figures").glob("*.csv")).read_text("utf-8").splitlines()
    for page in Path().glob("*.html"):
        text = re.sub(r'"judged":\d,|"judge":"rule 1",', "", page.read_text("utf-8"))
        assert "50 labels of experts" in text
        lines += re.split(r"\n|(?=<tr>)|(?<=},)(?={)", text)
    # The verdict in `show` is called the judge's by its own lines.
    named = r"\bjudges?\b|by_judge|rule 1\b|hedge-tasks|^label    \d|^\.verdict\."
    return {line for line in lines if not re.search(named, line)}


@pytest.mark.slow
def test_with_an_audit_nothing_depends_on_the_judge_but_where_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two judges that each err in their own third of the answers, and the same labels of experts."""
    said = []
    for salt in "ab":
        (tmp_path / salt).mkdir()
        monkeypatch.chdir(tmp_path / salt)
        errs = [random.Random(a.id + salt).random() < 0.33 for a in RUN.answer_sets]
        labels = [(random.Random(a.id).random() < 0.3) ^ err for a, err in zip(RUN.answer_sets, errs, strict=True)]
        said.append(by_experts_or_nobody(with_labels(RUN, lambda i, a, labels=labels: int(labels[i])), capsys))
    assert len(said[0]) > 1000
    assert sorted(said[0] ^ said[1]) == []


CASES: dict[str, Callable[[Path], Path]] = {
    "audit": lambda folder: audited(RUN, folder, lambda a: random.Random(a.id).random() < 0.5, 60),
    "60 % undecided": lambda folder: save_run(with_labels(RUN, lambda i, a: None if i % 5 < 3 else a.label), folder),
    "two clusterings": lambda folder: save_run(
        replace(RUN, settings={"filters": {**EXACT, "again": {**EXACT["exact"], "with_question": True}}}), folder
    ),
    "one class": lambda folder: save_run(with_labels(RUN, lambda i, a: 0), folder),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_place_says_the_same(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = CASES[case](tmp_path / "hedge_runs")
    run = load_run(path)
    finding = headline(run)

    def said_by(*words: str) -> tuple[str, str]:
        main([*words, "--json"])
        facts = json.loads(capsys.readouterr().out)
        facts = (facts[0] if isinstance(facts, list) else facts)["finding"]
        return facts["finding"], facts["trust"]["level"]

    expected = finding.text, finding.trust.level
    for command, *options in (["detectors"], ["compare"], ["calibrate", "--risk", "0.5"]):
        assert said_by(command, str(path), *options) == expected
        main([command, str(path), *options])
        printed = capsys.readouterr().out
        assert all(line in printed for line in finding.lines())
    measured = measured_run(run)
    assert (" ".join(measured.finding), measured.level) == expected
    notebook = load(path)[0]
    assert (notebook.finding.text, notebook.finding.trust.level) == expected
    page = unescape(build_report([run], options=ReportOptions(pictures=False, curves=False)))
    assert f'<p class="finding">{finding.text.replace(" %", chr(160) + "%")}</p>' in page
    assert f'class="trust {finding.trust.level}"' in page
