"""The site's arithmetic: places, detectors over entries, entries without a manifest, what is kept between builds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from finished_runs import board_rules, finished_run, on_board

from hedge_tasks.detectors.pipeline import detection_auroc
from hedge_tasks.errors import DataError
from hedge_tasks.leaderboard import build_site, check, kept, make_submission, read_entries, write_submission
from hedge_tasks.leaderboard.board import entry_page_name
from hedge_tasks.leaderboard.comparison import Counted, Pairs, sum_pairs
from hedge_tasks.leaderboard.detector_ranks import Priced, detector_board, priced
from hedge_tasks.leaderboard.ranking import Place, places
from hedge_tasks.measures.detector_table import detector_table
from hedge_tasks.measures.run_finding import finding_of
from hedge_tasks.measures.seed_spread import draws_shares
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.statistics import compare_sums, ratio


def of_shares(*shares: float, n: int = 400) -> tuple[list[float], Pairs]:
    """Entries that are right in a share of the documents, each in its first ones of an order of its own."""
    entries = []
    for i, share in enumerate(shares):
        right = np.random.default_rng(i).permutation(n) < share * n
        entries.append(Counted(np.arange(n), np.stack([right, np.ones(n)], 1).astype(float), np.arange(n)))
    return [float(e.parts[:, 0].mean()) for e in entries], sum_pairs(entries, ratio)


def test_entries_that_cannot_be_told_apart_share_a_place() -> None:
    values, pairs = of_shares(0.9, 0.55, 0.57, 0.3)
    found = places(values, pairs, higher_is_better=True)
    assert found == [Place(1, 1, 4), Place(2, 3, 4), Place(2, 3, 4), Place(4, 4, 4)]
    assert [place.interval for place in found if place] == ["1", "2–3", "2–3", "4"]
    turned = places(values, pairs, higher_is_better=False)
    assert [place.rank for place in turned if place] == [4, 2, 2, 1]


def test_a_place_is_one_more_than_there_are_better_entries_after_max_t() -> None:
    values, pairs = of_shares(0.50, 0.53, 0.56, 0.59, 0.62, 0.65)
    tests = []
    for a in range(6):
        for b in range(a):
            x, y = (np.random.default_rng(i).permutation(400) < v * 400 for i, v in ((a, values[a]), (b, values[b])))
            one, other = (np.stack([z, np.ones(400)], 1) for z in (x, y))
            tests.append((compare_sums(one, other, range(400), ratio).p_value, a, b))
    better: dict[int, int] = dict.fromkeys(range(6), 0)
    worse = dict(better)
    for k, (p, a, b) in enumerate(sorted(tests)):
        if p * (len(tests) - k) >= 0.05:
            break
        up, down = (a, b) if values[a] > values[b] else (b, a)
        better[down] += 1
        worse[up] += 1
    assert 0 < sum(better.values()) < 15
    found = places(values, pairs, higher_is_better=True)
    assert found == [Place(1 + better[i], 6 - worse[i], 6) for i in range(6)]


def test_an_entry_without_a_value_has_no_place() -> None:
    values, pairs = of_shares(0.9, 0.2)
    nothing = Pairs(*(np.pad(m.astype(float), (0, 1), constant_values=np.nan) for m in vars(pairs).values()))
    assert places([*values, None], nothing, higher_is_better=True) == [Place(1, 1, 2), Place(2, 2, 2), None]


@pytest.mark.slow
def test_detectors_at_one_price_see_the_first_answers_that_they_pay_for() -> None:
    run = finished_run(80, seed=3)
    found = priced(make_submission(run))
    table = {row.detector: row for row in detector_table(run, scorer_of(run, None), ["se", "vase"], budget=6).rows}
    for name in ("se", "vase"):
        # Equal answers are equal whatever else is there, so the clusters of all are those of the first.
        assert found["equal"]["exact"][name].auroc == pytest.approx(table[name].estimate.value)
        assert found["equal"]["exact"][name].draws == table[name].draws == 6
        whole = detection_auroc(scorer_of(run, None).score(run.answer_sets), name).value
        assert found["all"]["exact"][name].auroc == pytest.approx(whole)
        # With each text a cluster, what other draws would change follows from the answers as from the file.
        (share,) = draws_shares(run.answer_sets, scorer_of(run, None), [name])
        assert found["all"]["exact"][name].by_draws == pytest.approx(share.stderr, rel=1e-9)
    assert found["all"]["exact"]["baseline_nll"].by_draws is None
    assert found["all"]["exact"]["vase"].draws == 12
    assert "lexical" not in found["all"]["exact"]  # it reads texts


def test_detectors_are_ranked_over_entries_that_have_all_of_them() -> None:
    def entry(task: str, model: str, **aurocs: float) -> tuple[str, str, dict[str, Priced]]:
        return task, model, {name: Priced(value, 6) for name, value in aurocs.items()}

    entries = [entry("t", f"m{i}", se=0.7, vase=0.8 if i else 0.6, radflag=0.6) for i in range(4)]
    board = detector_board([*entries, entry("u", "m5", se=0.5, rare=0.9)])
    assert [rank.detector for rank in board.ranks] == ["vase", "se", "radflag"]
    assert [rank.mean for rank in board.ranks] == [(3 * 1 + 2.5) / 4, (3 * 2 + 1) / 4, (3 * 3 + 2.5) / 4]
    assert (board.counted, board.left_out) == (4, 1)
    assert all(rank.interval and rank.interval[0] <= rank.mean <= rank.interval[1] for rank in board.ranks)


def test_many_entries_of_one_model_are_one_model_for_the_intervals() -> None:
    def wide(entries: list[tuple[str, str, dict[str, Priced]]]) -> float:
        [low, high] = next(r.interval or (0, 0) for r in detector_board(entries).ranks if r.detector == "a")
        return high - low

    numbers = [{"a": Priced(0.5 + 0.1 * (i % 2), 1), "b": Priced(0.55, 1)} for i in range(4)]
    once = [("t", f"m{i}", of) for i, of in enumerate(numbers)]
    often = [(f"t{k}", model, of) for k in range(20) for _, model, of in once]
    assert wide(often) == pytest.approx(wide(once), abs=0.01)


def entries_of(tmp_path: Path, *runs: Run) -> Path:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    for i, run in enumerate(runs):
        write_submission(folder / f"s{i}.json", make_submission(on_board(run)))
    return folder


def short(run: Run, n: int) -> Run:
    return replace(run, answer_sets=run.answer_sets[:n])


@pytest.mark.slow
def test_without_a_manifest_nobody_is_ranked_and_nobody_is_displaced(tmp_path: Path) -> None:
    """Two who agree on fewer documents, or somebody who invents sixty, decide nothing."""
    runs = [finished_run(24, seed=i, model=f"m{i}") for i in range(4)]
    other = tuple(replace(a, id=f"mine {a.id}") for a in finished_run(60, seed=9).answer_sets)
    more = replace(runs[3], answer_sets=(*runs[3].answer_sets, *other))
    folder = entries_of(tmp_path, runs[0], short(runs[1], 20), short(runs[2], 20), more)
    rules = board_rules(make_submission(on_board(runs[0])))
    for known, ranked in ((rules["manifests"], [True, False, False, False]), (lambda task: [], [False] * 4)):
        built = read_entries(folder, manifests=known, editions=rules["editions"])
        assert [entry.findings.ranked for entry in built.entries] == ranked
    assert built.entries[0].findings.set_aside[0].startswith("no manifest of this task is known")
    built = read_entries(folder, **rules)
    assert built.entries[1].findings.set_aside == ("partial: 20 of 24 documents (83.3 %)",)
    assert "24 of 24 documents (100.0 %), and 60 others" in built.entries[3].findings.set_aside[0]
    assert built.entries[1].partial
    files = {path.name: path.read_text("utf-8") for path in build_site(built, tmp_path / "site")}
    heat, aside = files["index.html"].split('id="aside"')
    assert "m2" not in heat.split("<tbody>")[1]
    assert aside.count('<span class="badge partial">partial</span> ') == 3


@pytest.mark.slow
def test_what_was_found_of_a_file_is_kept_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = entries_of(tmp_path, *(finished_run(24, seed=i, model=f"m{i}") for i in range(2)))
    cache = tmp_path / "cache"
    first = read_entries(folder, cache=cache)
    looked: list[str] = []

    def counting(submission: dict[str, object], **options: object) -> object:
        looked.append("once more")
        return check(submission, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("hedge_tasks.leaderboard.entries.check", counting)
    again = read_entries(folder, cache=cache)
    assert looked == []
    pages = [
        {path.name: path.read_text("utf-8") for path in build_site(built, tmp_path / name)}
        for built, name in ((first, "a"), (again, "b"))
    ]
    assert pages[0] == pages[1]
    assert again.entries[0].findings == first.entries[0].findings
    write_submission(folder / "s1.json", make_submission(finished_run(24, seed=1, model="m1"), note="new"))
    for path, n in zip(sorted(cache.iterdir()), (None, 6), strict=True):
        path.write_bytes(path.read_bytes()[:-100] if n is None else b"broken")
    read_entries(folder, cache=cache)
    assert len(looked) == 2
    looked.clear()
    read_entries(folder, cache=cache, thorough=True)
    assert len(looked) == 2


def test_another_library_plug_in_or_file_of_the_package_is_another_circumstance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept._versions()["numpy"] == np.__version__

    def of() -> object:
        return kept.circumstances_of(lambda task: [], lambda task: None, False)("t")

    before = of()
    assert of() == before
    plug_in = SimpleNamespace(dist=SimpleNamespace(name="plug-in", version="1"))

    def points(group: str | None = None) -> object:
        return [plug_in] if group == "hedge_tasks.detectors" else SimpleNamespace(groups={"hedge_tasks.detectors", "x"})

    monkeypatch.setattr(kept.metadata, "entry_points", points)
    with_plug_in = of()
    plug_in.dist.version = "2"
    assert with_plug_in not in (before, of())
    (tmp_path / "words.txt").write_text("a")
    of_folder = kept._digest(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_text("bytecode")
    assert kept._digest(tmp_path) == of_folder
    (tmp_path / "words.txt").write_text("b")
    assert kept._digest(tmp_path) != of_folder


@pytest.mark.slow
def test_a_curve_of_many_documents_is_drawn_to_its_end(tmp_path: Path) -> None:
    [entry] = read_entries(entries_of(tmp_path, finished_run(300))).entries
    curve = re.findall(r'class="curve[^"]*" d="([^"]+)"', entry.html)[0]
    assert len(curve) > 2000
    assert "characters" not in curve
    assert curve.split("L")[-1].split()[0] == "406.0"  # the right edge, where all answers are flagged


def test_links_are_no_entries(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret.json").write_text("{}", "utf-8")
    (folder / "s.json").symlink_to(tmp_path / "secret.json")
    (folder / "d.json").mkdir()
    built = read_entries(folder)
    assert {reason.partition(": ")[2] for reason in built.refused.values()} == {"no plain file"}


def test_an_empty_leaderboard_has_a_front_page(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    files = build_site(read_entries(tmp_path / "in"), tmp_path / "site")
    pages = {path.name: path.read_text("utf-8") for path in files}
    assert set(pages) == {"index.html", "detectors.html"}
    assert "There is no entry yet" in pages["index.html"]


@pytest.mark.slow
def test_two_entries_never_share_a_page(tmp_path: Path) -> None:
    submission = make_submission(on_board(finished_run(20)), texts=True)
    (tmp_path / "in").mkdir()
    write_submission(tmp_path / "in" / "a.json", submission)
    built = read_entries(tmp_path / "in", **board_rules(submission))
    [entry] = built.entries
    assert submission["digest"].removeprefix("sha256:") in entry_page_name(entry.content)
    with pytest.raises(DataError, match="two entries have one page"):
        build_site(replace(built, entries=[entry, entry]), tmp_path / "site")


@pytest.mark.slow
def test_the_board_tells_an_entrys_trust_as_its_own_page_does(tmp_path: Path) -> None:
    """The state is computed from the entry, at first sight and out of what is kept; without texts there is none."""
    with_texts, without = (on_board(finished_run(80, seed=i, model=m)) for i, m in ((0, "m"), (1, "k")))
    submissions = make_submission(with_texts, texts=True), make_submission(without, texts=False)
    (tmp_path / "in").mkdir()
    for i, submission in enumerate(submissions):
        write_submission(tmp_path / "in" / f"e{i}.json", submission)
    rules = board_rules(*submissions)
    for _ in range(2):
        built = read_entries(tmp_path / "in", cache=tmp_path / "cache", **rules)
        told = {entry.model: entry.summary for entry in built.entries}
        expected = finding_of(with_texts)
        assert told["m"] is not None
        assert (told["m"].level, told["m"].trust) == (expected.trust.level, expected.trust.short)
        assert told["k"] is None
    build_site(built, tmp_path / "site")
    pages = [path.read_text("utf-8") for path in (tmp_path / "site").glob("*.html")]
    front = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert front.count(f">trust: {expected.trust.level}<") == 1
    assert any(f'<b>Trust:</b> <span class="foreign" dir="auto">{expected.trust.short}' in page for page in pages)
