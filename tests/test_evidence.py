"""What models said of a run's answers is kept with it, and a finished run is scored without them."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import finished_run, run_text

from hedge_tasks.cli import main
from hedge_tasks.clustering import nli_source
from hedge_tasks.clustering.model_outputs import COSINES, ModelOutputs, PairTable, Source
from hedge_tasks.clustering.nli_model import Origin
from hedge_tasks.data.splits import load_split
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import DataError
from hedge_tasks.llm import encoders
from hedge_tasks.llm.loading import ModelUnavailableError
from hedge_tasks.measures.priced_scores import truncated
from hedge_tasks.measures.sweep import usual_sizes
from hedge_tasks.runs.evidence import KeptEvidence, join_evidence, pack_outputs
from hedge_tasks.runs.run_files import Run, load_run, save_run
from hedge_tasks.runs.scorers import scorers_of

NLI = {"backend": "nli", "model": "package://hedge_tasks.models.tiny/nli", "dtype": "float32"}
CHOICE = {"threshold": "cross-fit", "tuning": {"low": 0.3, "per_class": 3}}
FILTERS = {
    "nli": {**NLI, "with_question": False, "alpha": 1.0, "detectors": ["kle"]},
    "nli_qa": {**NLI, "with_question": True, "veto": True, "alpha": 1.0},
    "embed": {"backend": "embed", "with_question": False, "alpha": 1.0, "detectors": ["kle_cosine"], **CHOICE},
}


class Models:
    """Stand-ins that answer by chance, always the same, and count what they are asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pairs: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.forbidden = False
        monkeypatch.setenv("HEDGE_CACHE", "off")
        monkeypatch.setattr(nli_source, "find_origin", self._origin)
        monkeypatch.setattr(nli_source, "load_nli_model", lambda *_: self)
        monkeypatch.setattr("hedge_tasks.clustering.embedding.load_encoder", self._encoder)
        monkeypatch.setattr(encoders, "_load_sentence_transformer", self._refuse)

    def _refuse(self, *_: Any) -> Any:
        raise AssertionError("a model is loaded")

    def _origin(self, model: str, revision: str | None) -> Origin:
        if self.forbidden:
            raise ModelUnavailableError("the model cannot be had")
        return Origin(model, revision, None)

    def predict(self, pairs: list[tuple[str, str]], **_: Any) -> Any:
        self.pairs += pairs
        yield {pair: self._probabilities(pair) for pair in pairs}

    def _probabilities(self, pair: tuple[str, str]) -> tuple[float, float, float]:
        dice = random.Random(repr(pair))
        parts = np.array([dice.random() ** 3 for _ in range(3)], dtype=np.float32)
        rows = (parts / parts.sum()).astype(np.float32).tolist()
        return rows[0], rows[1], rows[2]

    def _encoder(self, *_: Any) -> Any:
        if self.forbidden:
            raise ModelUnavailableError("the model cannot be had")

        def encode(texts: list[str]) -> list[list[float]]:
            self.texts += texts
            return [[1.0 + random.Random(f"{text} {i}").random() for i in range(3)] for text in texts]

        return encode


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    return Models(monkeypatch)


def asked_run(n: int = 40) -> Run:
    return replace(finished_run(n), settings={"filters": FILTERS})


def with_evidence(run: Run) -> Run:
    """As an evaluation does it."""
    outputs = ModelOutputs()
    for scorer in scorers_of(run).values():
        scorer = scorer.with_outputs(outputs)
        scorer.score(run.answer_sets)
        scorer.look_ahead(run.answer_sets, usual_sizes(6))
    return replace(run, evidence=pack_outputs(outputs, run.answer_sets))


