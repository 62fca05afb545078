"""Editions: what each task's YAML says is what ships, and what was made otherwise is never ranked beside it."""

from __future__ import annotations

import copy
import os
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import board_rules, finished_run, on_board, told_alike
from hypothesis import given
from hypothesis import strategies as st

from hedge_tasks.cli import main
from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.manifests import Data, Digests, Manifest, grouping_digest
from hedge_tasks.detectors.registry import get, names
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import DataError
from hedge_tasks.evaluation import own_folder
from hedge_tasks.leaderboard import build_site, check, make_submission, read_entries, write_submission
from hedge_tasks.leaderboard.board import SUPPORTED, board_of
from hedge_tasks.leaderboard.chain import prove_run
from hedge_tasks.leaderboard.names import name_fault
from hedge_tasks.leaderboard.submission import digest_of
from hedge_tasks.runs.editions import Edition, edition_for, edition_of, hash_of, read_edition, rules_of, write_edition
from hedge_tasks.runs.run_files import Run, read_run, save_run
from hedge_tasks.runs.trust import installed_tasks

Json = dict[str, Any]


def entered(seed: int = 0, *, base: int = 0, model: str = "org/model", **changes: Any) -> Run:
    """A run of 30 questions with draws of its own."""
    return replace(on_board(finished_run(30, seed=seed, model=model, samples=4), base), **changes)


RUN = entered()
SUBMISSION = make_submission(RUN, texts=True)
RULES = board_rules(SUBMISSION)


def reasons(submission: Json, **options: Any) -> str:
    """Why it is not ranked; it must be valid."""
    findings = check({**submission, "digest": digest_of(submission)}, **{**RULES, **options})
    assert findings.problems == ()
    return "; ".join(findings.set_aside)


# --- what ships -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_task_ships_the_edition_that_its_yaml_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes a task, a default or a judge writes its edition anew: hedge edition TASK."""
    from hedge_tasks.lmms.editions import edition_of_file

    monkeypatch.setenv("HEDGE_JUDGE", "labels")  # an edition is the YAML's, whatever the environment says
    monkeypatch.setenv("HEDGE_FILTERS", "none")
    files = {config: path for path in own_folder("").rglob("*.yaml") if (config := _task(path)) is not None}
    assert len(files) > 50
    for task, path in files.items():
        shipped = edition_for(task)
        assert shipped is not None, f"hedge edition {task}"
        assert edition_of_file(path).hash == shipped.hash, f"changed since it was written: hedge edition {task}"
    assert os.environ["HEDGE_JUDGE"] == "labels"


def _task(path: Path) -> str | None:
    found = next((c for c in installed_tasks() if c.get("task") == path.stem), None)
    return None if found is None else path.stem


def test_an_edition_survives_the_disk_and_an_edited_one_is_refused(tmp_path: Path) -> None:
    edition = edition_for("hedge_demo")
    assert edition is not None
    path = tmp_path / "e.json"
    write_edition(path, edition)
    assert read_edition(path) == edition
    assert edition_for("hedge_demo", [tmp_path]) == edition
    assert edition_for("another", [tmp_path]) is None
    path.write_text(path.read_text("utf-8").replace('"temperature": 1.0', '"temperature": 0.5'), "utf-8")
    with pytest.raises(DataError, match="it was changed after it was written"):
        read_edition(path)


def test_hedge_edition_writes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edition", "hedge_demo", "--out", str(tmp_path), "--seeds", "7", "8"]) == 0
    written = read_edition(tmp_path / "hedge_demo.json")
    assert written.seeds == (7, 8)
    assert written.hash in capsys.readouterr().out
    shipped = edition_for("hedge_demo")
    assert shipped is not None
    assert written.hash != shipped.hash
    assert written.replaced(seeds=shipped.seeds).hash == shipped.hash


def test_the_same_rules_have_the_same_hash_however_numbers_are_written() -> None:
    settings = {**RUN.settings, "sampling": {**RUN.settings["sampling"], "temperature": 1}}
    one, other = (
        edition_of("t", {**settings, "sampling": {**settings["sampling"], "temperature": t}}) for t in (1, 1.0)
    )
    assert one.hash == other.hash
    assert hash_of(one, rules_of(settings, settings["filters"])) == one.hash
    assert hash_of(one, rules_of(settings, {})) == one.hash  # a clustering that is left out has no numbers
    colder = {**settings, "sampling": {**settings["sampling"], "temperature": 0.7}}
    assert hash_of(one, rules_of(colder, settings["filters"])) != one.hash


# --- what was made otherwise ------------------------------------------------------------------------------------------


