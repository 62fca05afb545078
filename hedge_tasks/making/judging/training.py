"""Training a judge: TRL's supervised fine-tuning of a part of the model, in one stage or several.

Part and stages are those of Med-HallMark's ablations (Table 5): adapters or all weights of the language model, or the
connector alone; and which kinds of conversations are trained on, together or one after the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io import options
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.outside import read_text
from hedge_tasks.making.judging.examples import EVAL, KINDS, TRAIN, kind_of

_DONE = "trained.json"
_EXTRA = "judges are trained with TRL and PEFT: pip install 'hedge-tasks[train]'"
_LANGUAGE = ("language_model", "text_model")
"""Part of the name of every module of a vision-language model's language model, in transformers."""

_CONNECTOR = ("multi_modal_projector", "mm_projector", "connector", "merger", "aligner", "modality_projection")
"""Part of the name of every module between the vision encoder and the language model."""

ADAPTERS, LANGUAGE_MODEL, CONNECTOR = "adapters", "language_model", "connector"
PARTS = (ADAPTERS, LANGUAGE_MODEL, CONNECTOR)
"""Parts that can be trained: low-rank adapters of the language model, all of its weights, or the connector alone."""

RECIPES = {"paper": "recipe_paper.yaml"}
"""Recipes of the package by name, besides its own."""

Stage = frozenset[str]
"""Kinds of conversations that are trained on together."""


@dataclass(frozen=True)
class Recipe:
    """Settings of a training; see `recipe.yaml` for what each value means."""

    trained: str
    epochs: float
    learning_rate: float
    lora_rank: int
    lora_alpha: int
    lora_dropout: float
    batch_size: int
    accumulate: int
    warmup_share: float
    weight_decay: float
    max_length: int | None
    save_every: int
    dtype: str
    seed: int
    gradient_checkpointing: bool

    def __post_init__(self) -> None:
        if self.trained not in PARTS:
            raise unknown("part that is trained", str(self.trained), PARTS)
        for name in ("epochs", "learning_rate"):
            options.number(name, getattr(self, name), zero=False)
        for name in ("lora_dropout", "warmup_share", "weight_decay"):
            options.number(name, getattr(self, name))
        for name in ("lora_rank", "lora_alpha", "batch_size", "accumulate", "save_every"):
            options.count(name, getattr(self, name), at_least=1)
        options.count("seed", self.seed)
        options.flag("gradient_checkpointing", self.gradient_checkpointing)
        if self.max_length is not None:
            options.count("max_length", self.max_length, at_least=1)
        if self.lora_dropout >= 1 or self.warmup_share >= 1:
            raise ConfigError("lora_dropout and warmup_share are shares, below 1")


