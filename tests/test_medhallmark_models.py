"""Scripted models answer Med-HallMark's tasks: every number of the run and of `hedge paper medhallmark` by hand."""

from __future__ import annotations

from statistics import mean

import pytest
from evaluation import Run as Evaluated
from evaluation import evaluate
from medhallmark_models import (
    MODELS,
    REFERENCES,
    noisy_category,
    reply,
    write_stand_in,
    write_tasks,
)
from openai_server import serve

from hedge_tasks.suites.medhallmark.measures import MEDIHALL

RIGHT_ALWAYS = ("perfect", "verbose", "thinking")
SILENT = ("refusing", "cut")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    root = tmp_path_factory.mktemp("medhallmark_models")
    items = write_stand_in(root / "hub")
    with pytest.MonkeyPatch.context() as patch, serve(lambda body: reply(body, items)) as url:
        patch.setenv("HEDGE_DATA_DIR", str(root / "hub"))
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("HEDGE_BERTSCORE_MODEL", "nobody/has-this-model")
        patch.delenv("HEDGE_JUDGE", raising=False)
        tasks = write_tasks(root / "own", url)
        model = ("--model", "hedge_openai", "--model_args", f"model=scripted,base_url={url}")
        own = ("--include_path", str(root / "own"), "--gen_kwargs", "n=0")
        return evaluate(root / "out", *model, "--tasks", ",".join(tasks), *own)


def said_by_noisy(part: str, weakened: bool = False) -> list[list[str]]:
    """Categories of the answers, of reports those of their sentences, which are counted here by their stops."""
    return [
        [
            noisy_category(f"{part}-{i}" + ("-weakened" if weakened else ""), sentence, part)
            for sentence in range(reference.count(".") if part == "irg" else 1)
        ]
        for i, reference in enumerate(REFERENCES[part])
    ]


def scores(answers: list[list[str]]) -> list[float]:
    return [mean(MEDIHALL[kind] for kind in kinds) for kinds in answers]


def share_saying(word: str, *parts: str) -> float:
    references = [reference for part in parts for reference in REFERENCES[part]]
    return references.count(word) / len(references)


@pytest.mark.slow
@pytest.mark.framework
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("part", REFERENCES)
def test_every_row_of_the_table_is_what_arithmetic_says(run: Evaluated, model: str, part: str) -> None:
    cells = {name.partition(",")[0]: value for name, value in run.values(f"own_{model}_{part}").items()}
    if model in SILENT:
        assert (cells["unlabelled_rate"], cells["accuracy_unread_wrong"]) == (1, 0)
        for name, lacking in (("medihall", "category"), ("accuracy", "label"), ("share_correct", "category")):
            assert cells[name].startswith(f"undefined: no answer has a {lacking}")
        return
    assert cells["unlabelled_rate"] == 0
    if model in RIGHT_ALWAYS:
        expected = {"medihall": 1.0, "accuracy": 1.0, "share_correct": 1.0, "rouge1_f1": 1.0, "rougel_f1": 1.0}
        expected |= {"wrong_sentences": 0.0, "unjudged_sentences": 0.0} if part == "irg" else {}
    elif model == "noisy":
        weakened = [said_by_noisy(part, True)] if part == "confidence" else []
        answers = [one for of in (said_by_noisy(part), *weakened) for one in of]
        right = [set(kinds) == {"correct"} for kinds in answers]
        expected = {"medihall": mean(scores(answers)), "accuracy": mean(right)}
        expected |= {f"share_{kind}": mean(k.count(kind) / len(k) for k in answers) for kind in MEDIHALL}
        if part == "irg":
            expected["wrong_sentences"] = 1 - expected["share_correct"]
    else:
        share = share_saying({"always1": "yes", "always0": "no"}[model], part)
        # What the judge does not find in the reference is catastrophic, which is worth nothing.
        expected = {"medihall": share, "accuracy": share, "share_catastrophic": 1 - share}
    assert {name: cells[name] for name in expected} == pytest.approx(expected)
    assert cells["accuracy_unread_wrong"] == cells["accuracy"]
    assert cells["bertscore_f1"].startswith("undefined: BERTScore's model nobody/has-this-model")