def test_an_honest_entry_is_of_the_edition() -> None:
    assert reasons(SUBMISSION) == ""
    findings = check(SUBMISSION, **RULES)
    assert findings.standing is not None
    assert findings.standing.of_edition
    assert findings.standing.hash == RULES["editions"]("hedge_x").hash


def _settings(**changes: Any) -> Callable[[Json], None]:
    def change(s: Json) -> None:
        s["settings"]["sampling"].update(changes)

    return change


def _clustering(**changes: Any) -> Callable[[Json], None]:
    def change(s: Json) -> None:
        s["clusterings"]["exact"]["settings"].update(changes)
        s["settings"]["filters"]["exact"].update(changes)

    return change


def _second_clustering(s: Json) -> None:
    s["clusterings"]["mine"] = s["clusterings"]["exact"]
    s["blind"]["mine"] = s["blind"]["exact"]
    for document in s["documents"]:
        document["clusterings"]["mine"] = document["clusterings"]["exact"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_settings(temperature=0.7), "temperature 0.7, where the edition has nothing"),
        (_settings(seed=5), "seed 5, where the edition has 0, 1, 2"),
        (_settings(n=10), "n 10, where the edition has 4"),
        (_settings(perturbation={"name": "none"}), "perturbation name none"),
        (_settings(decoding="model"), "decoding model, where the edition has pure"),
        (_clustering(threshold="oracle"), "clustering exact: threshold oracle"),
        (_clustering(threshold=0.9), "clustering exact: threshold 0.9"),
        (_clustering(tuning={"share": 0.8}), "clustering exact: tuning share 0.8"),
        (_second_clustering, "clustering 'mine' is none of the edition's"),
        (lambda s: s["settings"].pop("sampled"), "the record of the decoding is left out"),
    ],
)
def test_other_settings_are_another_edition(change: Callable[[Json], Any], said: str) -> None:
    changed = copy.deepcopy(SUBMISSION)
    change(changed)
    assert said in reasons(changed)


def test_exact_under_the_name_of_another_clustering_is_another_edition() -> None:
    other = {"embed": {"backend": "embed", "with_question": False, "threshold": "cross-fit", "alpha": 1.0}}
    edition = edition_of("hedge_x", {**RUN.settings, "filters": other})
    submission = make_submission(RUN, texts=True, scorers={"embed": Scorer("embed", ExactClustering())})
    told = reasons(submission, editions=lambda task: edition)
    assert "clustering embed: backend exact, where the edition has embed" in told


def sets_with(change: Callable[[AnswerSet], AnswerSet]) -> Json:
    return make_submission(replace(RUN, answer_sets=tuple(map(change, RUN.answer_sets))), texts=True)


