"""The leaderboard: an entry is answers; what else its file says is nothing, and honest runs have a place."""

from __future__ import annotations

import copy
import json
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from board_tasks import SAMPLING, QuestionsOfRun, entry, own_run, rules_of
from hostile import attempt, mutated
from printed import json_of

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, Refused
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.leaderboard.board import faults, measure, read_board, repeats
from hedge_tasks.leaderboard.entry import Entry, entry_of, hub_id, questions_digest, read_entry, write_entry
from hedge_tasks.leaderboard.replay import LEAST_P, MOST_OFF, TOLERANCE, Replay, replay_entry
from hedge_tasks.leaderboard.repository import make_repository, merged_in
from hedge_tasks.leaderboard.site import build_site
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest
from hedge_tasks.sampling.reread import Reread

RUN = own_run()
RULES = rules_of(RUN)
QUESTIONS: Any = QuestionsOfRun(RUN)
CONTENT = json.loads(json.dumps(entry_of(RUN).model_dump(mode="json")))
NUMBERS = [(shown.key, shown.number) for shown in measure(entry_of(RUN), QUESTIONS).numbers]

EXTRAS = ("label", "cluster_ids", "question", "reference", "group", "question_type", "scores", "claims", "held_out")


def test_an_edit_of_anything_but_answers_changes_no_number_or_is_refused() -> None:
    for seed in range(200):
        content = mutated(CONTENT, random.Random(seed))
        rows = content.get("documents") if isinstance(content, dict) else None
        if isinstance(rows, list) and len(rows) == len(CONTENT["documents"]):
            answers = [{key: own[key] for key in ("baseline", "clean", "noisy")} for own in CONTENT["documents"]]
            both = zip(rows, answers, strict=True)
            content = {**content, "documents": [{**row, **own} if isinstance(row, dict) else row for row, own in both]}
        changed, refused = attempt(lambda content=content: Entry.read(content))
        if not refused and not faults(changed, RULES):
            assert [(shown.key, shown.number) for shown in measure(changed, QUESTIONS).numbers] == NUMBERS, seed


@pytest.mark.parametrize("name", EXTRAS)
def test_what_a_document_says_besides_its_answers_counts_for_nothing(name: str) -> None:
    content = copy.deepcopy(CONTENT)
    for row in content["documents"]:
        row[name] = {"label": 0, "cluster_ids": [0] * 7, "held_out": True, "claims": []}.get(name, "mine")
    try:
        changed = Entry.read(content)
    except HedgeError:
        return
    assert [(shown.key, shown.number) for shown in measure(changed, QUESTIONS).numbers] == NUMBERS


def cheat(change: Callable[[Run], Run]) -> list[str]:
    return faults(entry_of(change(RUN)), RULES)


def with_sampling(**changes: Any) -> Callable[[Run], Run]:
    return lambda run: replace(run, settings={**run.settings, "sampling": {**SAMPLING, **changes}})


def of_sets(change: Callable[[Any], Any]) -> Callable[[Run], Run]:
    return lambda run: replace(run, answer_sets=tuple(map(change, run.answer_sets)))


CHEATS: dict[str, tuple[Callable[[Run], Run], str]] = {
    "another temperature": (with_sampling(temperature=0.2), "temperature 0.2, where the edition has 1"),
    "a seed of one's choice": (with_sampling(seed=7), "seed 7, where the edition has 0"),
    "the model's own decoding": (with_sampling(decoding="model"), 'decoding "model"'),
    "another prompt": (lambda r: replace(r, settings={**r.settings, "prompt": {"user": "Think. {question}"}}), "Think"),
    "hard questions left out": (
        lambda r: replace(r, answer_sets=r.answer_sets[:-4]),
        "4 documents of the task are",
    ),
    "a question twice": (lambda r: replace(r, answer_sets=(*r.answer_sets, r.answer_sets[0])), "stand there twice"),
    "questions of one's own": (of_sets(lambda a: replace(a, id=f"my {a.id}")), "are not the task's"),
    "easier references": (of_sets(lambda a: replace(a, reference=a.baseline.text)), "other questions or references"),
    "easier questions": (of_sets(lambda a: replace(a, question="Is it?")), "other questions or references"),
    "half of the draws": (of_sets(lambda a: replace(a, clean=a.clean[:1])), "1 clean and 3 noisy answers"),
    "no noisy draws": (of_sets(lambda a: replace(a, noisy=())), "3 clean and 0 noisy answers"),
}