def test_a_table_of_pairs_is_a_dictionary() -> None:
    dice = random.Random(0)
    texts = [f"text {i}" for i in range(30)]
    for symmetric in (True, False):
        table, known = PairTable(2, symmetric=symmetric), {}
        for _ in range(20):
            pairs = [(a, b) for a, b in (dice.sample(texts, 2) for _ in range(10))]
            for pair in pairs:
                key = tuple(sorted(pair)) if symmetric else pair
                values = [dice.random(), dice.random()]
                table.add([pair], [values])
                known.setdefault(key, np.float32(values))
        asked = [(a, b) for a in texts for b in texts]
        values, there = table.read(asked)
        keys = [tuple(sorted(pair)) if symmetric else pair for pair in asked]
        assert there.tolist() == [key in known for key in keys]
        expected = [known.get(key, np.full(2, np.nan, np.float32)) for key in keys]
        assert np.array_equal(values, expected, equal_nan=True)
        assert len(table) == len(known)
        matrix, where = table.matrix(texts)
        assert np.array_equal(matrix.reshape(-1, 2), values, equal_nan=True)
        assert np.array_equal(where.ravel(), there)


@pytest.mark.slow
def test_a_finished_run_is_scored_without_a_model_and_to_the_last_digit(models: Models, tmp_path: Path) -> None:
    run = asked_run()
    fresh = {name: scorer.score(run.answer_sets) for name, scorer in scorers_of(run).items()}
    path = save_run(with_evidence(run), tmp_path)
    models.forbidden = True
    read = load_run(path)
    for name, scorer in scorers_of(read).items():
        assert scorer.score(read.answer_sets) == fresh[name]
    assert any(s["kle"] for s in fresh["nli"])
    assert any(s["kle_cosine"] for s in fresh["embed"])
    # Without the evidence, this would not do.
    with pytest.raises(ModelUnavailableError):
        scorers_of(replace(read, evidence=KeptEvidence()))["nli"].score(read.answer_sets)


@pytest.mark.slow
def test_fewer_answers_need_no_model_either(models: Models, tmp_path: Path) -> None:
    run = asked_run(12)
    cut = [[truncated(a, n) for a in run.answer_sets] for n in usual_sizes(6)]
    cut += [[replace(truncated(a, n), noisy=()) for a in run.answer_sets] for n in usual_sizes(6)]
    fresh = {name: [scorer.score(part) for part in cut] for name, scorer in scorers_of(run).items()}
    kept = with_evidence(run)
    models.forbidden = True
    assert {name: [s.score(part) for part in cut] for name, s in scorers_of(kept).items()} == fresh


COMMANDS = (
    "report RUN --out OUT.html",
    "rescore RUN",
    "detectors RUN --clustering nli",
    "report RUN --out OUT.html --figures OUT",
    "detectors RUN --sweep n",
    "detectors RUN --sweep draws",
    "detectors RUN --against se --draws 6",
    "show RUN --id q3 --clustering nli_qa",
    "detectors RUN --thresholds",
    "leaderboard submit RUN --out OUT",
    "compare RUN --against se",
)


@pytest.mark.slow
def test_no_command_on_a_finished_run_loads_a_model(models: Models, tmp_path: Path, capsys: Any) -> None:
    path = save_run(with_evidence(asked_run()), tmp_path)
    models.forbidden = True
    asked = len(models.pairs), len(models.texts)
    for command in COMMANDS:
        words = command.replace("RUN", str(path)).replace("OUT", str(tmp_path / "out")).split()
        assert main(words) == 0, (command, capsys.readouterr())
    assert (len(models.pairs), len(models.texts)) == asked
    page = (tmp_path / "out.html").read_text("utf-8")
    assert "Left out" not in page
    assert "Kernel language entropy" in page


HEAVY = {"torch", "transformers", "sentence_transformers", "lmms_eval", "datasets", "pandas", "sklearn"}
"""Libraries that take a second or more to import, or bring one that does."""