def test_half_of_the_draws_are_not_all_of_them() -> None:
    assert "2 clean answers a question in 30 documents, where the edition has 4" in reasons(
        sets_with(lambda a: replace(a, clean=a.clean[:2]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, -1])
def test_noisy_answers_that_are_the_clean_ones_are_told(order: int) -> None:
    told = reasons(sets_with(lambda a: replace(a, noisy=a.clean[::order])))
    assert "the noisy answers are the clean ones again in" in told


def test_pictures_that_the_manifest_knows_are_not_left_out() -> None:
    known = {
        d["id"]: Digests(
            d["digests"]["question"],
            d["digests"]["reference"],
            grouping_digest(d["group"], d["question_type"]),
            "0123456789abcdef",
        )
        for d in SUBMISSION["documents"]
    }
    manifest = Manifest(("hedge_x",), Data("org/x"), known)
    told = reasons(SUBMISSION, manifests=lambda task: [manifest])
    assert "the digests of the pictures are left out in 30 documents" in told
    shown = copy.deepcopy(SUBMISSION)
    for document in shown["documents"]:
        document["digests"]["pictures"] = "0123456789abcdef"
    assert reasons(shown, manifests=lambda task: [manifest]) == ""


def test_log_probabilities_that_the_record_has_are_not_left_out() -> None:
    silent = copy.deepcopy(SUBMISSION)
    silent["settings"]["sampled"] = {"decoding": {"asked": "pure"}, "probe": {"logprobs": True}}
    assert "the record says that log-probabilities were told" not in reasons(silent)
    for document in silent["documents"][:4]:
        document["logprobs"][1] = None
    faults = check({**silent, "digest": digest_of(silent)}, **RULES)
    assert "the record says that log-probabilities were told, and 4 documents have answers without" in "; ".join(
        faults.set_aside
    )


def test_the_probe_is_part_of_an_edition_that_has_one() -> None:
    edition = edition_of("hedge_x", {**RUN.settings, "sampling": {**RUN.settings["sampling"], "probe": True}})
    probed = copy.deepcopy(SUBMISSION)
    probed["settings"]["sampling"]["probe"] = True
    assert reasons(probed, editions=lambda task: edition).endswith("the record of the probe is left out")
    probed["settings"]["sampled"]["probe"] = {"draws": 13}
    assert reasons(probed, editions=lambda task: edition) == ""


def test_the_chain_holds_the_clusterings(tmp_path: Path) -> None:
    run = read_run(save_run(RUN, tmp_path))
    submission = make_submission(run, texts=True)
    assert prove_run(submission, run).problems == ()
    tuned = copy.deepcopy(submission)
    tuned["clusterings"]["exact"]["settings"]["threshold"] = "oracle"
    assert "clusterings.exact.settings: threshold are not those" in prove_run(tuned, run).problems[0]
    moved = copy.deepcopy(submission)
    for document in moved["documents"]:
        document["clusterings"]["exact"]["clusters"] = list(range(9))
    assert "clusterings.exact.clusters: not those of the run in" in prove_run(moved, run).problems[0]
    named = copy.deepcopy(submission)
    named["clusterings"]["other"] = named["clusterings"]["exact"]
    assert "clusterings.other: none of the run's filters" in prove_run(named, run).problems[0]


# --- one place for a model --------------------------------------------------------------------------------------------


def board(folder: Path, **runs: Run) -> Any:
    folder.mkdir(exist_ok=True)
    for name, run in runs.items():
        write_submission(folder / f"{name}.json", make_submission(run, texts=True))
    return read_entries(folder, **RULES)


def one_model() -> Callable[..., Run]:
    """Runs of one model: draws of their own out of the answers that it gives to each question."""
    whole = on_board(finished_run(30, samples=8))

    def run(seed: int, *, base: int = 0, model: str = "org/model") -> Run:
        sets = tuple(
            replace(
                a,
                clean=tuple(a.clean[(seed + k) % 8] for k in range(4)),
                # The noise follows from the seed as well, so that these are other pictures.
                noisy=tuple(replace(n, mean_logprob=(n.mean_logprob or 0) - 0.01 * seed) for n in a.noisy[:4]),
            )
            for a in whole.answer_sets
        )
        mine = entered(seed, base=base, model=model)
        return replace(mine, answer_sets=sets)

    return run


@pytest.mark.slow
def test_another_models_run_is_no_seed_of_a_model_that_has_a_place(tmp_path: Path) -> None:
    model = one_model()
    built = board(tmp_path / "in", a=model(0), b=entered(5, base=1, model="ORG/Model."), c=model(3, base=2))
    found = {entry.file: entry for entry in built.entries}
    assert [one.file for one in found["a.json"].runs] == ["c.json"]
    assert "no run of that model, or too few answers to tell" in found["b.json"].findings.set_aside[-1]


@pytest.mark.slow
def test_a_name_is_not_the_model_of_an_entry_before_it(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for i, (name, model) in enumerate((("Org Famous", "org/mine"), ("org/famous", "org/famous"))):
        run = entered(i, model=model)
        write_submission(folder / f"{i}.json", make_submission(run, texts=True, name=name))
    assert all(entry.findings.ranked for entry in read_entries(folder, **RULES).entries)  # nobody's name is taken
    (folder / "0.json").rename(folder / "2.json")
    first, second = read_entries(folder, **RULES).entries
    assert first.findings.ranked
    assert second.findings.set_aside[-1] == "its name is another entry's model"


@pytest.mark.slow
def test_one_file_under_two_names_is_one_entry(tmp_path: Path) -> None:
    built = board(tmp_path / "in", a=RUN, b=RUN)
    assert list(built.refused.values()) == ["the same file as a.json"]
    assert build_site(built, tmp_path / "site")


@pytest.mark.slow
def test_runs_with_the_editions_seeds_are_one_place_with_a_spread(tmp_path: Path) -> None:
    model = one_model()
    runs = {f"s{i}": model(i, base=i, model=("org/model", "Org/Model")[i % 2]) for i in range(3)}
    built = board(tmp_path / "in", **runs, again=model(7), other=entered(8, model="org/other"))
    found = {entry.file: entry for entry in built.entries}
    # Nothing is committed here, so that names say who was first.
    assert [name for name, entry in found.items() if entry.findings.ranked] == ["again.json", "other.json"]
    [cell] = [cell for cell in board_of(built.entries, SUPPORTED).cells if cell.entry.model == "org/model"]
    values = [entry.supported.value for name, entry in found.items() if name in ("s1.json", "s2.json", cell.entry.file)]
    assert cell.spread == (min(values), max(values))
    assert len(cell.seeds) == 2
    assert "another run of this model with the same seed" in found["s0.json"].findings.set_aside[-1]
    page = next(p for p in build_site(built, tmp_path / "site") if p.name.startswith("task-") and "rate" not in p.name)
    assert "3 seeds: " in page.read_text("utf-8")


@pytest.mark.slow
def test_a_later_seed_alone_has_no_place(tmp_path: Path) -> None:
    built = board(tmp_path / "in", a=entered(1, base=1))
    assert "seed 1 counts only beside the edition's first" in built.entries[0].findings.set_aside[-1]


@pytest.mark.slow
def test_one_model_under_several_names_has_one_place(tmp_path: Path) -> None:
    """The same answer has the same log-probability wherever the same model is asked."""

    model = finished_run(30, samples=8)

    def drawn(seed: int, name: str) -> Run:
        """Draws of their own out of the answers that the model gives to each question."""
        sets = [
            replace(a, clean=tuple(a.clean[(seed + k) % 8] for k in range(4)), noisy=a.noisy[:4])
            for a in model.answer_sets
        ]
        return entered(0, model=name, answer_sets=tuple(map(told_alike, sets)))

    built = board(tmp_path / "in", a=drawn(0, "org/one"), b=drawn(3, "org/two"), c=entered(9, model="org/three"))
    found = {entry.file: entry for entry in built.entries}
    assert [found[name].findings.ranked for name in ("a.json", "b.json", "c.json")] == [True, False, True]
    assert "there of org/one: one model has one place" in found["b.json"].findings.set_aside[-1]


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "Mine verified ✓ official",
        "Mine (Verified)",
        "V3R1F1ED",
        "officia1",
        "0fficial",
        "v e r i f i e d",
        "ver.i-fied",
        "chain proved",
        "Mine, rank 1",
        "replаyed",
        "Mіne",
        "𝐯erified",
        "veriﬁed",
        "ＭＩＮＥ",
        "ver\u200bified",
        "\u202eenim",
        "a\u00adb",
        "Mi\u0335\u0321\u0334\u0335ne",
        "mine★",
        "mine 🏆",
        "mine\u00a0",
        " mine",
        "",
    ],
)
def test_names_that_say_what_the_board_says_are_refused(name: str) -> None:
    assert name_fault(name) is not None
    changed = copy.deepcopy(SUBMISSION)
    changed["entry"]["name"] = name
    assert check({**changed, "digest": digest_of(changed)}, **RULES).problems


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Qwen/Qwen2.5-VL-7B-Instruct",
            "LLaVA-1.5 (13B), T=1",
            "GPT-4o",
            "gemini-2.5-flash@2025",
            "模型 7B",
            "Modèle",
        ),
        *("Улучшенная модель", "improved-checkpoint-100", "hedge_tiny", "a/b_c+d~e", "نموذج"),
    ],
)
def test_plain_names_are_names(name: str) -> None:
    assert name_fault(name) is None


