"""A judge's training: conversations in its own words, split by picture, and a tiny model that learns from them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from making import written
from PIL import Image
from test_judging_replies import spoiled

from hedge_tasks.cli import main
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import judge_from
from hedge_tasks.judging.base import Case
from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.making.gate.attack import attack
from hedge_tasks.making.judging.examples import (
    REFERENCE,
    REWORDED,
    TWIN,
    TrainingExample,
    attacked_examples,
    check_labels,
    conversation,
    kind_of,
    pairs_of,
    split,
)
from hedge_tasks.making.judging.training import collator, kinds_of, read_recipe
from hedge_tasks.models.tiny import vlm_path


def case(number: int, answer: str = "a cat", reference: str = "a dog") -> Case:
    return Case(str(number), f"What is on picture {number}?", reference, answer)


def test_the_conversation_is_word_for_word_that_of_the_judge() -> None:
    prompt = load_judge_prompt("medhallmark")
    row = conversation(TrainingExample(case(1), "critical", "g"), prompt, "images/1.png")
    asked = prompt.messages(case(1), ["the picture"])
    texts = [[part["text"] for part in turn["content"] if part["type"] == "text"] for turn in asked]
    assert [[part["text"] for part in turn["content"] if part["type"] == "text"] for turn in row["prompt"]] == texts
    assert [part["type"] for part in row["prompt"][-1]["content"]] == ["image", "text"]
    [turn] = row["completion"]
    read, _ = prompt.outcome_in(turn["content"][0]["text"])
    assert read is not None
    assert read.key == "critical"


def test_every_reference_has_a_twin_that_is_wrong_and_nothing_tells_them_apart() -> None:
    prompt = load_judge_prompt("medhallmark")
    people = [
        TrainingExample(case(n, reference=f"The mass {n} is in the left lung."), "critical", f"picture {n}")
        for n in range(120)
    ]
    pairs = pairs_of(people, prompt, "attribute")
    assert pairs == pairs_of(people, prompt, "attribute")
    right, wrong = ([pair[side] for pair in pairs] for side in (0, 1))
    assert Counter(e.outcome for e in right) == {"correct": 120}
    assert Counter(e.outcome for e in wrong) == {"attribute": 120}
    origins = Counter(e.origin for e in (*right, *wrong))
    assert origins[TWIN] == origins[REFERENCE] + origins[REWORDED] == 120
    assert 15 < origins[REFERENCE] < 50
    [result] = attack([*attacked_examples(right, prompt), *attacked_examples(wrong, prompt)])
    assert result.chance == 0.5  # the six levels are right or wrong
    assert (result.scores["equals the reference"].value or 1) < 0.7
    assert (result.scores["length"].value or 1) < 0.75
    assert pairs_of([TrainingExample(case(1), "critical", "g")], prompt, "attribute") == []  # "a dog" has no contrary


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [((0, 1), None), ((1, 1), "12 of 12 controls .reference itself"), ((0, 0), "12 of 12 .*wrong by a word")],
)
def test_labels_of_who_does_not_know_the_reference_are_refused(labels: tuple[int, int], complaint: str | None) -> None:
    prompt = load_judge_prompt("hedge_binary")
    texts = [(f"The mass {n} is in the left lung.", f"The mass {n} is in the right lung.") for n in range(12)]
    keys = {outcome.label: outcome.key for outcome in prompt.outcomes}
    examples = [
        TrainingExample(case(n, answer, pair[0]), keys[label], f"picture {n}")
        for n, pair in enumerate(texts)
        for answer, label in zip(pair, labels, strict=True)
    ]
    with pytest.raises(DataError, match=complaint) if complaint else nullcontext():
        check_labels(examples, prompt)


def test_no_picture_stands_on_both_sides() -> None:
    examples = [TrainingExample(case(number), "critical", f"picture {number % 50}") for number in range(400)]
    parts = split(examples, 0.3, seed=1)
    groups = {name: {example.group for example in part} for name, part in parts.items()}
    assert not groups["train"] & groups["eval"]
    assert len(groups["train"] | groups["eval"]) == 50
    assert 5 <= len(groups["eval"]) <= 25
    # A group's side does not depend on the others.
    assert split(examples[:200], 0.3, seed=1)["eval"] == [e for e in examples[:200] if e.group in groups["eval"]]
    assert split(examples, 0.3, seed=2)["eval"] != parts["eval"]
    with pytest.raises(ConfigError, match="too few to hold out"):
        split(examples[:1], 0.5)


def test_a_recipe_is_a_file_and_what_is_said_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("num_train_epochs: 1\n")
    read = read_recipe(file, {"r": 2})
    assert (read["num_train_epochs"], read["r"], read["lora_alpha"]) == (1, 2, 32)
    assert read_recipe(None, {"learning_rate": "2e-5"})["learning_rate"] == 2e-5
    paper = read_recipe(Path("paper"))
    assert (paper["trained"], paper["learning_rate"], paper["num_train_epochs"]) == ("language_model", 2e-5, 2)


# --- with a tiny model ------------------------------------------------------------------------------------------------

SHORT = spoiled(
    name="short",
    images="required",
    system=["right or wrong?"],
    fields=[{"case": part, "name": part, "required": part == "question"} for part in ("question", "answer")],
    examples=[],
    schema={
        "type": "object",
        "properties": {"verdict": {"enum": ["supported", "hallucinated"]}},
        "required": ["verdict"],
    },
    values=[{"key": "supported", "label": 0}, {"key": "hallucinated", "label": 1}],
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers about plain pictures, red or blue, half of them wrong; and the conversations made of them."""
    folder = tmp_path_factory.mktemp("judge")
    (folder / "pictures").mkdir()
    rows = []
    for number in range(24):
        colour = ("red", "blue")[number % 2]
        Image.new("RGB", (64, 64), colour).resize((64, 64)).save(folder / "pictures" / f"{number}.png")
        said = ("red", "blue")[number // 2 % 2]
        about = {"image": f"{number}.png", "question": "colour?", "answer": said, "reference": colour}
        rows.append({**about, "label": int(said != colour)})
    (folder / "short.json").write_text(SHORT)
    labels = str(written(folder / "labels.jsonl", *rows))
    options = ["--prompt", str(folder / "short.json"), "--images", str(folder / "pictures"), "--hold-out", "0.3"]
    options += ["--floor", "1"]  # of colours in a word, what equals the reference is right
    assert main(["judge", "data", labels, "--vqa", labels, "--out", str(folder / "sft"), *options]) == 0
    return folder


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_command_writes_conversations_with_pictures(made: Path) -> None:
    train, held_out = rows_of(made / "sft" / "train.jsonl"), rows_of(made / "sft" / "eval.jsonl")
    assert not {row["group"] for row in train} & {row["group"] for row in held_out}
    origins = Counter(row["origin"] for row in (*train, *held_out))
    assert origins == {"judged": 24, "task": 24}
    facts = json.loads((made / "sft" / "examples.json").read_text())
    assert facts["parts"]["train"]["examples"] == len(train)
    assert len(list((made / "sft" / "images").iterdir())) == 2  # equal pictures are kept once


@pytest.fixture(scope="module")
def base(made: Path) -> Path:
    """The embedded model with other token embeddings: its own never wrote JSON, and cannot tell braces from quotes."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    model = AutoModelForImageTextToText.from_pretrained(vlm_path())
    weights = model.get_input_embeddings().weight
    with torch.no_grad():
        weights.copy_(torch.randn(weights.shape, generator=torch.Generator().manual_seed(0)) * weights.std())
    model.save_pretrained(made / "base")
    AutoProcessor.from_pretrained(vlm_path()).save_pretrained(made / "base")
    return made / "base"


def train(
    made: Path, base: Path, capsys: pytest.CaptureFixture[str], *more: str, out: str = "out", steps: int = 30
) -> dict[str, Any]:
    recipe = "learning_rate=0.01,lora_dropout=0,gradient_accumulation_steps=1,per_device_train_batch_size=16"
    changes = ",".join([recipe, "num_train_epochs=100,save_steps=10", *more])
    command = ["judge", "train", str(made / "sft"), "--base", str(base), "--out", str(made / out), "--json"]
    assert main([*command, "--max-steps", str(steps), "--set", changes]) == 0
    said = capsys.readouterr().out
    return json.loads(said[said.index('{\n  "weights"') :])  # the trainer prints as well


def judged_by(made: Path, model: Path | str, **options: Any) -> tuple[Any, str | None]:
    """Settings of a judge, and its reply about a picture."""
    about = {"prompt": str(made / "short.json"), "dtype": "float32", **options}
    judge = judge_from({"name": "hf", "model": str(model), **about})
    asked = Case("1", "colour?", "red", "red", images=lambda: [made / "pictures" / "0.png"], image_key="k")
    return judge.settings(), judge.judge([asked])[0].raw


@pytest.mark.slow
def test_a_tiny_model_learns_to_judge_and_its_adapter_answers(
    made: Path, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = train(made, base, capsys)
    losses = [loss for _, loss in facts["losses"]]
    assert len(losses) == 30
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
    assert facts["trained_weights"][0] < 0.1 * facts["trained_weights"][1]
    exported = made / "out" / "adapter"
    trained, untrained = (judged_by(made, base, peft=peft) for peft in (str(exported), None))
    assert trained[0] != untrained[0]  # or a label of one would be taken for the other's
    assert trained[1] != untrained[1]
    assert "base_model: base" in (exported / "README.md").read_text()
    assert json.loads((exported / "adapter_config.json").read_text())["base_model_name_or_path"] == "base"

    assert train(made, base, capsys) == facts  # what is done is not done again
    # As if it had been killed after two thirds of its steps.
    (made / "out" / "trained.json").unlink()
    shutil.rmtree(exported)
    shutil.rmtree(made / "out" / "checkpoints" / "checkpoint-30")
    again = train(made, base, capsys)
    assert again["steps"] == 30
    assert again["losses"][:20] == facts["losses"][:20]
    assert again["eval_loss"] == pytest.approx(facts["eval_loss"], rel=1e-3)
    # An adapter of another seed would be taken for this one's, also where only its result is left.
    for left in (made / "out" / "checkpoints", None):
        with pytest.raises(AssertionError):  # exit code 2
            train(made, base, capsys, "seed=1")
        assert "of another training" in capsys.readouterr().err
        if left is not None:
            shutil.rmtree(left)


def changed_weights(base: Path, model: Path) -> set[str]:
    """Names of the weights that differ from the base's."""
    from safetensors.torch import load_file

    before, after = (
        {k: v for f in sorted(p.glob("*.safetensors")) for k, v in load_file(f).items()} for p in (base, model)
    )
    assert before.keys() == after.keys()
    return {name for name in before if not before[name].equal(after[name])}


@pytest.mark.slow
def test_a_part_of_the_model_is_trained_and_the_rest_is_as_it_was(
    made: Path, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = train(made, base, capsys, "trained=connector", out="connector", steps=2)
    changed = changed_weights(base, made / "connector" / "model")
    assert len(changed) == 4
    assert all("multi_modal_projector" in name for name in changed)
    assert "hf:model=THIS_FOLDER" in (made / "connector" / "model" / "README.md").read_text()
    assert judged_by(made, facts["weights"])[1] is not None  # it can be asked


def test_kinds_of_conversations_are_known() -> None:
    assert kinds_of(None) == {"task", "benchmark", "instruction"}
    kinds = {"task": "task", "benchmark": "benchmark", "judged": "instruction", "twin": "instruction"}
    assert {origin: kind_of(origin) for origin in kinds} == kinds


def test_the_loss_is_on_the_replies_alone(made: Path) -> None:
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(vlm_path())
    rows = [
        {**row, "images": [made / "sft" / name for name in row["images"]]}
        for row in rows_of(made / "sft" / "train.jsonl")
    ]
    batch = collator(processor)(rows[:5])
    for labels, row in zip(batch["labels"], rows, strict=False):
        text = processor.tokenizer.decode(labels[labels >= 0], skip_special_tokens=True)
        assert text.strip() == row["completion"][0]["content"][0]["text"]