@pytest.mark.slow
def test_a_report_with_pictures_imports_no_heavy_library(models: Models, tmp_path: Path) -> None:
    rows = load_split("package://hedge_tasks.tasks/hedge_demo/data", None, "demo-test").select(range(12))
    run = replace(asked_run(12), task="hedge_demo")
    columns = {"id": "question_id", "question": "question", "images": ["image"]}
    sets = [replace(a, id=row["question_id"]) for a, row in zip(run.answer_sets, rows, strict=True)]
    sets = [replace(a, question=row["question"]) for a, row in zip(sets, rows, strict=True)]
    kept = with_evidence(replace(run, answer_sets=tuple(sets), settings={**run.settings, "documents": columns}))
    page = tmp_path / "report.html"
    program = (
        "import sys\n"
        "from hedge_tasks.cli import main\n"
        "code = main(sys.argv[1:])\n"
        # The blind baselines are fitted with scikit-learn, pictures are read with datasets.
        f"print('imported:', *sorted({ {*HEAVY} - {'sklearn', 'pandas', 'datasets'} } & sys.modules.keys()))\n"
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", program, "report", str(save_run(kept, tmp_path)), "--out", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "imported:"
    shown = page.read_text("utf-8")
    assert shown.count("data:image/jpeg") >= 3
    assert "Left out" not in shown
    assert "Pictures are left out" not in shown


@pytest.mark.slow
def test_what_was_not_kept_is_asked_or_left_out_with_the_reason(
    models: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = asked_run(16)
    outputs = ModelOutputs()
    for scorer in scorers_of(run).values():
        scorer.with_outputs(outputs).cluster(run.answer_sets)
    path = save_run(replace(run, evidence=pack_outputs(outputs, run.answer_sets)), tmp_path)
    before = len(models.pairs)
    # SelfCheck needs all pairs of answers, and the clustering asked for some of them.
    assert main(["rescore", str(path), "--clustering", "nli", "--detectors", "se,selfcheck_nli"]) == 0
    asked = models.pairs[before:]
    assert asked
    assert not {*asked} & {*models.pairs[:before]}
    models.forbidden = True
    assert main(["rescore", str(path), "--clustering", "nli", "--detectors", "se,selfcheck_nli"]) == 2
    assert "the model cannot be had" in capsys.readouterr().err
    assert main(["report", str(path), "--out", str(tmp_path / "out.html")]) == 0
    assert "Left out is the clustering nli: the model cannot be had" in (tmp_path / "out.html").read_text("utf-8")


@pytest.mark.slow
def test_all_detectors_ask_no_model_until_they_are_kept(
    models: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = asked_run(16)
    outputs = ModelOutputs()
    scorers_of(run)["nli"].with_outputs(outputs).cluster(run.answer_sets)
    path = save_run(replace(run, evidence=pack_outputs(outputs, run.answer_sets)), tmp_path)
    asked = len(models.pairs)

    def rows(*options: str) -> tuple[list[str], dict[str, str]]:
        assert main(["detectors", str(path), "--clustering", "nli", "--json", "--all", *options]) == 0
        [facts] = json.loads(capsys.readouterr().out)
        return [row["detector"] for row in facts["detectors"]], facts["left_out"]

    models.forbidden = True
    shown, left_out = rows()
    assert {"se", "radflag", "vase", "lexical"} <= {*shown}
    assert left_out["luq"] == (
        f"the run does not keep NLI probabilities of all pairs of answers: --keep asks {NLI['model']} for them, once"
    )
    assert "luq" not in shown
    assert left_out["kle_cosine"] != left_out["luq"]
    # Whoever names it is told that the model is not there.
    assert main(["detectors", str(path), "--clustering", "nli", "--detectors", "luq"]) == 2
    assert "the model cannot be had" in capsys.readouterr().err
    assert len(models.pairs) == asked
    models.forbidden = False
    assert main(["detectors", str(path), "--clustering", "nli", "--keep"]) == 0
    capsys.readouterr()
    assert len(models.pairs) > asked
    models.forbidden = True
    assert "luq" in rows()[0]


def test_a_file_of_answers_keeps_nothing_and_is_told_before_a_model_is_asked(
    models: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(a.to_dict()) + "\n" for a in asked_run(4).answer_sets))
    assert main(["detectors", str(file), "--clustering", f"nli:model={NLI['model']}", "--keep"]) == 2
    assert f"{file}: only a run file keeps what models say" in capsys.readouterr().err
    assert models.pairs == []


def test_evidence_is_of_these_texts_and_no_others(models: Models) -> None:
    run = with_evidence(asked_run(6))
    changed = [replace(a, baseline=replace(a.baseline, text="another")) for a in run.answer_sets]
    table = run.evidence.outputs(run.answer_sets).table(Source(COSINES, encoders.DEFAULT_MODEL))
    assert len(table)
    assert not list(run.evidence.outputs(changed))
    # Documents in another order or fewer of them are no other texts.
    some = run.evidence.outputs(run.answer_sets[3:1:-1]).table(Source(COSINES, encoders.DEFAULT_MODEL))
    assert 0 < len(some) <= len(table)


@pytest.mark.slow
def test_processes_keep_the_evidence_of_their_own_documents(models: Models) -> None:
    whole = with_evidence(asked_run(10))
    parts = []
    for half in (whole.answer_sets[:5], whole.answer_sets[5:]):
        outputs = ModelOutputs()
        for scorer in scorers_of(replace(whole, evidence=KeptEvidence())).values():
            Scorer.with_outputs(scorer, outputs).cluster(half)
        parts.append(pack_outputs(outputs, half))
    together = join_evidence(parts)
    assert set(together.rows) == set(whole.evidence.rows)
    assert set(together.sources) == set(whole.evidence.sources)
    models.forbidden = True
    run = replace(whole, evidence=together)
    for scorer in scorers_of(run).values():
        scorer.cluster(run.answer_sets)


def sealed_with(run: Run, folder: Path, **changed: Any) -> Path:
    """A run file whose first document's evidence is changed, with a sound digest: somebody wrote it so."""
    first, *rows, _ = map(json.loads, save_run(run, folder).read_text("utf-8").splitlines())
    row = next(row for row in rows if "evidence" in row)
    row["evidence"] |= changed
    path = folder / "run-2.jsonl"
    path.write_text(run_text(first, rows))
    return path


@pytest.mark.parametrize(
    ("written", "told"),
    [("no base64!", "no base64"), ("", "not those of"), (base64.b64encode(b"\xff" * 7).decode(), "not those of")],
)
def test_damaged_evidence_is_refused_by_name(models: Models, tmp_path: Path, written: str, told: str) -> None:
    run = with_evidence(asked_run(6))
    [id, *_] = run.evidence.rows
    said = [written if s.kind == COSINES else None for s in run.evidence.sources]
    path = sealed_with(run, tmp_path, said=said)
    with pytest.raises(DataError, match=f"{id}: the kept cosines .*{told}"):
        scorers_of(load_run(path))
    assert main(["report", str(path), "--out", str(tmp_path / "out.html")]) == 2


@pytest.mark.parametrize("said", [[], [None, None, None, None, None, None, None]])
def test_evidence_of_more_or_fewer_models_is_refused_where_it_is_used(
    models: Models, tmp_path: Path, said: list[None]
) -> None:
    read = load_run(sealed_with(with_evidence(asked_run(6)), tmp_path, said=said))
    with pytest.raises(DataError, match=r"evidence.said: expected \d texts"):
        scorers_of(read)


@pytest.mark.parametrize("header", [7, [7], [{"kind": "hunches"}], [{"kind": "cosines", "model": 1}]])
def test_unknown_tellers_are_refused(models: Models, tmp_path: Path, header: Any) -> None:
    path = save_run(with_evidence(asked_run(6)), tmp_path)
    first, *rows, _ = map(json.loads, path.read_text("utf-8").splitlines())
    path.write_text(run_text({**first, "evidence": header}, rows))
    with pytest.raises(DataError, match="evidence"):
        load_run(path)


def test_it_stays_with_a_run_that_is_judged_again(models: Models, tmp_path: Path) -> None:
    path = save_run(with_evidence(asked_run(6)), tmp_path / "hedge_runs")
    assert main(["judge", str(path), "--judge", "rule", "--out", str(tmp_path / "again")]) in (0, 1, 2)
    for file in (tmp_path / "again").rglob("run-*.jsonl"):
        assert load_run(file).evidence