@pytest.mark.parametrize("name", CHEATS)
def test_what_was_made_otherwise_is_refused(name: str) -> None:
    change, reason = CHEATS[name]
    assert reason in "; ".join(cheat(change))


def answers(**changes: Any) -> Callable[[Run], Run]:
    def changed(a: Any) -> Any:
        of = lambda x: replace(x, **{k: v(x) if callable(v) else v for k, v in changes.items()})  # noqa: E731
        return replace(a, baseline=of(a.baseline), clean=tuple(map(of, a.clean)), noisy=tuple(map(of, a.noisy)))

    return of_sets(changed)


HONEST: dict[str, Callable[[Run], Run]] = {
    "no log-probabilities": answers(mean_logprob=None, n_tokens=None),
    "log-probabilities that wobble": answers(mean_logprob=lambda x: x.mean_logprob - 0.1),
    "a sure model": of_sets(lambda a: replace(a, clean=(a.baseline,) * 3, noisy=(a.baseline,) * 3)),
    "a baseline that begins with a capital": of_sets(
        lambda a: replace(a, baseline=replace(a.baseline, text=a.baseline.text.upper()))
    ),
    "a blind model": answers(text="no", mean_logprob=-0.5),
    "a model that declines": answers(text="I cannot tell."),
    "a model that says nothing": answers(text="", n_tokens=0),
    "cut answers": answers(finish="length"),
    "other scripts": answers(text="صورة 肺"),
    "answers in another order": lambda r: replace(r, answer_sets=r.answer_sets[::-1]),
    "another time, version and machine": lambda r: replace(r, created="", settings={**r.settings, "version": "9"}),
}


@pytest.mark.parametrize("name", HONEST)
def test_no_honest_run_is_set_aside(name: str, tmp_path: Path) -> None:
    own = entry_of(HONEST[name](own_run(seed=3, model="org/other")))
    write_entry(tmp_path / "e.json", own)
    read = read_entry(tmp_path / "e.json")
    assert (read, read.digest) == (own, own.digest)
    assert faults(read, RULES) == []
    assert repeats(read, {"first.json": entry_of(RUN)}) is None
    assert measure(read, QUESTIONS).why_none == ""


def test_models_are_hub_ids() -> None:
    for name in ("Qwen/Qwen2.5-VL-7B-Instruct", "org/" + "a" * 96):
        assert entry_of(RUN, name).model == name
    for name in ("gpt-5", "org/a/b", "../x", "org/" + "a" * 97):
        with pytest.raises(DataError, match="model: expected a text like"):
            entry_of(RUN, name)
        assert entry_of(RUN, hub_id(f"{name} (hedge_hf)")).model  # whatever a run is called, its entry has an id


def test_the_digest_of_questions_is_of_all_that_is_asked() -> None:
    first, second = RUN.answer_sets[:2]
    others = [replace(first, **{name: "x"}) for name in ("id", "question", "reference")]  # type: ignore[arg-type]
    assert len({questions_digest([one]) for one in (first, *others)}) == 4
    assert questions_digest([first, second]) == questions_digest([second, first])
    none, empty = ([replace(first, question=text, reference=text)] for text in (None, ""))
    assert questions_digest(none) == questions_digest(empty)


def board_of(tmp_path: Path, *own: Entry) -> Path:
    (tmp_path / "entries").mkdir()
    for one in own:
        write_entry(tmp_path / "entries" / f"{one.name}.json", one)
    return tmp_path


def test_a_copy_is_refused_and_likeness_is_shown(tmp_path: Path) -> None:
    first = entry(1)
    copy_ = first.replaced(model="org/thief")
    nearly = entry_of(own_run(seed=1, model="org/near")).model_dump(mode="json")
    nearly["documents"][0]["baseline"]["text"] = "another"
    folder = board_of(tmp_path, first, copy_, Entry.read(nearly), first.replaced(documents=entry(2).documents))
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    who = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    for name in (first.name, copy_.name):
        subprocess.run([*who, "add", f"entries/{name}.json"], cwd=folder, check=True)
        subprocess.run([*who, "commit", "-qm", name], cwd=folder, check=True)
    assert list(merged_in(folder / "entries")) == [f"{first.name}.json", f"{copy_.name}.json"]
    board = read_board(folder, tmp_path / "kept", rules=RULES)
    assert [placed.title for placed in board.entries] == ["org/model-1", "org/near"]
    assert board.entries[1].alike == ("org/model-1", 39 / 40)
    reasons = sorted(reason.split(" ")[0] for reason in board.refused.values())
    assert reasons == ["byte", f"{first.name}.json"]


