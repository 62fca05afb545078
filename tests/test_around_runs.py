"""Around a run: processes, arrays and evidence kept with it, names, prices, labels, and who may be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from at_border import at_border
from finished_runs import finished_run

from hedge_tasks.claims.base import Claim
from hedge_tasks.claims.decomposition import Decomposed, build_decomposition
from hedge_tasks.clustering.model_outputs import COSINES, RELATIONS, ModelOutputs, Source
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.judging.base import Verdict
from hedge_tasks.measures.audit_plan import make_plan
from hedge_tasks.runs import processes, trust
from hedge_tasks.runs.audit_files import check_plan
from hedge_tasks.runs.claim_labels import CLAIMS, check_references, judged_spans, labelled_spans
from hedge_tasks.runs.claims import inquiry
from hedge_tasks.runs.evidence import incomplete_sources, join_evidence, pack_outputs
from hedge_tasks.runs.kept_inside import find_inside_store, inside_source, names_kept
from hedge_tasks.runs.model_names import short_names
from hedge_tasks.runs.parts import parts_of
from hedge_tasks.runs.processes import gather, is_first, together
from hedge_tasks.runs.relabel import case_of, cases_of, changes, relabel
from hedge_tasks.runs.run_files import is_run_file, load_run, save_run, write_again
from hedge_tasks.runs.scorers import model_options, scorer_of, scorers_of
from hedge_tasks.runs.support import Support, Supported, SupportPrice, SupportSource
from hedge_tasks.runs.trust import DocumentSource, Untrusted, check_models
from hedge_tasks.sampling.inside import MODEL, InsideStore, inside_key

RUN = finished_run(6)


class Processes:
    """Three processes, of which this is one: the others have what is put here."""

    def __init__(self, rank: int, *parts: list[Any]) -> None:
        self.rank, self.parts = rank, list(parts)

    def get_world_size(self) -> int:
        return 1 + len(self.parts)

    def get_rank(self) -> int:
        return self.rank

    def all_gather_object(self, into: list[Any], own: list[Any]) -> None:
        into[:] = [*self.parts[: self.rank], own, *self.parts[self.rank :]]
        assert len(into) == self.get_world_size()


def test_every_process_has_the_items_of_all_and_fails_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (gather([1]), together(lambda: 2), is_first()) == ([1], 2, True)
    monkeypatch.setattr(processes, "_distributed", lambda: Processes(1, [0], [2, 3]))
    assert (gather([1]), is_first()) == ([0, 1, 2, 3], False)
    with pytest.raises(HedgeError, match="0"):
        together(lambda: 5)
    with pytest.raises(KeyError):
        together(lambda: {}["x"])
    monkeypatch.setattr(processes, "_distributed", lambda: Processes(0, [], []))
    assert (together(lambda: 5), is_first()) == (5, True)


def test_arrays_from_inside_are_looked_for_four_folders_up(tmp_path: Path) -> None:
    run = replace(RUN, settings={**RUN.settings, MODEL: "m"})
    first = run.answer_sets[0]
    with InsideStore(tmp_path / "hedge_answers") as store:
        store.put(
            {inside_key(run.task, "m", first.id, first.baseline.text): {"states": np.ones(2), "logits": np.ones(1)}}
        )

    def place(levels: int) -> Any:
        return replace(run, path=tmp_path.joinpath(*"abcdef"[: levels - 1], "run-1.jsonl"))

    at_border(lambda levels: find_inside_store(place(int(levels))) is not None, 4, "110")
    assert names_kept(place(2)) == {"states", "logits"}
    assert names_kept(place(6)) == set()
    found = inside_source(place(1))(frozenset({"states"}))
    assert {id: [*arrays] for id, arrays in found.items()} == {first.id: ["states"]}
    assert inside_source(RUN)(frozenset({"states"})) == {}


def test_a_run_file_is_named_after_its_time_and_task_and_written_again(tmp_path: Path) -> None:
    path = save_run(replace(RUN, task="a/b" * 40, created="2026-01-02T03:04:05.000006+00:00"), tmp_path)
    assert path.name == f"run-20260102030405000006-{('a_b' * 40)[:80]}.jsonl"
    assert save_run(replace(RUN, created=""), tmp_path).name == "run-undated-hedge_x.jsonl"
    run = load_run(path)
    assert write_again(replace(run, model="other")) == path
    assert load_run(path).model == "other"
    lines = tmp_path / "run-12345678-x.jsonl", tmp_path / "lines.jsonl"
    for file in lines:
        file.write_text("{}\n")
    assert [*map(is_run_file, lines)] == [True, False]
    for text, is_run in (("", False), ('{"hedge_run": 1}', True), (" " * 69 + '"hedge_run"', True)):
        lines[1].write_text(text)
        assert is_run_file(lines[1]) == is_run
    lines[1].write_text(" " * 70 + '"hedge_run"')
    assert not is_run_file(lines[1])
    with pytest.raises(DataError, match="only a run file keeps"):
        write_again(RUN)


def test_outputs_of_models_come_back_for_the_texts_they_were_of() -> None:
    outputs, dice = ModelOutputs(), np.random.default_rng(0)
    sources = [Source(COSINES, "c"), Source(RELATIONS, "n", None, "float32")]
    for source, width in zip(sources, (1, 3), strict=True):
        for answers in RUN.answer_sets:
            texts = [*dict.fromkeys(answers.texts)]
            known = dice.random((len(texts), len(texts))) < 0.1
            outputs.table(source).add_matrix(texts, dice.random((len(texts), len(texts), width)), known)
    kept = pack_outputs(outputs, RUN.answer_sets)
    halves = [pack_outputs(outputs, RUN.answer_sets[i::2]) for i in (0, 1)]
    assert join_evidence(halves).rows == kept.rows
    for answers in RUN.answer_sets:
        texts = [*dict.fromkeys(answers.texts)]
        read = kept.outputs([answers])
        for source in sources:
            for mine, whole in zip(read.table(source).matrix(texts), outputs.table(source).matrix(texts), strict=True):
                np.testing.assert_array_equal(mine, whole)
    assert incomplete_sources(outputs, sources, RUN.answer_sets) == {s.kind: s for s in sources}
    for answers in RUN.answer_sets:
        texts = [*dict.fromkeys(answers.texts)]
        outputs.table(sources[1]).add_matrix(texts, np.ones((len(texts), len(texts), 3)))
    assert incomplete_sources(outputs, sources, RUN.answer_sets) == {COSINES: sources[0]}


def test_long_names_keep_both_ends() -> None:
    alphabet = "".join(chr(97 + i % 26) for i in range(60))
    at_border(lambda n: short_names([alphabet[: int(n)]])[alphabet[: int(n)]] == alphabet[: int(n)], 36, "110")
    assert short_names([alphabet])[alphabet] == f"{alphabet[:18]}…{alphabet[-17:]}"
    twice = [f"a/{alphabet}", f"b/{alphabet}"]
    assert [name[-4:] for name in short_names(twice).values()] == [" [1]", " [2]"]
    assert [len(part) for part in parts_of(finished_run(1025, samples=1))] == [512, 512, 1]


def test_an_answer_is_judged_anew_as_its_judge_saw_it() -> None:
    nameless = replace(RUN, answer_sets=(replace(RUN.answer_sets[0], question=None),))
    with pytest.raises(DataError, match="q0: there is no question"):
        cases_of(nameless)
    case = case_of(RUN.answer_sets[1], {"description": "d", "image_key": "k"})
    assert (case.question, case.reference, case.description, case.image_key, case.cut) == (
        "question 1?",
        "a",
        "d",
        "k",
        False,
    )
    judge: Any = SimpleNamespace(
        judge=lambda cases: [Verdict(1, "r", "j", "1") for _ in cases], settings=lambda: {"judge": "j"}
    )
    again, verdicts = relabel(RUN, judge)
    assert ([a.label for a in again.answer_sets], len(verdicts)) == ([1] * 6, 6)
    assert again.settings["judged_again"]["created"] == RUN.created != again.created
    before = [a.id for a in RUN.answer_sets if a.label == 0]
    assert changes(RUN, again) == ({(0, 1): before} if before else {})


def test_scorers_are_those_that_a_run_records_and_trusts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no filters are recorded"):
        scorers_of(replace(RUN, settings={}))
    with pytest.raises(ConfigError, match="did you mean 'exact'"):
        scorer_of(RUN, "exacd")
    named = {
        "nli": {"backend": "nli", "model": "evil/model", "revision": "r"},
        "own": {"backend": "embed", "model": "custom:f"},
    }
    run = replace(RUN, settings={"filters": named})
    assert model_options(run, "nli", ("model",)) == model_options(RUN, "nli") == {}
    read = replace(run, path=tmp_path / "run-1.jsonl")
    assert model_options(replace(read, trusted=True), "nli") == model_options(run, "nli")
    for refused in (lambda: model_options(read, "nli"), lambda: scorers_of(read), lambda: check_models(read, named)):
        with pytest.raises(Untrusted, match=r"evil/model' at revision 'r'.*--trust-run"):
            refused()
    config = {
        "dataset_path": "json",
        "test_split": "t",
        "dataset_kwargs": {"data_files": "x.json"},
        "dataset_name": "n",
    }
    assert DocumentSource.of(config) == DocumentSource("json", "n", "t", "x.json")
    assert DocumentSource.of({**config, "dataset_path": "hub/set"}) == DocumentSource("hub/set", "n", "t")
    assert DocumentSource.of({"dataset_path": "json"}) is None
    assert DocumentSource.of({"test_split": "t"}) is None


def test_a_plan_is_of_one_run() -> None:
    plan = make_plan(RUN, n=4)
    check_plan(RUN, plan, Path("x"))
    first, *sets = RUN.answer_sets
    changed = replace(first, baseline=replace(first.baseline, text="another"))
    others = [{"created": "1"}, {"answer_sets": sets}, {"answer_sets": [changed, *sets]}]
    for fields in others:
        with pytest.raises(DataError, match=r"of another run .* or of other documents or answers"):
            check_plan(replace(RUN, **fields), plan, Path("x"))


ANSWERS = AnswerSet("1", Answer("No mass. A cyst."), (Answer("A cyst."),) * 2, (Answer("None."),), "what?", "a cyst")
CLAIMED = Decomposed((Claim("1#0", "1", "No mass.", 0, 8, "x"), Claim("1#1", "1", "A cyst.", 9, 16, "x")), 1.0)


def test_support_is_of_so_many_claims_and_draws() -> None:
    def fits(clean: Sequence[int] = (2, 2, 3), noisy: Sequence[int] = (2, 1, 3), end: int = 16) -> bool:
        parts = Decomposed((CLAIMED.claims[0], replace(CLAIMED.claims[1], end=end)), 1.0)
        return Supported(decomposed=parts, clean=np.ones(clean), noisy=np.ones(noisy)).fits(ANSWERS)

    assert fits()
    assert not any([fits((2, 1, 3)), fits((3, 2, 3)), fits((2, 2, 2)), fits(noisy=(2, 2, 3))])
    at_border(lambda end: fits(end=int(end)), 16, "110")
    prices = [SupportPrice(answers=a, claims=2, draws=d, amount=3, unit="pairs") for a, d in ((1, 7), (0, 0), (4, 5))]
    summed = SupportPrice.of_all(prices)
    assert str(summed) == "6 claims of 5 answers x 5 draws: at most 9 pairs"
    source = SupportSource(settings={"decomposition": "x", "model": "m"}, engine="e", contradicts=True, price=summed)
    supported = Supported(decomposed=CLAIMED, clean=np.ones((2, 2, 3)), noisy=np.ones((2, 1, 3)))
    support = Support(source=source, answers={"1": supported})
    assert support.of([ANSWERS]) == [supported]
    assert support.of([ANSWERS, replace(ANSWERS, id="2")]) is support.of([replace(ANSWERS, noisy=())]) is None


def test_labels_of_claims_come_from_verdicts_on_them_or_on_sentences() -> None:
    verdicts = [Verdict(1, "r", "j", "1", "minor"), Verdict(None, "r", "j", "1", "silent")]
    judge: Any = SimpleNamespace(judge=lambda cases: [v for v, _ in zip(verdicts, cases, strict=True)])
    [spans] = judged_spans([ANSWERS], [CLAIMED], judge).values()
    assert [(s.start, s.end, s.label, s.silent, s.severity) for s in spans] == [
        (0, 8, 1, False, "minor"),
        (9, 16, None, True, None),
    ]
    run = replace(RUN, answer_sets=(ANSWERS,), verdicts={"1": {CLAIMS: [span.to_dict() for span in spans]}})
    assert labelled_spans(run) == ("the run's verdicts on claims", {"1": spans})
    votes = [{"label": 1, "category": "fatal"}, {"label": 0, "category": "x"}]
    settings = {"documents": {"judge": {"unit": "sentence"}}}
    by_sentence = replace(run, verdicts={"1": {"votes": votes}}, settings=settings)
    where, of_run = labelled_spans(by_sentence)
    assert where == "the run's verdicts on sentences"
    assert [(s.start, s.end, s.label, s.severity) for s in of_run["1"]] == [(0, 8, 1, "major"), (9, 16, 0, None)]
    for other in (replace(by_sentence, settings={}), replace(by_sentence, verdicts={"1": {"votes": votes[:1]}})):
        assert labelled_spans(other) == ("", {})


def test_a_task_of_ones_own_and_the_environment_make_a_model_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = "filter_list:\n- filter:\n  - {function: hedge, model: a/b, revision: r}\n"
    (tmp_path / "t.yaml").write_text(f"task: t\ndataset_path: hub/set\ntest_split: x\n{steps}")
    monkeypatch.setattr(trust, "task_folders", lambda: [tmp_path])
    monkeypatch.setenv("HEDGE_MODELS", "nli=my/model")
    trusted = [("a/b", "r"), ("my/model", None), ("package://hedge_tasks.x", "r"), ("custom:f", "r")]
    strange = [("a/b", None), ("a/b", "s"), ("my/model", "r"), ("package://other.x", None), ("b/a", "r")]
    assert [trust.is_trusted(*pair) for pair in trusted + strange] == [True] * 4 + [False] * 5
    sources = [DocumentSource("hub/set", None, "x"), DocumentSource("hub/set", None, "y")]
    assert [s.trusted for s in (*sources, DocumentSource("package://hedge_tasks.y", None, ""))] == [True, False, True]


def test_what_is_asked_of_an_engine_is_each_claim_and_every_draw() -> None:
    words = build_decomposition("sentence")
    with pytest.raises(DataError, match="finds no claim in any of 1 answers"):
        inquiry([replace(ANSWERS, baseline=Answer(""))], words)
    inquiry([replace(ANSWERS, baseline=Answer(""))], words, among=[ANSWERS])
    others = [replace(ANSWERS, id=str(i), group=group, clean=(Answer(f"of {i}"),)) for i, group in enumerate("aab")]
    queries = inquiry(others, words)
    assert [query.draws for query in queries.own] == [("of 0", "None."), ("of 1", "None."), ("of 2", "None.")]
    assert [query.draws for query in queries.elsewhere][:2] == [("of 2",)] * 2
    assert queries.elsewhere[2].draws in (("of 0",), ("of 1",))
    assert inquiry([ANSWERS], words).elsewhere[0].draws == ()
    assert not inquiry(others, words, elsewhere=False).elsewhere
    with pytest.raises(DataError, match="no references that a judge"):
        check_references([False, False])
    check_references([False, True])
