"""Training a judge: transformers' Trainer fine-tunes a part of a model on the conversations of `hedge judge data`.

What is trained, and on which kinds of conversations, are Med-HallMark's ablations (Table 5): adapters or all weights of
the language model, or the connector alone. Its stages that follow each other are trainings that follow each other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io import options
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.outside import read_text
from hedge_tasks.making.judging.examples import EVAL, KINDS, TRAIN, kind_of

_DONE, _NOTE = "trained.json", "training.json"
_LANGUAGE = ("language_model", "text_model")
"""Part of the name of every module of a vision-language model's language model, in transformers."""

_CONNECTOR = ("multi_modal_projector", "mm_projector", "connector", "merger", "aligner", "modality_projection")
"""Part of the name of every module between the vision encoder and the language model."""

PARTS = ADAPTERS, LANGUAGE_MODEL, CONNECTOR = "adapters", "language_model", "connector"
_IGNORED = -100
"""Label of a token that is no part of the loss."""

_LORA = ("r", "lora_alpha", "lora_dropout")
_OURS = ("output_dir", "max_steps", "report_to", "remove_unused_columns")
"""Arguments of the trainer that the command sets."""

Recipe = Mapping[str, Any]
"""Settings of a training; see `recipe.yaml`."""


def read_recipe(path: Path | None = None, changes: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe of a file, or the package's, with changes.

    Args:
        path: A file, or `paper`; what it does not name is the package's own.

    Raises:
        ConfigError: A key is unknown, or the part that is trained (names the nearest), or a number is none.
    """
    from transformers import TrainingArguments

    package = resources.files("hedge_tasks.making.judging")
    values: Any = yaml.safe_load((package / "recipe.yaml").read_text("utf-8"))
    numbers = {key for key, value in values.items() if isinstance(value, int | float)}
    known = [*values, *(field.name for field in fields(TrainingArguments) if field.name not in _OURS)]
    if path is not None:
        paper = str(path) == "paper"
        try:
            values |= yaml.safe_load((package / "recipe_paper.yaml").read_text("utf-8") if paper else read_text(path))
        except (DataError, yaml.YAMLError, TypeError) as error:
            raise ConfigError(f"recipe: {path} is no mapping ({error})") from None
    values |= changes or {}
    for key, value in values.items():
        if key not in known:
            raise unknown("key of the recipe", key, known)
        if key in numbers:  # YAML reads 2e-5 as a text
            values[key] = options.scalar(str(value))
            options.finite(f"recipe: {key}", values[key])
    if values["trained"] not in PARTS:
        raise unknown("part to train", values["trained"], PARTS)
    return dict(values)


def kinds_of(spec: str | None) -> frozenset[str]:
    """Kinds of conversations of a text such as `task,benchmark`; all of them without one.

    Raises:
        ConfigError: A kind is unknown.
    """
    kinds = frozenset(KINDS if spec is None else (part.strip() for part in spec.split(",")))
    for kind in sorted(kinds - set(KINDS)):
        raise unknown("kind of conversations", kind, KINDS)
    return kinds


@dataclass(frozen=True)
class Trained:
    """Result of a training.

    Attributes:
        weights: Folder of the adapter, for `hf:model=BASE,peft=ADAPTER`, or of the model, for `hf:model=MODEL`.
        losses: (step, training loss) as they were logged.
        eval_loss: On the held-out part; None without one.
        steps: Optimizer steps.
        trained_weights: Number of weights that were trained, and of all.
    """

    weights: Path
    losses: Sequence[Sequence[float]]
    eval_loss: float | None
    steps: int
    trained_weights: Sequence[int]


def train_judge(
    data: Path,
    base: str,
    out: Path,
    recipe: Recipe,
    *,
    revision: str | None = None,
    max_steps: int | None = None,
    kinds: frozenset[str] = frozenset(KINDS),
) -> Trained:
    """Fine-tune a model on the conversations of `write_examples`, the loss on the replies alone.

    Args:
        data: Their folder.
        base: Hub id or folder of a vision-language or text model.
        out: Checkpoints go to `checkpoints/`, the adapter with its card to `adapter/`, or the model to `model/`. A
            training of the same data, base and recipe goes on from the last checkpoint there, and is not done twice.
        max_steps: End after so many optimizer steps.
        kinds: Of the conversations that are trained on.

    Raises:
        ConfigError: PEFT is not installed, or the checkpoints in `out` are of something else.
        DataError: The folder holds no conversations.
    """
    from transformers import Trainer
    from transformers.trainer_utils import get_last_checkpoint

    rows, held_out = _rows(data, TRAIN, kinds), _rows(data, EVAL, frozenset(KINDS))
    identity = {
        "base": Path(base).name if Path(base).is_dir() else base,
        "revision": revision,
        "train_sha256": hashlib.sha256((data / f"{TRAIN}.jsonl").read_bytes()).hexdigest(),
        "recipe": dict(recipe),
        "kinds": sorted(kinds),
        "max_steps": max_steps,
    }
    if (done := _finished(out, identity)) is not None:
        return done
    if not rows:
        raise DataError(f"{data}: there is no conversation of kind {' or '.join(sorted(kinds))} in {TRAIN}.jsonl")
    part = recipe["trained"]
    try:
        arguments = _arguments(recipe, out / "checkpoints", max_steps)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"recipe: {error}") from None
    model, processor = _load(base, revision, recipe["dtype"])
    model = _with_adapters(model, recipe) if part == ADAPTERS else freeze_all_but(model, part)
    collate = collator(processor)
    trainer = Trainer(model, arguments, collate, train_dataset=rows, eval_dataset=held_out or None)
    last = get_last_checkpoint(arguments.output_dir) if Path(arguments.output_dir).is_dir() else None
    trainer.train(resume_from_checkpoint=last)
    losses = [[entry["step"], float(entry["loss"])] for entry in trainer.state.log_history if "loss" in entry]
    eval_loss = trainer.evaluate()["eval_loss"] if held_out else None
    weights = out / ("adapter" if part == ADAPTERS else "model")
    trainer.save_model(str(weights))
    if part == ADAPTERS:
        _forget_place(weights, str(identity["base"]))
    else:
        processor.save_pretrained(str(weights))
    counts = [sum(w.numel() for w in model.parameters() if w.requires_grad or every) for every in (False, True)]
    result = Trained(weights, losses, eval_loss, trainer.state.global_step, counts)
    _write_card(result, identity, data)
    write_whole(out / _DONE, json.dumps({**vars(result), "weights": weights.name}, indent=2) + "\n")
    return result


def _arguments(recipe: Recipe, checkpoints: Path, max_steps: int | None) -> Any:
    from transformers import TrainingArguments

    own = {key: value for key, value in recipe.items() if key not in ("trained", "dtype", *_LORA)}
    fixed = {"report_to": "none", "remove_unused_columns": False}
    return TrainingArguments(str(checkpoints), max_steps=max_steps or -1, **fixed, **own)


def collator(processor: Any) -> Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]]:
    """Puts conversations into a batch, with labels on the tokens of the replies alone.

    Args:
        processor: A processor of pictures and texts, or a tokenizer.
    """
    from PIL import Image

    sees = hasattr(processor, "image_processor")

    def encoded(rows: Sequence[Mapping[str, Any]], *, whole: bool, **more: Any) -> Any:
        turns = [_turns([*row["prompt"], *(row["completion"] if whole else [])], as_parts=sees) for row in rows]
        texts = [processor.apply_chat_template(t, tokenize=False, add_generation_prompt=not whole) for t in turns]
        images = [[Image.open(path).convert("RGB") for path in row["images"]] for row in rows]
        shown = {"images": images} if sees and any(images) else {}
        return processor(text=texts, add_special_tokens=False, **shown, **more)

    def collate(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        batch = encoded(rows, whole=True, padding=True, return_tensors="pt")
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, _IGNORED)
        for labels_of_row, mask, row in zip(labels, batch["attention_mask"], rows, strict=True):
            start = int(mask.argmax())
            labels_of_row[start : start + len(encoded([row], whole=False)["input_ids"][0])] = _IGNORED
        return {**batch, "labels": labels}

    return collate


def _turns(turns: Sequence[Mapping[str, Any]], *, as_parts: bool) -> list[dict[str, Any]]:
    """Turns as a processor takes them, or with their texts alone as a tokenizer does."""
    if as_parts:
        return [dict(turn) for turn in turns]
    return [{**turn, "content": "\n".join(p["text"] for p in turn["content"] if p["type"] == "text")} for turn in turns]


def _part_of(name: str, sees: bool) -> str | None:
    """The part of the model that a weight is of: `LANGUAGE_MODEL`, `CONNECTOR`, or None."""
    parts = name.split(".")
    if any(part in _CONNECTOR for part in parts):
        return CONNECTOR
    return LANGUAGE_MODEL if not sees or "lm_head" in parts or any(part in _LANGUAGE for part in parts) else None


def _sees(model: Any) -> bool:
    return any(hasattr(model.config, key) for key in ("vision_config", "vision_tower"))


def freeze_all_but(model: Any, part: str) -> Any:
    """Let nothing but one part of a model be trained; returns it.

    Raises:
        ConfigError: It has no such part.
    """
    sees = _sees(model)
    for name, weight in model.named_parameters():
        weight.requires_grad_(_part_of(name, sees) == part)
    if not any(weight.requires_grad for weight in model.parameters()):
        raise ConfigError(f"the model has no {part} that is known by its name ({', '.join(_CONNECTOR)})")
    return model


def language_layers(model: Any) -> list[str]:
    """Names of the linear layers of a model's language model, its output layer left out.

    Raises:
        ConfigError: None is there.
    """
    import torch

    sees = _sees(model)
    linear = (name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear))
    names = [name for name in linear if not name.endswith("lm_head") and _part_of(name, sees) == LANGUAGE_MODEL]
    if not names:
        raise ConfigError("the model has no linear layers under language_model or text_model; it is not supported")
    return names


def _with_adapters(model: Any, recipe: Recipe) -> Any:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise ConfigError(f"adapters are trained with PEFT: pip install 'hedge-tasks[train]' ({error})") from None
    lora = {key: recipe[key] for key in _LORA}
    return get_peft_model(model, LoraConfig(target_modules=language_layers(model), task_type="CAUSAL_LM", **lora))


def _load(base: str, revision: str | None, dtype: str) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

    from hedge_tasks.llm.loading import load_or_explain

    def load(source: str) -> tuple[Any, Any]:
        config = AutoConfig.from_pretrained(source, revision=revision)
        sees = config.model_type in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
        kind = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        processor = (AutoProcessor if sees else AutoTokenizer).from_pretrained(source, revision=revision)
        return kind.from_pretrained(source, revision=revision, dtype=dtype), processor

    return load_or_explain(load, base, revision, kind="base")


def _rows(data: Path, part: str, kinds: frozenset[str]) -> list[dict[str, Any]]:
    """The conversations of a part that are of some kinds; pictures are files, read when they are needed."""
    path = data / f"{part}.jsonl"
    if not path.is_file():
        raise DataError(f"{data}: there is no {path.name}; `hedge judge data` writes it")
    rows = []
    for where, row in read_objects(path):
        if not all(isinstance(row.get(key), list) for key in ("images", "prompt", "completion")):
            raise DataError(f"{where}: no conversation of `hedge judge data`")
        if kind_of(str(row.get("origin"))) in kinds:
            rows.append({**row, "images": [data / name for name in row["images"]]})
    return rows


def _finished(out: Path, identity: Mapping[str, Any]) -> Trained | None:
    """The outcome of a training that came to its end; notes in the folder which training this is.

    Raises:
        ConfigError: What is there is of another training.
    """
    note, done = out / _NOTE, out / _DONE
    if any((out / "checkpoints").glob("checkpoint-*")) or done.is_file():
        noted = json.loads(read_text(note)) if note.is_file() else None
        if noted != json.loads(json.dumps(identity)):
            raise ConfigError(f"{out} holds checkpoints of another training (see {note}); choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(note, json.dumps(identity, indent=2) + "\n")
    if not done.is_file():
        return None
    facts = json.loads(read_text(done))
    return Trained(**{**facts, "weights": out / facts["weights"]})


def _forget_place(adapter: Path, base: str) -> None:
    """An adapter is handed on: of a base in a folder it holds the folder's name, and not where it was."""
    path = adapter / "adapter_config.json"
    config = json.loads(read_text(path))
    write_whole(path, json.dumps({**config, "base_model_name_or_path": base}, indent=2, sort_keys=True) + "\n")


def _write_card(result: Trained, identity: Mapping[str, Any], data: Path) -> None:
    from huggingface_hub import ModelCard, ModelCardData

    facts = data / "examples.json"
    template = resources.files("hedge_tasks.making") / "templates" / "judge_card.md.jinja"
    library = "peft" if identity["recipe"]["trained"] == ADAPTERS else "transformers"
    card = ModelCard.from_template(
        ModelCardData(base_model=str(identity["base"]), library_name=library, tags=["hallucination", "judge"]),
        template_str=template.read_text("utf-8"),
        base=identity["base"],
        settings=json.dumps(identity, indent=2),
        examples=read_text(facts) if facts.is_file() else "{}",
        first=result.losses[0][1] if result.losses else None,
        last=result.losses[-1][1] if result.losses else None,
        eval_loss=result.eval_loss,
        steps=result.steps,
        weights=result.trained_weights,
        part=identity["recipe"]["trained"],
    )
    write_whole(result.weights / "README.md", str(card))
