"""Rows about claims in lmms-eval's table: the numbers of `hedge claims`, options at the door, several processes."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation import Run as Evaluated
from evaluation import evaluate
from openai_server import serve, texts_of
from rows import rows_of
from test_claim_table import FINDINGS, SUPPORTED, UNSUPPORTED, closed_form, scored_run, scripted

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors import names
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.judging.base import Case, Verdict
from hedge_tasks.measures.blind import CLAIM_TEXT
from hedge_tasks.measures.standard_measures import UnitAuroc, known_measures, looks_at_samples, of_question_type
from hedge_tasks.measures.unit_numbers import units_by_answer
from hedge_tasks.measures.unit_table import UnitTable, unit_table
from hedge_tasks.runs import processes
from hedge_tasks.runs import task_claims as module
from hedge_tasks.runs.claim_labels import labelled_spans
from hedge_tasks.runs.claims import ScoredClaims
from hedge_tasks.runs.run_files import Run, load_run
from hedge_tasks.runs.support import SupportPrice
from hedge_tasks.runs.task_claims import TaskClaimResults, TaskClaims

ROWS = rows_of(measure for measure in known_measures().values() if isinstance(measure, UnitAuroc))


def records(scored: ScoredClaims, name: str, *, text: bool = False, why: str = "") -> list[dict[str, Any]]:
    """What lmms-eval gathers for a row: through JSON and in an order of its own."""
    parts = units_by_answer(scored, silent="unlabelled", errors="all", text=text, why_unlabelled=why)
    found = [ROWS[name].record(Scores(id, None, None, None, {}, "", (), parts=of), {}, {}) for id, of in parts.items()]
    written: list[dict[str, Any]] = json.loads(json.dumps(found, allow_nan=False))
    return written[::-1]


@pytest.fixture(scope="module")
def scored() -> ScoredClaims:
    return scored_run(scripted(0, images=20, m=2, answers_per_image=2))


@pytest.fixture(scope="module")
def table(scored: ScoredClaims) -> UnitTable:
    return unit_table(scored)


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_are_the_numbers_of_the_command(scored: ScoredClaims, table: UnitTable) -> None:
    rows = {row.detector: row for row in table.rows}
    for name in ("claim_radflag", "claim_luq_noisy", "claim_contrast"):
        for suffix, wanted in (("", rows[name].estimate), ("_within", rows[name].within)):
            metric = ROWS[f"{name.removeprefix('claim_')}_claim_auroc{suffix}"]
            gathered = records(scored, metric.__name__)
            assert metric(gathered) == pytest.approx(wanted.value, abs=1e-12)
            assert metric.stderr(gathered) == pytest.approx(wanted.stderr, rel=1e-9)


@pytest.mark.slow
def test_the_blind_row_is_the_best_blind_baseline(scored: ScoredClaims, table: UnitTable) -> None:
    blind = [row for row in table.rows if row.blind]
    assert CLAIM_TEXT in {row.detector for row in blind}
    for suffix, values in (("", [r.estimate.value for r in blind]), ("_within", [r.within.value for r in blind])):
        metric = ROWS[f"blind_claim_auroc{suffix}"]
        value = metric(records(scored, metric.__name__, text=True))
        assert value == pytest.approx(max(v for v in values if v is not None), abs=1e-12)


def test_every_detector_of_claims_has_two_rows_and_says_why_it_has_no_number() -> None:
    assert len(ROWS) == 2 * (len(names("claim")) + 1)
    without = scored_run(scripted(1, images=6))
    assert str(ROWS["contradiction_claim_auroc"](records(without, "contradiction_claim_auroc"))).startswith(
        "undefined: 36 of 36 claims have no such score (there are no contradictions"
    )
    unlabelled = replace(without, answers=tuple(replace(a, labels=(None,) * 6) for a in without.answers))
    gathered = records(unlabelled, "radflag_claim_auroc", why="no judge is named")
    assert ROWS["radflag_claim_auroc"](gathered) == "undefined: no judge is named"
    assert ROWS["radflag_claim_auroc"].stderr(gathered) == "N/A"
    nothing = ROWS["radflag_claim_auroc"].record(Scores("a", None, None, None, {}, "", ()), {}, {})
    assert "hedge.claims" in str(ROWS["radflag_claim_auroc"]([nothing]))


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (["sentence"], "hedge.claims: expected an object"),
        ({"unti": "sentence"}, "did you mean 'unit'"),
        ({"unit": "sentense", "support": "words"}, "did you mean 'sentence'"),
        ({"support": "word"}, "did you mean 'words'"),
        ({"support": "words:window=9"}, "window"),
        ({"support": {"name": "judge"}}, "'model' is missing"),
        ({"support": "words", "silent": "wrong"}, "silent"),
        ({"support": "words", "elsewhere": "no"}, "elsewhere: expected true or false"),
        ({"support": "words", "judge": "llmm:model=m"}, "did you mean"),
    ],
)
def test_options_are_checked_at_the_door(config: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        TaskClaims.from_config(config, "my_task")
    assert "my_task" in str(error.value)


@pytest.mark.slow
def test_the_environment_takes_the_place_of_the_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"unit": "given", "support": "nli"}
    monkeypatch.setenv("HEDGE_NLI_MODEL", "package://hedge_tasks.models.tiny/nli")
    of_yaml = TaskClaims.from_config(config, "t")
    assert of_yaml is not None
    assert (of_yaml.settings()["asked"]["decomposition"], of_yaml.settings()["asked"]["model"]) == (
        "given",
        "package://hedge_tasks.models.tiny/nli",
    )
    monkeypatch.setenv("HEDGE_CLAIMS", "words")
    monkeypatch.setenv("HEDGE_CLAIM_JUDGE", "llm:model=m,url=http://localhost:1/v1,prompt=claim")
    other = TaskClaims.from_config(config, "t")
    assert other is not None
    assert other.settings()["asked"].items() >= {"decomposition": "given", "support": "words"}.items()
    assert other.judge is not None
    assert other.settings()["labels"]["judge"]["prompt"] == "claim/1"
    monkeypatch.setenv("HEDGE_CLAIMS", "off")
    assert TaskClaims.from_config(config, "t") is None
    monkeypatch.setenv("HEDGE_CLAIMS", "judge:model")
    with pytest.raises(ConfigError, match="HEDGE_CLAIMS"):
        TaskClaims.from_config(config, "t")


def test_an_engine_that_cannot_be_had_says_how_to_do_without(tmp_path: Path) -> None:
    task = TaskClaims.from_config({"support": {"name": "nli", "model": str(tmp_path / "nowhere")}}, "t")
    assert task is not None
    with pytest.raises(HedgeError, match="HEDGE_CLAIMS=off"):
        task.check(have_images=False)


def test_rows_that_need_draws_are_left_out_without_any() -> None:
    needs_draws = {name for name, row in ROWS.items() if looks_at_samples(row.measure)}
    assert {"radflag_claim_auroc", "radflag_claim_auroc_within", "blind_claim_auroc"} <= needs_draws
    assert not {"nll_claim_auroc", "position_claim_auroc"} & needs_draws
    of_kind = of_question_type(ROWS["radflag_claim_auroc"].measure, "closed")
    assert of_kind.unit_detectors == ("claim_radflag",)
    assert looks_at_samples(of_kind)


# --- several processes ------------------------------------------------------------------------------------------------


class Ranks:
    """Processes as threads: `gather` waits for all of them, as the real one does."""

    def __init__(self, n: int) -> None:
        self.parts: list[list[Any]] = [[] for _ in range(n)]
        self.barrier = threading.Barrier(n, timeout=30)
        self.of_thread = threading.local()

    def gather(self, items: Sequence[Any]) -> list[Any]:
        self.parts[self.of_thread.rank] = list(items)
        self.barrier.wait()
        found = [item for part in self.parts for item in part]
        self.barrier.wait()
        return found


def found_by(ranks: Sequence[Sequence[AnswerSet]], run: Run, monkeypatch: pytest.MonkeyPatch) -> list[TaskClaimResults]:
    together, found = Ranks(len(ranks)), {}
    monkeypatch.setattr(module, "gather", together.gather)

    def work(rank: int) -> None:
        together.of_thread.rank = rank
        task = TaskClaims.from_config({"support": "words"}, "t")
        assert task is not None
        task.judged(ranks[rank], {}, None)
        found[rank] = task.score(ranks[rank], run, names("claim"))

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(len(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [found[rank] for rank in range(len(ranks))]


class Comparing:
    """A judge that fails where the reference says so."""

    name, version = "comparing", "1"

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        if any(case.reference == "broken" for case in cases):
            raise HedgeError("the judge is gone")
        return [Verdict(1, "", "x", "1", None) for _ in cases]

    def settings(self) -> dict[str, object]:
        return {}


def judged_by(ranks: Sequence[Sequence[AnswerSet]], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What each process finds or raises."""
    together, found = Ranks(len(ranks)), {}
    together.barrier = threading.Barrier(len(ranks), timeout=5)
    monkeypatch.setattr(module, "gather", together.gather)
    monkeypatch.setattr(processes, "gather", together.gather)

    def work(rank: int) -> None:
        together.of_thread.rank = rank
        task = TaskClaims.from_config({"support": "words"}, "t")
        assert task is not None
        task.judge = Comparing()
        try:
            found[rank] = task.judged(ranks[rank], {}, None)
        except (HedgeError, threading.BrokenBarrierError) as error:
            found[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(len(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [found[rank] for rank in range(len(ranks))]


def test_whether_there_are_references_is_a_question_for_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(id: str, reference: str | None) -> AnswerSet:
        return AnswerSet(id, Answer("A mass."), (Answer("A mass."),), question="q", reference=reference)

    known, silent, broken = answers("a", "A cyst."), answers("b", None), answers("c", "broken")
    one, other, nothing = judged_by([[known], [silent], []], monkeypatch)
    assert [list(one), list(other), nothing] == [["a"], ["b"], {}]
    for found in judged_by([[silent], [], [silent]], monkeypatch):
        assert isinstance(found, HedgeError)
        assert "no references" in str(found)
    for found in judged_by([[known], [], [broken]], monkeypatch):
        assert isinstance(found, HedgeError)
        assert str(found) == "the judge is gone"


def test_a_process_without_answers_does_not_lower_the_draws_of_the_price() -> None:
    nothing, some, more = (
        SupportPrice(answers=0, claims=0, draws=0, amount=0, unit=""),
        SupportPrice(answers=2, claims=5, draws=6, amount=30, unit=""),
        SupportPrice(answers=1, claims=1, draws=8, amount=8, unit=""),
    )
    assert str(nothing.with_others([more, some])) == "6 claims of 3 answers x 6 draws, no model"
    assert nothing.with_others([nothing]).draws == 0


@pytest.mark.slow
def test_several_processes_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them has no document at all."""
    sets = scripted(4, images=7, m=2)
    run = Run("t", "m", sets)
    [one] = found_by([sets], run, monkeypatch)
    for found in found_by([sets[::2], (), sets[1::2]], run, monkeypatch):
        assert found.support.source.price.claims == one.support.source.price.claims == 42
        both = [units_by_answer(each.scored, silent="unlabelled", errors="all", text=True) for each in (found, one)]
        assert both[0].keys() == both[1].keys()
        for id, parts in both[1].items():
            for mine, other in zip(both[0][id].units, parts.units, strict=True):
                assert (mine.id, mine.label, mine.numbers.keys()) == (other.id, other.label, other.numbers.keys())
                for name, value in other.numbers.items():
                    assert mine.numbers[name] == pytest.approx(value), name


# --- from a server to the table ---------------------------------------------------------------------------------------

N, IMAGES, CLAIMS = 4, 36, 6


def truth(image: str) -> set[str]:
    dice = random.Random(f"truth {image}")
    return {finding for finding in FINDINGS if dice.random() < 0.5}


def report(body: dict[str, Any], image: str) -> str:
    """The baseline answer says six findings; a draw each finding with the probability that its truth gives it."""
    dice, there = random.Random(f"{image} {body['temperature']} {body['seed']}"), truth(image)
    said = (
        dice.sample(FINDINGS, CLAIMS)
        if body["temperature"] < 0.5
        else [f for f in FINDINGS if dice.random() < (SUPPORTED if f in there else UNSUPPORTED)]
    )
    return " ".join(f"{finding.capitalize()}." for finding in said)


def reply(body: dict[str, Any]) -> str:
    text = texts_of(body)[-1]
    if text.startswith("Image "):
        return report(body, text.removeprefix("Image ").removesuffix("?"))
    shown = json.loads(text)
    if "claims" in shown:
        return json.dumps({n: "yes" if claim in shown["text"] else "no" for n, claim in shown["claims"].items()})
    there = shown["claim_to_judge"].removesuffix(".").lower() in shown["reference"]
    return json.dumps({"reason": "so", "verdict": "supported" if there else "hallucinated"})


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """Reports, support and labels by a scripted server."""
    root = tmp_path_factory.mktemp("claims")
    rows = [{"id": f"{i}", "question": f"Image {i}?", "answer": " ".join(sorted(truth(str(i))))} for i in range(IMAGES)]
    (root / "reports.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.MonkeyPatch.context() as patch, serve(reply) as url:
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("HEDGE_CACHE", str(root / "cache"))
        judge = {"name": "llm", "model": "judge", "url": url, "prompt": "claim", "asks": 1}
        patch.setenv("HEDGE_CLAIM_JUDGE", json.dumps(judge))
        support = f"{{name: judge, model: reader, url: '{url}'}}"
        listed = ("radflag_claim_auroc", "radflag_claim_auroc_within", "elsewhere_claim_auroc", "blind_claim_auroc")
        listed += ("contradiction_claim_auroc", "claims_radflag_mean_auroc")
        (root / "scripted_reports.yaml").write_text(
            "include: hedge_tasks\ntask: scripted_reports\ndataset_path: json\n"
            "dataset_kwargs: {data_files: {test: reports.jsonl}}\ntest_split: test\n"
            f"hedge: {{prompt: plain/question, images: [], id: id, claims: {{unit: sentence, support: {support}}}}}\n"
            f"generation_kwargs: {{n: {N}, n_noisy: 0, probe: false, until: []}}\n"
            "filter_list:\n- name: exact\n  filter:\n  - {function: hedge_cluster, backend: exact}\n"
            "  - {function: hedge_score}\n"
            "metric_list: [" + ", ".join(f"{{metric: {name}}}" for name in listed) + "]\n",
            "utf-8",
        )
        model = f"model=tiny,base_url={url}"
        arguments = ("--model", "hedge_openai", "--model_args", model, "--tasks", "scripted_reports")
        return evaluate(root / "out", *arguments, "--include_path", str(root))


@pytest.mark.slow
@pytest.mark.framework
def test_a_server_with_known_probabilities_gives_the_closed_form_in_the_table(evaluated: Evaluated) -> None:
    cells = evaluated.results["results"]["scripted_reports"]
    for row, wanted in (
        ("radflag_claim_auroc", closed_form(N)),
        ("radflag_claim_auroc_within", closed_form(N)),
        ("elsewhere_claim_auroc", 0.5),  # the draws of another image
    ):
        value, stderr = cells[f"{row},exact"], cells[f"{row}_stderr,exact"]
        assert 0.01 < stderr < 0.06, row
        assert abs(value - wanted) < 2.5 * stderr, row
    assert cells["radflag_claim_auroc,exact"] - cells["blind_claim_auroc,exact"] > 0.05
    assert cells["contradiction_claim_auroc,exact"] == "undefined: every claim has the same score"
    assert str(cells["claims_radflag_mean_auroc,exact"]).startswith("undefined")  # no whole report is right
    settings = evaluated.results["configs"]["scripted_reports"]["hedge"]["claims"]
    assert settings["asked"]["model"] == "reader"
    assert settings["labels"]["judge"]["prompt"] == "claim/1"


@pytest.mark.slow
@pytest.mark.framework
def test_what_the_task_kept_is_scored_by_command_without_the_server(
    evaluated: Evaluated, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load_run(evaluated.output)
    assert run.support is not None
    source = run.support.source
    assert (source.settings["decomposition"], source.engine, source.price.claims) == ("sentence", "judge", 216)
    assert labelled_spans(run)[0] == "the run's verdicts on claims"
    for about in ([], ["--unit", "sentence", "--support", "judge"]):
        assert main(["claims", str(evaluated.output), *about, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
    rows = {row["detector"]: row for row in facts["detectors"]}
    cells = evaluated.values("scripted_reports")
    assert rows["claim_radflag"]["estimate"]["value"] == pytest.approx(cells["radflag_claim_auroc,exact"])
    assert rows["claim_radflag"]["within"]["value"] == pytest.approx(cells["radflag_claim_auroc_within,exact"])
    best = max(row["estimate"]["value"] for row in rows.values() if "(blind)" in row["detector"])
    assert best == pytest.approx(cells["blind_claim_auroc,exact"])