def read_recipe(path: Path | None = None, changes: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe of a file, or the package's, with changes.

    Args:
        path: A file, or the name of one of `RECIPES`; what it does not name is the package's own.

    Raises:
        ConfigError: A key is unknown (names the nearest) or a value makes no sense.
    """
    defaults = _packaged("recipe.yaml")
    own_values: Any = {}
    if path is not None and str(path) in RECIPES:
        own_values = _packaged(RECIPES[str(path)])
    elif path is not None:
        try:
            own_values = yaml.safe_load(read_text(path))
        except (DataError, yaml.YAMLError) as error:
            raise ConfigError(f"recipe: {error}") from None
        if not isinstance(own_values, dict):
            raise ConfigError(f"recipe: {path} is no mapping")
    keys = [field.name for field in fields(Recipe)]
    for key in (*own_values, *(changes or {})):
        if key not in keys:
            raise unknown("key of the recipe", str(key), keys)
    return Recipe(**{**defaults, **own_values, **(changes or {})})


def _packaged(name: str) -> Any:
    return yaml.safe_load((resources.files("hedge_tasks.making.judging") / name).read_text("utf-8"))


def stages_of(specs: Sequence[str]) -> list[Stage]:
    """Stages as kinds with commas between; everything in one stage where nothing is written.

    Raises:
        ConfigError: A kind is unknown.

    Example:
        >>> [sorted(stage) for stage in stages_of(["task,benchmark", "instruction"])]
        [['benchmark', 'task'], ['instruction']]
    """
    stages = [frozenset(part.strip() for part in spec.split(",")) for spec in specs]
    for kind in sorted({kind for stage in stages for kind in stage}):
        if kind not in KINDS:
            raise unknown("kind of conversations", kind, KINDS)
    return stages or [frozenset(KINDS)]


@dataclass(frozen=True)
class Trained:
    """Result of a training.

    Attributes:
        weights: Folder of the adapter, for `hf:model=BASE,peft=ADAPTER`, or of the model, for `hf:model=MODEL`.
        losses: (step, training loss) as they were logged, stage after stage; steps go on over stages.
        eval_loss: On the held-out part; None without one.
        steps: Optimizer steps.
        trained: Number of weights that were trained, and of all.
    """

    weights: Path
    losses: tuple[tuple[int, float], ...]
    eval_loss: float | None
    steps: int
    trained: tuple[int, int]


def train_judge(
    data: Path,
    base: str,
    out: Path,
    recipe: Recipe,
    *,
    revision: str | None = None,
    max_steps: int | None = None,
    stages: Sequence[Stage] = (frozenset(KINDS),),
) -> Trained:
    """Fine-tune a model on the conversations of `write_examples`, the loss on the replies alone.

    Args:
        data: Their folder.
        base: Hub id or folder of a vision-language or text model.
        out: Checkpoints go to `checkpoints/`, the adapter with its card to `adapter/`, or the model to `model/`. A
            training of the same data, base and recipe goes on from the last checkpoint there, and is not done twice.
        max_steps: End each stage after so many optimizer steps.
        stages: Kinds of conversations, stage by stage.

    Raises:
        ConfigError: TRL is not installed, or the checkpoints in `out` are of something else.
        DataError: The folder holds no conversations.
    """
    try:
        from peft import LoraConfig
        from trl import SFTConfig, SFTTrainer
    except ImportError as error:
        raise ConfigError(f"{_EXTRA} ({error})") from None
    from transformers.trainer_utils import get_last_checkpoint

    identity = _identity(data, base, revision, recipe, max_steps, stages)
    _check_place(out, identity)
    if (done := _finished(out)) is not None:
        return done
    rows = [_rows(data, TRAIN, stage) for stage in stages]
    held_out = _rows(data, EVAL, frozenset(KINDS))
    for stage, dataset in zip(stages, rows, strict=True):
        if not len(dataset):
            raise DataError(f"{data}: there is no conversation of kind {' or '.join(sorted(stage))} in {TRAIN}.jsonl")
    model, processor = _load(base, revision, recipe.dtype)
    lora = None
    if recipe.trained == ADAPTERS:
        lora = LoraConfig(
            r=recipe.lora_rank,
            lora_alpha=recipe.lora_alpha,
            lora_dropout=recipe.lora_dropout,
            target_modules=language_layers(model),
            task_type="CAUSAL_LM",
        )
    else:
        freeze_all_but(model, recipe.trained)
    ended = _ended_stages(out, len(rows))
    if ended:
        model = _load_ended(model, ended[-1].checkpoint, revision, recipe)
    losses: list[tuple[int, float]] = []
    steps = 0
    for number, dataset in enumerate(rows, start=1):
        folder = out / "checkpoints" / f"stage-{number}"
        state = ended[number - 1].state if number <= len(ended) else None
        if state is None or number == len(rows):
            trainer = SFTTrainer(
                model=model,
                args=SFTConfig(output_dir=str(folder), max_steps=max_steps or -1, **_settings(recipe)),
                train_dataset=dataset,
                eval_dataset=held_out if len(held_out) else None,
                processing_class=processor,
                peft_config=lora if number == 1 and state is None else None,
            )
            model = trainer.model
            _check_trained(model, recipe.trained)
        if state is None:
            trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)) if folder.is_dir() else None)
            state = trainer.state
        losses += [(steps + entry["step"], float(entry["loss"])) for entry in state.log_history if "loss" in entry]
        steps += state.global_step
    eval_loss = trainer.evaluate()["eval_loss"] if len(held_out) else None
    weights = out / ("adapter" if recipe.trained == ADAPTERS else "model")
    trainer.save_model(str(weights))
    if recipe.trained == ADAPTERS:
        _forget_place(weights, identity["base"])
    n_trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    total = sum(weight.numel() for weight in model.parameters())
    result = Trained(weights, tuple(losses), eval_loss, steps, (n_trained, total))
    _write_card(result, identity, data)
    write_whole(out / _DONE, json.dumps({**asdict(result), "weights": weights.name}, indent=2) + "\n")
    return result


class EndedStage(NamedTuple):
    """A stage that came to its end: its last checkpoint, and the trainer's state there."""

    checkpoint: Path
    state: Any


def _ended_stages(out: Path, count: int) -> list[EndedStage]:
    """Stages that need no more training, from the first on; going on from their end would be a step too much."""
    from transformers import TrainerState
    from transformers.trainer_utils import get_last_checkpoint

    ended: list[EndedStage] = []
    for number in range(1, count + 1):
        folder = out / "checkpoints" / f"stage-{number}"
        last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
        file = Path(last or "") / "trainer_state.json"
        state = TrainerState.load_from_json(str(file)) if last is not None and file.is_file() else None
        if state is None or state.global_step < state.max_steps:
            break
        ended.append(EndedStage(Path(str(last)), state))
    return ended


def _load_ended(model: Any, checkpoint: Path, revision: str | None, recipe: Recipe) -> Any:
    """The model as it was at the end of a stage."""
    if recipe.trained != ADAPTERS:
        loaded, _ = _load(str(checkpoint), revision, recipe.dtype)
        freeze_all_but(loaded, recipe.trained)
        return loaded
    from peft import PeftModel

    return PeftModel.from_pretrained(model, str(checkpoint), is_trainable=True)


def _settings(recipe: Recipe) -> dict[str, Any]:
    """Settings of TRL's trainer that every stage has."""
    return {
        "num_train_epochs": recipe.epochs,
        "learning_rate": recipe.learning_rate,
        "per_device_train_batch_size": recipe.batch_size,
        "per_device_eval_batch_size": recipe.batch_size,
        "gradient_accumulation_steps": recipe.accumulate,
        "warmup_steps": recipe.warmup_share,  # below 1 a share of all steps
        "weight_decay": recipe.weight_decay,
        "max_length": recipe.max_length,
        "completion_only_loss": True,
        "gradient_checkpointing": recipe.gradient_checkpointing,
        "logging_steps": 1,
        "save_steps": recipe.save_every,
        "save_total_limit": 2,
        "seed": recipe.seed,
        "data_seed": recipe.seed,
        "report_to": "none",
        "bf16": False,
        "fp16": False,
        "remove_unused_columns": False,
    }


def _part_of(name: str, sees: bool) -> str | None:
    """The part of the model that a weight is of: `LANGUAGE_MODEL`, `CONNECTOR`, or None."""
    parts = name.split(".")
    if any(part in _CONNECTOR for part in parts):
        return CONNECTOR
    return LANGUAGE_MODEL if not sees or "lm_head" in parts or any(part in _LANGUAGE for part in parts) else None


def _sees(model: Any) -> bool:
    return any(hasattr(model.config, key) for key in ("vision_config", "vision_tower"))


def freeze_all_but(model: Any, part: str) -> None:
    """Let nothing but one part of a model be trained.

    Raises:
        ConfigError: It has no such part.
    """
    sees = _sees(model)
    for name, weight in model.named_parameters():
        weight.requires_grad_(_part_of(name, sees) == part)
    if not any(weight.requires_grad for weight in model.parameters()):
        raise ConfigError(
            f"the model has no {part.replace('_', ' ')} that is known by its name ({', '.join(_CONNECTOR)})"
        )


def _check_trained(model: Any, part: str) -> None:
    """Assert that everything else is frozen."""
    sees = _sees(model)
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            assert "lora_" in name if part == ADAPTERS else _part_of(name, sees) == part, name


def language_layers(model: Any) -> list[str]:
    """Names of the linear layers of a model's language model, its output layer left out.

    Raises:
        ConfigError: None is found.
    """
    import torch

    sees = _sees(model)
    names = [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and not name.endswith("lm_head")
        and (not sees or any(part in _LANGUAGE for part in name.split(".")))
    ]
    if not names:
        raise ConfigError(
            "the model has no linear layers under language_model or text_model; its kind is not supported"
        )
    return names


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


def _rows(data: Path, part: str, stage: Stage) -> Any:
    """The conversations of a part that are of a stage's kinds; pictures are read when they are needed."""
    from datasets import Dataset, Features, Image, List, Value

    path = data / f"{part}.jsonl"
    if not path.is_file():
        raise DataError(f"{data}: there is no {path.name}; `hedge judge data` writes it")
    rows = []
    for where, row in read_objects(path):
        if not all(isinstance(row.get(key), list) for key in ("images", "prompt", "completion")):
            raise DataError(f"{where}: no conversation of `hedge judge data`")
        if kind_of(str(row.get("origin"))) not in stage:
            continue
        images = [str(data / name) for name in row["images"]]
        rows.append({"images": images, "prompt": _turns(row["prompt"]), "completion": _turns(row["completion"])})
    part_of_turn = {"type": Value("string"), "text": Value("string")}
    turns = List({"role": Value("string"), "content": List(part_of_turn)})
    features = Features({"images": List(Image()), "prompt": turns, "completion": turns})
    return Dataset.from_list(rows, features=features)


def _turns(turns: list[Any]) -> list[dict[str, Any]]:
    return [
        {"role": turn["role"], "content": [{"type": p["type"], "text": p.get("text")} for p in turn["content"]]}
        for turn in turns
    ]


def _identity(
    data: Path, base: str, revision: str | None, recipe: Recipe, max_steps: int | None, stages: Sequence[Stage]
) -> dict[str, Any]:
    """Return what decides the adapter."""
    path = data / f"{TRAIN}.jsonl"
    if not path.is_file():
        raise DataError(f"{data}: there is no {path.name}; `hedge judge data` writes it")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    steps = {} if max_steps is None else {"max_steps": max_steps}
    return {
        "base": Path(base).name if Path(base).is_dir() else base,
        "revision": revision,
        "train_sha256": digest,
        "recipe": asdict(recipe),
        "stages": [sorted(stage) for stage in stages],
    } | steps


def _check_place(out: Path, identity: Mapping[str, Any]) -> None:
    """Note in the folder which training this is.

    Raises:
        ConfigError: What is there is of another training.
    """
    note = out / "training.json"
    if any((out / "checkpoints").glob("stage-*/checkpoint-*")) or (out / _DONE).is_file():
        noted = json.loads(read_text(note)) if note.is_file() else None
        if noted != json.loads(json.dumps(identity)):
            raise ConfigError(f"{out} holds checkpoints of another training (see {note}); choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(note, json.dumps(identity, indent=2) + "\n")


def _finished(out: Path) -> Trained | None:
    """Return what a training that came to its end came to."""
    note = out / _DONE
    if not note.is_file():
        return None
    facts = json.loads(read_text(note))
    losses = tuple((step, loss) for step, loss in facts["losses"])
    n_trained, total = facts["trained"]
    return Trained(out / facts["weights"], losses, facts["eval_loss"], facts["steps"], (n_trained, total))


def _forget_place(adapter: Path, base: str) -> None:
    """An adapter is handed on: of a base in a folder it holds the folder's name, and not where it was."""
    path = adapter / "adapter_config.json"
    config = json.loads(read_text(path))
    write_whole(path, json.dumps({**config, "base_model_name_or_path": base}, indent=2, sort_keys=True) + "\n")


def _write_card(trained: Trained, identity: Mapping[str, Any], data: Path) -> None:
    from huggingface_hub import ModelCard, ModelCardData

    facts = data / "examples.json"
    made_of = json.loads(read_text(facts)) if facts.is_file() else {}
    template = resources.files("hedge_tasks.making") / "templates" / "judge_card.md.jinja"
    library = "peft" if identity["recipe"]["trained"] == ADAPTERS else "transformers"
    card = ModelCard.from_template(
        ModelCardData(base_model=str(identity["base"]), library_name=library, tags=["hallucination", "judge"]),
        template_str=template.read_text("utf-8"),
        base=identity["base"],
        settings=json.dumps(identity, indent=2),
        examples=json.dumps(made_of, indent=2, ensure_ascii=False),
        first=trained.losses[0][1] if trained.losses else None,
        last=trained.losses[-1][1] if trained.losses else None,
        eval_loss=trained.eval_loss,
        steps=trained.steps,
        weights=trained.trained,
        part=identity["recipe"]["trained"],
    )
    write_whole(trained.weights / "README.md", str(card))
