"""Every way to tamper that the leaderboard's README names has the outcome that it says there."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from tampered_submissions import (
    ASIDE,
    MISSED,
    REFUSED,
    REPORTED,
    SCORERS,
    TAMPERS,
    TASK,
    Json,
    Tamper,
    World,
    matched,
    world,
)

from hedge_tasks.cli import main
from hedge_tasks.data.manifests import (
    Digests,
    grouping_digest,
    manifests_of,
    read_manifest,
    text_digest,
    write_manifest,
)
from hedge_tasks.data.splits import image_keys, load_split
from hedge_tasks.errors import DataError
from hedge_tasks.leaderboard import build_site, check, make_submission, read_entries, write_submission
from hedge_tasks.leaderboard.chain import check_with_texts, prove_labels, prove_run, prove_store
from hedge_tasks.leaderboard.submission import digest_of
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.llm.log import Reply, ReplyLog, digest
from hedge_tasks.runs.editions import write_edition


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(tmp_path_factory.mktemp("world"))


def outcome(findings: ValidationFindings, part: str) -> str:
    if findings.problems:
        return REFUSED
    if findings.set_aside:
        return ASIDE
    return MISSED if is_verified(findings, part) else REPORTED


def is_verified(findings: ValidationFindings, part: str) -> bool:
    """Whether a reader is told that a part was computed again; of answers nobody is told so."""
    what, *names = part.split() or ("",)
    if what == "labels":
        return findings.labels.verified
    if what == "clusters":
        return findings.clusterings[names[0]].verified
    return findings.detectors[names[0]][names[1]].verified if what == "scores" else False


def of_chain(made: World, tampered: Json, findings: ValidationFindings, part: str) -> str:
    if not findings.problems:
        links = [prove_run(tampered, made.run), prove_store(made.run, made.store)]
        if any(link.problems for link in links):
            return REFUSED
        findings = check_with_texts(tampered, made.run, **made.rules)
    return outcome(findings, part)


def outcomes(made: World, tamper: Tamper) -> tuple[str, str, str]:
    with_texts, without = tamper.of(made.with_texts), tamper.of(made.without_texts)
    whole, bare = (check(submission, **made.rules) for submission in (with_texts, without))
    found = (outcome(whole, tamper.part), outcome(bare, tamper.part), of_chain(made, without, bare, tamper.part))
    return found if tamper.part else tuple(MISSED if of == REPORTED else of for of in found)  # type: ignore[return-value]


@pytest.mark.slow
def test_what_was_not_tampered_with_is_valid_ranked_and_proved(made: World) -> None:
    for submission in (made.with_texts, made.without_texts):
        findings = check(submission, **made.rules)
        assert (findings.problems, findings.set_aside) == ((), ())
        assert findings.coverage is not None
        assert findings.coverage.whole
        assert prove_run(submission, made.run).problems == ()
    assert prove_store(made.run, made.store).problems == ()
    verified = check(made.with_texts, **made.rules)
    assert verified.labels.verified
    assert verified.clusterings["exact"].verified
    assert not verified.clusterings["other"].verified
    lent = check_with_texts(made.without_texts, made.run, **made.rules)
    assert lent.labels.verified
    assert lent.problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("tamper", TAMPERS, ids=[tamper.name for tamper in TAMPERS])
def test_a_tamper_has_the_outcome_that_is_told(made: World, tamper: Tamper) -> None:
    assert tamper.of(made.with_texts) != made.with_texts
    assert outcomes(made, tamper) == tamper.outcomes


@pytest.mark.slow
def test_another_models_answers_under_a_false_name_are_nobodys_to_see(tmp_path: Path) -> None:
    """The one that cannot be caught: everything was made by a model that was not the model."""
    lie = world(tmp_path, model="org/a-model-that-it-was-not")
    assert check(lie.with_texts, **lie.rules).ranked
    assert prove_run(lie.with_texts, lie.run).problems == ()
    assert prove_store(lie.run, lie.store).problems == ()


@pytest.mark.slow
def test_somebody_elses_submission_under_another_name_has_no_place(made: World, tmp_path: Path) -> None:
    write_submission(tmp_path / "a.json", made.with_texts)
    for file, about in (("b.json", {"name": "mine"}), ("c.json", {"name": "mine", "model": "org/mine"})):
        copied = {**made.with_texts, "entry": {**made.with_texts["entry"], **about}}
        write_submission(tmp_path / file, {**copied, "digest": digest_of(copied)})
    built = read_entries(tmp_path, **made.rules)
    assert built.refused == {tmp_path / "c.json": "the same answers as a.json, there of org/model"}
    assert [entry.findings.ranked for entry in built.entries] == [True, False]
    assert built.entries[1].findings.set_aside[-1].startswith("the same answers as a.json: a replication")


@pytest.mark.slow
@pytest.mark.parametrize("texts", [True, False])
def test_a_copy_is_a_copy_with_noise_in_its_numbers_and_other_names_of_clusters(
    made: World, tmp_path: Path, texts: bool
) -> None:
    stolen = copy.deepcopy(made.with_texts if texts else made.without_texts)
    stolen["entry"] |= {"name": "mine", "model": "org/mine"}
    for document in stolen["documents"]:
        document["logprobs"] = [value if value is None else value - 1e-7 for value in document["logprobs"]]
        for of in document["clusterings"].values():
            of["clusters"] = [one + 7 for one in of["clusters"]]
    write_submission(tmp_path / "b.json", made.with_texts if texts else made.without_texts)
    write_submission(tmp_path / "c.json", matched(stolen))
    built = read_entries(tmp_path, **made.rules)
    assert [entry.file for entry in built.entries] == ["b.json"]
    assert "the same answers as b.json" in built.refused[tmp_path / "c.json"]


@pytest.mark.slow
def test_who_was_committed_first_stands_whatever_the_names(made: World, tmp_path: Path) -> None:
    def git(*arguments: str, when: int = 0) -> None:
        who = {f"GIT_{kind}_{what}": "me@example.org" for kind in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        dates = {f"GIT_{kind}_DATE": f"{when} +0000" for kind in ("AUTHOR", "COMMITTER")}
        environment = {**os.environ, **who, **dates, "GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True, env=environment, timeout=60)

    git("init", "--quiet")
    for name, when in (("honest.json", 1_700_000_000), ("a-thief.json", 1_700_000_100)):
        about = {**made.with_texts["entry"], "name": name, "model": f"org/{name}"}
        other = {**made.with_texts, "entry": about}
        write_submission(tmp_path / name, {**other, "digest": digest_of(other)})
        git("add", ".")
        git("commit", "--quiet", "--message", name, when=when)
    built = read_entries(tmp_path, **made.rules)
    assert [entry.file for entry in built.entries] == ["honest.json"]
    assert built.refused[tmp_path / "a-thief.json"] == "the same answers as honest.json, there of org/honest.json"


def test_the_readme_tells_these_outcomes() -> None:
    text = (resources.files("hedge_tasks.leaderboard") / "README.md").read_text("utf-8").split("## Threat model")[1]
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|$", text, re.MULTILINE)
    words = {REFUSED, ASIDE, REPORTED, MISSED}
    told = {name: tuple(of) for name, *of in rows if set(of) <= words}
    assert told.items() >= {tamper.name: tamper.outcomes for tamper in TAMPERS}.items()
    assert len(told) == len(TAMPERS) + 2  # the two that have tests of their own
    count = re.search(r"(\d+) ways", text)
    assert count is not None
    assert int(count[1]) == len(told)


@pytest.mark.slow
def test_the_site_says_what_is_verified_and_sets_partial_entries_aside(made: World, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_submission(folder / "whole.json", made.with_texts)
    dropped = next(tamper for tamper in TAMPERS if tamper.name == "hard documents dropped")
    other = copy.deepcopy(made.without_texts)
    for document in other["documents"]:
        document["logprobs"] = [value if value is None else value - 0.05 for value in document["logprobs"]]
    write_submission(folder / "partial.json", dropped.of(matched(other)))
    built = read_entries(folder, **made.rules)
    build_site(built, tmp_path / "site")
    pages = (tmp_path / "site").glob("task-*.html")
    page = next(page for page in pages if re.search(r"-auroc-exact-se-\w{8}\.html$", page.name))
    text = page.read_text("utf-8")
    ranked, _, aside = text.partition("<h2>Not ranked</h2>")
    assert ranked.count(">recomputed<") == 1
    assert "self-reported" not in ranked
    assert re.search(r">partial</span> <span[^>]*>partial: \d+ of 20 documents", aside)
    assert ">self-reported</span> <small>documents, labels" in aside
    assert TASK in text


@pytest.mark.slow
def test_hedge_verify_proves_the_chain_and_says_where_it_breaks(
    made: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made.run.path is not None
    assert made.store.folder is not None
    (tmp_path / "manifests").mkdir()
    write_manifest(tmp_path / "manifests" / "m.json", made.manifests[TASK])
    (tmp_path / "editions").mkdir()
    write_edition(tmp_path / "editions" / "e.json", made.editions[TASK])
    given = ["--run", str(made.run.path), "--store", str(made.store.folder)]
    given += ["--manifests", str(tmp_path / "manifests"), "--editions", str(tmp_path / "editions")]
    file = tmp_path / "s.json"
    write_submission(file, made.without_texts)
    assert main(["verify", str(file), *given, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["labels"]["verified"]  # by the texts of the run file
    assert said["documents"] == {"matched": 20, "of": 20, "whole": True}
    assert [(link["name"], link["problems"]) for link in said["chain"]] == [("run file", []), ("answer store", [])]
    assert said["chain"][1]["facts"]["models"] == ["hedge_x|org/model"]
    forged = next(tamper for tamper in TAMPERS if tamper.name == "log-probabilities forged")
    write_submission(file, forged.of(made.without_texts))
    assert main(["verify", str(file), *given]) == 1
    assert "run file: DIFFERS\n  documents[0].logprobs: not that of the run file" in capsys.readouterr().out
    assert main(["verify", str(file), "--store", str(made.store.folder)]) == 2
    assert "give the run file, too" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_whose_answers_are_not_the_stores_is_found(made: World, tmp_path: Path) -> None:
    first, *others = made.run.answer_sets
    assert first.drawn is not None
    for changed, said in [
        (replace(first, baseline=replace(first.baseline, text="heart, surely")), "answer 0 is not that of the store"),
        (replace(first, baseline=replace(first.baseline, mean_logprob=-9.0)), "log-probability or tokens of answer 0"),
        (replace(first, question="Another?"), "question or reference are not those"),
        (replace(first, clean=first.clean[:2]), "the draws are not those that the run was made of"),
        (replace(first, clean=(*first.clean, first.clean[0])), "1 of its 8 draws are not in the store"),
        (replace(first, drawn=replace(first.drawn, document="key99")), "the store has no document 'key99'"),
        (replace(first, drawn=None), "does not say which draws"),
    ]:
        found = prove_store(replace(made.run, answer_sets=(changed, *others)), made.store).problems
        assert any(said in text for text in found), (said, found)
    assert prove_store(replace(made.run, task="other"), made.store).problems
    colder = {**made.run.settings, "sampling": {**made.run.settings["sampling"], "temperature": 0.5}}
    assert "temperature" in prove_store(replace(made.run, settings=colder), made.store).problems[0]
    # A task that reads replies of a fixed form says so, and then texts may differ.
    read = {**made.run.settings, "read_by": "package:Task"}
    lenient = replace(
        made.run, settings=read, answer_sets=(replace(first, baseline=replace(first.baseline, text="A")), *others)
    )
    link = prove_store(lenient, made.store)
    assert (link.problems, link.facts["answers_read_differently"]) == ((), 1)


@pytest.mark.slow
def test_labels_of_a_model_judge_are_proved_by_its_label_store(made: World, tmp_path: Path) -> None:
    run = made.run
    keys = {a.id: digest({"id": a.id}) for a in run.answer_sets}
    with ReplyLog(tmp_path) as store:
        store.add((keys[a.id], Reply("?"), {"verdict": {"label": a.label}}) for a in run.answer_sets)
    judge = {"judge": "llm", "model": "judge"}
    verdicts = {a.id: {"judge": "llm:judge hedge 1", "key": keys[a.id]} for a in run.answer_sets}
    settings = {**run.settings, "documents": {**run.settings["documents"], "judge": judge}}
    submission = make_submission(replace(run, verdicts=verdicts, settings=settings), scorers=SCORERS)
    assert submission["labels"]["store"].startswith("sha256:")
    findings = check(submission, **made.rules)
    assert (findings.problems, findings.labels.verified) == ((), False)
    with ReplyLog(tmp_path) as store:
        assert prove_labels(submission, store).problems == ()
        flipped = copy.deepcopy(submission)
        flipped["documents"][0]["label"] = 1 - flipped["documents"][0]["label"]
        assert "the label store says" in prove_labels(flipped, store).problems[0]
    # Flipped in the submission alone, the digest of keys and labels says so.
    assert any("labels.store: stated" in text for text in check(flipped, **made.rules).problems)


def test_a_manifest_survives_the_disk_and_a_damaged_one_is_one_error(made: World, tmp_path: Path) -> None:
    manifest = made.manifests[TASK]
    write_manifest(tmp_path / "m.json", manifest)
    assert read_manifest(tmp_path / "m.json") == manifest
    assert manifests_of(TASK, [tmp_path]) == [manifest]
    assert manifests_of("another", [tmp_path]) == []
    text = (tmp_path / "m.json").read_text("utf-8")
    for old, new, said in [
        ('"hedge_manifest": 1', '"hedge_manifest": 9', "hedge_manifest: expected 1, got 9"),
        ('"tasks": ["hedge_demo"]', '"tasks": 5', "tasks: expected a list"),
        ('"path": "org/data"', '"path": null', r"data\.path: expected a text, got None"),
        ('["q0"', '["q1"', "two documents have one id"),
        ('["q0"', "[5", r"documents\[0\]\[0\]: expected a text, got 5"),
        ('["q0", ', '["q0", 7, ', r"documents\[0\]\[1\]: expected a text or nothing, got 7|documents\[0\]"),
    ]:
        assert old in text
        (tmp_path / "m.json").write_text(text.replace(old, new, 1), "utf-8")
        with pytest.raises(DataError, match=said):
            read_manifest(tmp_path / "m.json")


def test_shipped_manifests_are_sound_and_those_of_the_embedded_questions_are_true() -> None:
    shipped = {
        task: manifests_of(task) for task in ("hedge_demo", "hedge_medhallu", "hedge_medhallu_knowledge_notsure")
    }
    assert {task: [len(m.documents) for m in of] for task, of in shipped.items()} == {
        "hedge_demo": [120],
        "hedge_medhallu": [1000],
        "hedge_medhallu_knowledge_notsure": [1000],
    }
    rows = load_split("package://hedge_tasks.tasks/hedge_demo/data", None, "demo-test")
    pictures = image_keys(rows, ["image"])
    [manifest] = shipped["hedge_demo"]
    told = rows.remove_columns("image")
    for row, picture in zip(told, pictures, strict=True):
        grouping = grouping_digest(str(row["image_id"]), str(row["question_type"]))
        expected = Digests(text_digest(row["question"]), text_digest(row["answer"]), grouping, picture)
        assert manifest.documents[str(row["question_id"])] == expected