@pytest.mark.parametrize(
    ("close", "p", "holds"),
    [(1 - MOST_OFF, LEAST_P, True), (1 - MOST_OFF - 0.01, 1.0, False), (1.0, LEAST_P / 2, False)],
)
def test_a_replay_has_two_borders(close: float, p: float, holds: bool) -> None:
    replay = Replay(entry="x", model="m", documents=6, n_read=10, close=close, p_draws=p)
    assert replay.holds == holds
    assert not replay.replaced(n_read=0).holds


class Rereads:
    """Finds given answers likelier than they are said to be, by so much, and draws answers of its own."""

    answer_identity = "m"

    def __init__(self, off: float = 0.0, drawn: Refused | None = None) -> None:
        self.off, self.drawn = off, drawn or Answer("a", 0.0, 3)

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Any]]]:
        yield [(i, self.drawn) for i in range(len(draws))]

    def reread(self, draws: Sequence[DrawRequest], answers: Sequence[Answer]) -> list[Reread | str]:
        return [Reread(self.off + (a.mean_logprob or 0.0), a.n_tokens or 0) for a in answers]


def replayed(model: Any, *, free: bool = True, documents: int = 4) -> Replay:
    def requests(plan: SamplingPlan) -> list[SampleRequest]:
        prompt = Prompt("p", "{question}")
        return [SampleRequest(a.id, a.id, "q", prompt, plan, lambda document: []) for a in RUN.answer_sets]

    config, dataset = SimpleNamespace(task="t", test_split="test"), {"test": [{} for _ in RUN.answer_sets]}
    task: Any = SimpleNamespace(documents=requests, config=config, dataset=dataset, answers_are_free=free)
    return replay_entry(entry_of(RUN), task, model, "m", documents, seed=1)


def test_a_replay_reads_the_answers_and_draws_as_many() -> None:
    # A model that finds its own answers certain: of each document baseline and clean answers are less likely.
    assert replayed(Rereads()).replaced(entry="") == Replay(
        entry="", model="m", documents=4, n_read=4 * 7, close=1.0, p_draws=2 / 2**8
    )
    baselines = replayed(Rereads(), free=False, documents=3)
    assert (baselines.n_read, baselines.p_draws) == (3, 2 / 2**3)
    assert [replayed(Rereads(off * TOLERANCE)).close for off in (-0.99, 0.99, 1.01)] == [1, 1, 0]
    assert replayed(Rereads(), documents=99).documents == 40
    with pytest.raises(DataError, match="a draw failed: no"):
        replayed(Rereads(drawn=Refused("no")))
    with pytest.raises(DataError, match="SimpleNamespace does not tell how likely given answers are"):
        replayed(SimpleNamespace())


def test_replayed_entries_are_ranked_apart(tmp_path: Path) -> None:
    own = entry(1)
    folder = board_of(tmp_path, own, entry(2))
    (folder / "replays").mkdir()
    fields = {"model": "m", "documents": 6, "n_read": 10, "close": 1.0, "p_draws": 1.0}
    for answers_of, is_replayed in ((own.digest, True), ("other answers", False)):
        replay = Replay(entry=answers_of, **fields)
        (folder / "replays" / f"{own.name}.json").write_text(json.dumps(replay.model_dump()), "utf-8")
        board = read_board(folder, tmp_path / "kept", rules=RULES)
        assert [placed.replayed for placed in board.entries].count(True) == is_replayed
        site = {p.name: p.read_text("utf-8") for p in build_site(board, tmp_path / "site")}
        task = next(text for name, text in site.items() if name.startswith("task"))
        assert ("<h2>Replayed</h2>" in task) == is_replayed
        assert "<h2>Not replayed</h2>" in task
        assert len(site) == 4  # front, task, two entries
        assert all("believed until they are replayed" in text for text in site.values())


def test_submit_writes_into_a_folder_and_into_a_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_run(RUN, tmp_path / "results")
    make_repository(tmp_path / "repository")
    for out, inside in (("board", "."), ("repository", "entries")):
        facts = json_of(capsys, ["leaderboard", "submit", str(path), "--out", str(tmp_path / out), "--json"])
        assert Path(facts["entry"]).parent == tmp_path / out / inside
        assert read_entry(Path(facts["entry"])) == entry_of(RUN)
        assert facts["notes"][-1].startswith("gh pr create")
    (tmp_path / "file").write_text("", "utf-8")
    assert main(["leaderboard", "submit", str(path), "--out", str(tmp_path / "file")]) == 2
    assert main(["leaderboard", "init", str(tmp_path / "repository")]) == 2
