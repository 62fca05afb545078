"""MedHallu: which answer is shown, how replies are read, the paper's metrics, and a whole run."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from evaluation import Run, evaluate
from openai_server import serve, texts_of
from rows import rows_of
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import Case, build_judge
from hedge_tasks.lmms.catalogue import task_folder
from hedge_tasks.replies.parsing import PARSINGS
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.suites.medhallu.documents import CATEGORIES, coin, process_docs, read_groups, short_category
from hedge_tasks.suites.medhallu.judge import VERDICTS, MedHalluJudge
from hedge_tasks.suites.medhallu.measures import MEASURES

METRICS = rows_of(MEASURES)

LEVELS = ("easy", "medium", "hard")
KINDS = [
    "Misinterpretation of #Question#",
    "Incomplete Information",
    "Mechanism and Pathway Misattribution",
    "Methodological and Evidence Fabrication",
]


def rows(n: int = 12) -> Dataset:
    return Dataset.from_list(
        [
            {
                "Question": f"Does drug {i} work?",
                "Knowledge": [f"Fact {i}.", "Another. And one more."],
                "Ground Truth": f"true answer {i} " + "long " * 8,
                "Difficulty Level": LEVELS[i % 3],
                "Hallucinated Answer": f"made up {i} " + "x" * i,
                "Category of Hallucination": KINDS[i % 4],
            }
            for i in range(n)
        ]
    )


@pytest.fixture(scope="session")
def labeled(shared_data: Path) -> Dataset:
    file = shared_data / "hub" / "UTAustin-AIHealth__MedHallu" / "pqa_labeled" / "train.parquet"
    if not file.is_file():
        pytest.skip("the rows of MedHallu are not here")
    return Dataset.from_parquet(str(file))


# --- documents --------------------------------------------------------------------------------------------------------


def test_one_of_the_two_answers_is_shown_and_both_on_demand() -> None:
    once, both = process_docs(rows()), process_docs(rows(), show="both")
    assert (len(once), len(both)) == (12, 24)
    assert set(once["id"]) < set(both["id"])
    assert both["truth"][:] == ["0", "1"] * 12
    assert both["id"][:4] == ["0-t", "0-h", "1-t", "1-h"]
    for row in both:
        shown = "made up" if row["truth"] == "1" else "true answer"
        assert row["asked"].startswith(f"Question: Does drug {row['row']} work?\nAnswer: {shown} {row['row']} ")
    assert set(process_docs(rows(), show="true")["truth"]) == {"0"}
    assert set(process_docs(rows(), show="hallucinated")["truth"]) == {"1"}


def test_the_coin_depends_on_seed_and_question_and_not_on_the_order() -> None:
    backwards = process_docs(rows().select(range(11, -1, -1)))
    shown = {row["asked"] for row in process_docs(rows())}
    assert {row["asked"] for row in backwards} == shown
    assert {row["asked"] for row in process_docs(rows(), seed=1)} != shown
    heads = [coin(7, f"question {i}") for i in range(2000)]
    assert abs(np.mean(heads) - 0.5) < 4 * 0.5 / 2000**0.5


def test_the_columns_that_the_tables_need_are_there() -> None:
    document = process_docs(rows(), show="hallucinated")[3]
    assert document["knowledge"] == "Fact 3.\nAnother. And one more."
    assert (document["difficulty"], document["kind"], document["mesh"]) == ("easy", "evidence", None)
    assert [short_category(name) for name in KINDS] == list(CATEGORIES)
    assert short_category(" Other Kind ") == "other kind"


def test_mesh_groups_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "groups.json"
    file.write_text(json.dumps({"Does drug 0 work?": "C", "Does drug 1 work?": "J"}), "utf-8")
    assert process_docs(rows(3), mesh=str(file))["mesh"][:] == ["C", "J", None]


@pytest.mark.parametrize("content", ["[1]", '{"q": 1}', '{"q": "Q"}', '{"q": ["C"]}'])
def test_a_damaged_file_of_mesh_groups_is_an_error(tmp_path: Path, content: str) -> None:
    file = tmp_path / "g.json"
    file.write_text(content, "utf-8")
    with pytest.raises(DataError, match="MeSH groups"):
        read_groups(file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shown": 1}, "did you mean 'show'"),
        ({"show": "bot"}, "did you mean 'both'"),
        ({"seed": "1"}, "an integer"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        process_docs(rows(2), **options)


def test_damaged_rows_are_named() -> None:
    with pytest.raises(DataError, match="no column Knowledge"):
        process_docs(rows(2).remove_columns("Knowledge"))
    damaged = Dataset.from_list([{**row, "Ground Truth": " "} for row in rows(2)])
    with pytest.raises(DataError, match="row 0 has no question or no answer"):
        process_docs(damaged, show="true")


@pytest.mark.slow
def test_the_real_rows_have_the_numbers_of_the_data_set(labeled: Dataset) -> None:
    both = process_docs(labeled, show="both")
    assert len(both) == 2000
    kinds = both["kind"][:]
    assert [kinds.count(kind) // 2 for kind in CATEGORIES] == [752, 212, 33, 3]
    assert 440 < process_docs(labeled)["truth"][:].count("1") < 560


# --- the judge --------------------------------------------------------------------------------------------------------


def test_a_verdict_is_wrong_right_or_none() -> None:
    judge = build_judge("medhallu", not_sure=True)
    said = [("1", "1"), ("1", "0"), ("0", "0"), ("0", "1"), ("1", "2"), ("1", "what?")]
    verdicts = judge.judge([Case("a", "q", truth, reply) for truth, reply in said])
    assert [v.label for v in verdicts] == [0, 1, 0, 1, None, None]
    assert [v.category for v in verdicts] == ["hallucinated", "factual", "factual", "hallucinated", "not_sure", None]
    assert [v.undecided for v in verdicts] == [False] * 5 + [True]
    assert verdicts[5].raw == "what?"


def test_both_readings_are_in_the_votes_and_the_chosen_one_decides() -> None:
    case = Case("a", "q", "1", "Not sure at all: I cannot decide.")
    for parsing, category in (("hedge", "not_sure"), ("official", "hallucinated")):
        [verdict] = MedHalluJudge(parsing, not_sure=True).judge([case])
        assert verdict.category == category
        assert [vote.category for vote in verdict.votes] == ["not_sure", "hallucinated"]
        assert [vote.judge for vote in verdict.votes] == ["medhallu:hedge", "medhallu:official"]


def test_a_wrong_option_of_the_judge_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'official'"):
        build_judge("medhallu", parsing="offical")
    with pytest.raises(ConfigError, match="not_sure"):
        build_judge("medhallu", not_sure=1)
    with pytest.raises(DataError, match="expected the reference 0 or 1"):
        build_judge("medhallu").judge([Case("a", "q", "yes", "1")])


# --- metrics ----------------------------------------------------------------------------------------------------------


def records(name: str, documents: list[dict[str, Any]], replies: list[str], parsing: str = "hedge") -> list[Any]:
    """What a metric is given, of replies read with "not sure" on offer."""
    judge = MedHalluJudge(parsing, not_sure=True)
    cases = [Case(d["id"], d["asked"], d["truth"], reply) for d, reply in zip(documents, replies, strict=True)]
    scores = SimpleNamespace(label=None, group=None)
    verdicts = [verdict.to_dict() for verdict in judge.judge(cases)]
    return [METRICS[name].record(scores, v, d) for v, d in zip(verdicts, documents, strict=True)]


def value(name: str, documents: list[dict[str, Any]], replies: list[str], parsing: str = "hedge") -> Any:
    return METRICS[name](records(name, documents, replies, parsing))


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return list(process_docs(rows(120), show="both"))


SKLEARN = {
    "f1": lambda t, p: f1_score(t, p, zero_division=0),
    "precision": lambda t, p: precision_score(t, p, zero_division=0),
    "recall": lambda t, p: recall_score(t, p, zero_division=0),
    "accuracy": accuracy_score,
}


@pytest.mark.slow
@pytest.mark.parametrize("parsing", PARSINGS)
def test_every_table_cell_equals_scikit_learn(documents: list[dict[str, Any]], parsing: str) -> None:
    choice = random.Random(3)
    replies = [choice.choice(["0", "1", "1", "2", "**0**", "hm", "0, I think"]) for _ in documents]
    judge = MedHalluJudge(parsing, not_sure=True)
    said = [judge.read(reply) for reply in replies]
    answered = [(d, VERDICTS[s]) for d, s in zip(documents, said, strict=True) if s in ("factual", "hallucinated")]

    def expected(measure: str, keep: Any = lambda d: True) -> float:
        pairs = [(int(d["truth"]), p) for d, p in answered if keep(d)]
        return float(SKLEARN[measure](*zip(*pairs, strict=True)))

    for measure in SKLEARN:
        assert value(measure, documents, replies, parsing) == pytest.approx(expected(measure), abs=1e-12)
    for level in LEVELS:
        for measure in ("f1", "precision", "accuracy"):
            found = value(f"{measure}_{level}", documents, replies, parsing)
            assert found == pytest.approx(expected(measure, lambda d, level=level: d["difficulty"] == level), abs=1e-12)
    for kind in CATEGORIES:
        found = value(f"accuracy_{kind}", documents, replies, parsing)
        assert found == pytest.approx(expected("accuracy", lambda d, kind=kind: d["kind"] == kind), abs=1e-12)
    assert value("response_rate", documents, replies, parsing) == len(answered) / len(documents)


@pytest.mark.slow
def test_right_verdicts_give_one_and_wrong_ones_zero(documents: list[dict[str, Any]]) -> None:
    right = [d["truth"] for d in documents]
    wrong = [str(1 - int(d["truth"])) for d in documents]
    for name in ("f1", "precision", "recall", "accuracy", "f1_hard", "accuracy_incomplete", "response_rate"):
        assert value(name, documents, right) == 1.0
        assert value(name, documents, wrong) == (1.0 if name == "response_rate" else 0.0)
    assert value("unreadable_rate", documents, right) == value("parsers_differ", documents, right) == 0


SENTENCES = {
    "0": (
        "The answer is factually correct.",
        "This answer is factual: it says what the study found.",
        "The answer is accurate and is supported by the question.",
        "The answer is true, and it follows from the question.",
        "No, the answer is not hallucinated.",
    ),
    "1": (
        "The answer is factually incorrect.",
        "The answer is hallucinated: the study found the opposite.",
        "The answer is inaccurate.",
        "The answer is wrong, since the trial had no control group.",
        "This answer is far from accurate.",
    ),
}


@pytest.mark.slow
def test_a_perfect_model_that_answers_in_sentences_has_f1_1(documents: list[dict[str, Any]]) -> None:
    replies = [SENTENCES[d["truth"]][i // 2 % 5] for i, d in enumerate(documents)]
    for name in ("f1", "accuracy", "f1_unread_wrong", "response_rate"):
        assert value(name, documents, replies) == 1.0, name
    upside_down = [SENTENCES[str(1 - int(d["truth"]))][i // 2 % 5] for i, d in enumerate(documents)]
    assert value("f1", documents, upside_down) == value("accuracy", documents, upside_down) == 0.0


@pytest.mark.slow
def test_constant_and_random_verdicts_give_what_arithmetic_says(documents: list[dict[str, Any]]) -> None:
    n = len(documents)
    assert value("f1", documents, ["1"] * n) == pytest.approx(2 / 3)
    assert value("precision", documents, ["1"] * n) == value("accuracy", documents, ["0"] * n) == 0.5
    assert value("f1", documents, ["0"] * n) == 0.0
    choice = random.Random(1)
    drawn = [value("f1", documents, [choice.choice("01") for _ in documents]) for _ in range(40)]
    assert abs(np.mean(drawn) - 0.5) < 4 * np.std(drawn) / 40**0.5


def test_mesh_groups_have_their_accuracy_and_none_without_a_file(documents: list[dict[str, Any]]) -> None:
    grouped = [{**d, "mesh": "C" if int(d["row"]) < 10 else "F"} for d in documents]
    replies = [d["truth"] if int(d["row"]) < 10 else "0" for d in documents]
    assert value("accuracy_mesh_diseases", grouped, replies) == 1.0
    assert value("accuracy_mesh_psychiatry", grouped, replies) == 0.5
    assert value("accuracy_mesh_diseases", documents, replies) == "undefined: no document with mesh C has a verdict"


def test_without_any_verdict_the_table_says_so(documents: list[dict[str, Any]]) -> None:
    mute = ["..."] * len(documents)
    assert value("f1", documents, mute) == "undefined: no document has a verdict"
    assert METRICS["f1"].stderr(records("f1", documents, mute)) == "N/A"
    assert value("unreadable_rate", documents, mute) == 1.0
    assert value("parsers_differ", documents, mute) == 1.0
    not_sure = ["2"] * len(documents)
    assert value("unreadable_rate", documents, not_sure) == value("response_rate", documents, not_sure) == 0.0


@pytest.mark.slow
def test_the_standard_error_is_that_of_rows_resampled_whole(documents: list[dict[str, Any]]) -> None:
    choice = random.Random(8)
    right = {d["row"]: choice.random() < 0.7 for d in documents}  # both answers of a row or none
    replies = [d["truth"] if right[d["row"]] else str(1 - int(d["truth"])) for d in documents]
    made = records("f1", documents, replies)
    stderr = METRICS["f1"].stderr(made)
    generator, by_row = np.random.default_rng(123), {}
    for record in made:
        by_row.setdefault(record["row"], []).append((record["truth"], record["said"]))
    units, drawn = list(by_row.values()), []
    for _ in range(500):
        pairs = [pair for i in generator.integers(0, len(units), len(units)) for pair in units[i]]
        drawn.append(f1_score(*zip(*pairs, strict=True)))
    assert stderr == pytest.approx(np.std(drawn), rel=0.15)
    assert METRICS["f1"].stderr(made[::-1]) == pytest.approx(stderr, rel=1e-9)


# --- prompts and whole runs -------------------------------------------------------------------------------------------


def test_the_four_prompts_ask_for_what_they_should() -> None:
    for variant in ("zero_shot", "knowledge", "notsure", "knowledge_notsure"):
        prompt = load_prompt(f"medhallu/{variant}")
        assert prompt.system is None
        assert ("{context}" in prompt.user) == ("knowledge" in variant)
        assert ("2" in prompt.user) == ("notsure" in variant)
        assert prompt.user.index("0") < prompt.user.index("{question}") < prompt.user.rindex("0")


def test_a_prompt_file_of_the_users_own_is_taken_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"prompts": {"short": {"user": "True or not? {question}"}}}), "utf-8")
    assert load_prompt(f"{file}/short").user == "True or not? {question}"
    with pytest.raises(ConfigError, match="did you mean 'short'"):
        load_prompt(f"{file}/shrt")
    with pytest.raises(ConfigError, match="unknown prompt file"):
        load_prompt(f"{tmp_path}/nothing.json/short")


@pytest.mark.parametrize("content", ["[", "[]", '{"prompts": 3}', '{"prompts": {"a": {}}}', '{"prompts": {"a": "b"}}'])
def test_a_damaged_prompt_file_is_an_error(tmp_path: Path, content: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(content, "utf-8")
    with pytest.raises(DataError, match=r"mine\.json"):
        load_prompt(f"{file}/a")


def scripted(body: dict[str, Any]) -> str:
    """Right on true answers, in several spellings; hesitates where a prefix weakens its confidence."""
    [text] = texts_of(body)
    truth = "1" if "made up" in text else "0"
    if body.get("temperature", 1.0) < 0.5:
        drug = int(text.partition("Does drug ")[2].partition(" ")[0])
        return {0: "0", 1: truth, 2: f"**{truth}**", 3: f"Answer: {truth}\n\nNote it."}[drug % 4]
    return "1" if "limited" in text else truth


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("medhallu")
    folder = root / "hub" / "UTAustin-AIHealth__MedHallu"
    for config in ("pqa_labeled", "pqa_artificial"):
        (folder / config).mkdir(parents=True)
        rows(8).to_parquet(folder / config / "train.parquet")
    own = root / "own"
    own.mkdir()
    (own / "mine.yaml").write_text(
        f"include: {task_folder()}/hedge_medhallu/_hedge_medhallu_yaml\ntask: mine\n"
        f"dataset_kwargs: {{show: both, mesh: {root}/mesh.json}}\n"
        "hedge_overrides: {judge: {name: medhallu, parsing: official}}\n"
        "metric_list: [{metric: accuracy}, {metric: accuracy_mesh_diseases}, {metric: accuracy_mesh_chemicals}]\n",
        "utf-8",
    )
    (root / "mesh.json").write_text(json.dumps({f"Does drug {i} work?": "C" for i in range(8)}), "utf-8")
    with pytest.MonkeyPatch.context() as patch, serve(scripted) as url:
        patch.setenv("HEDGE_DATA_DIR", str(root / "hub"))
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("HEDGE_JUDGE", "rule")
        return evaluate(
            root / "out",
            *("--model", "hedge_openai", "--model_args", f"model=tiny,base_url={url}"),
            *("--tasks", "hedge_medhallu_all,hedge_medhallu_both,mine", "--include_path", str(own)),
            *("--gen_kwargs", "n=2"),
        )


@pytest.mark.slow
@pytest.mark.framework
def test_eight_tasks_and_a_users_own_run_with_one_command(run: Run) -> None:
    variants = ("", "_knowledge", "_notsure", "_knowledge_notsure")
    tasks = {f"hedge_medhallu{config}{variant}" for config in ("", "_artificial") for variant in variants}
    assert set(run.results["group_subtasks"]["hedge_medhallu_all"]) == tasks
    for task in tasks:
        settings = run.results["configs"][task]["hedge"]
        assert settings["documents"]["judge"]["not_sure"] == ("notsure" in task)
        assert ("{context}" in settings["prompt"]["user"]) == (settings["documents"]["context"] == "knowledge")
        assert ("knowledge" in task) == (settings["documents"]["context"] == "knowledge")
        assert run.results["configs"][task]["dataset_name"] == f"pqa_{'artificial' if 'art' in task else 'labeled'}"
        assert settings["sampling"]["perturbation"]["name"] == "checking"
        assert len(run.samples(task)) == 8


@pytest.mark.slow
@pytest.mark.framework
def test_the_table_of_a_scripted_model_is_what_its_script_says(run: Run) -> None:
    cells = run.values("hedge_medhallu_both")
    # Drugs 0 and 4 are always called factual: 2 of 8 hallucinated answers are missed.
    assert cells["recall,verdict"] == 0.75
    assert cells["precision,verdict"] == 1.0
    assert cells["accuracy,verdict"] == 14 / 16
    assert cells["response_rate,verdict"] == 1.0
    assert cells["parsers_differ,verdict"] == pytest.approx(2 / 16)  # "Note" behind a 0 is read as a 1
    assert isinstance(cells["f1_stderr,verdict"], float)


@pytest.mark.slow
@pytest.mark.framework
def test_labels_say_whether_the_verdict_is_wrong_and_answers_are_verdicts(run: Run) -> None:
    samples = [json.loads(sample["filtered_resps"]) for sample in run.samples("hedge_medhallu_both")]
    wrong = {sample["id"] for sample in samples if sample["label"] == 1}
    assert wrong == {"0-h", "4-h"}
    texts = {answer["text"] for s in samples for answer in (s["baseline"], *s["clean"], *s["noisy"])}
    assert texts == {"factual", "hallucinated"}
    assert any(s["noisy"][i]["text"] != s["clean"][i]["text"] for s in samples for i in range(2))
    assert {sample["group"] for sample in samples} == {str(i) for i in range(8)}
    [file] = (run.output / "hedge_runs").glob("*hedge_medhallu_both*")
    raw = [json.loads(line)["verdict"]["raw"] for line in file.read_text("utf-8").splitlines()[1:-1]]
    assert "Answer: 1\n\nNote it." in raw


@pytest.mark.slow
@pytest.mark.framework
def test_the_official_reading_and_mesh_groups_are_a_users_choice(run: Run) -> None:
    cells = run.values("mine")
    assert cells["accuracy_mesh_diseases,verdict"] == cells["accuracy,verdict"] == 12 / 16
    assert cells["accuracy_mesh_chemicals,verdict"].startswith("undefined")
    assert run.results["configs"]["mine"]["hedge"]["documents"]["judge"]["parsing"] == "official"