def test_the_titles_of_our_own_detectors_are_names() -> None:
    assert [name for name in names() if name_fault(get(name).title)] == []


@given(st.text(min_size=1, max_size=30))
def test_no_name_that_passes_hides_a_character(name: str) -> None:
    if name_fault(name) is None:
        assert name.isprintable()
        assert not any(unicodedata.category(c) in ("Cf", "Cc", "Co", "Cs", "Cn", "So") for c in name)


def detectors(s: Json) -> Json:
    found: Json = s["clusterings"]["exact"]["detectors"]
    return found


def test_other_names_of_an_entry_are_looked_at_too() -> None:
    for place, change in (
        ("entry.model", lambda s: s["entry"].update(model="GPT-5 verified")),
        (
            "clusterings.exact.detectors.se.title",
            lambda s: s["clusterings"]["exact"]["detectors"]["se"].update(title="✓"),
        ),
        ("labels.judge", lambda s: s["labels"].update(judge={"judge": "official panel"})),
    ):
        changed = copy.deepcopy(SUBMISSION)
        change(changed)
        found = check({**changed, "digest": digest_of(changed)}, **RULES).problems
        assert any(problem.startswith(place) for problem in found), (place, found)


def test_an_edition_is_strict() -> None:
    edition = edition_for("hedge_demo")
    assert edition is not None
    told = edition.model_dump(mode="json")
    for change in ({"hedge_edition": 2}, {"seeds": []}, {"seeds": [-1]}, {"more": 1}):
        with pytest.raises(DataError):
            Edition.read({**told, **change}, "e")
