"""Training a judge: TRL's supervised fine-tuning with low-rank adapters on the language model alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io import options
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.outside import read_text
from hedge_tasks.making.judging.examples import EVAL, TRAIN

_DONE = "trained.json"
_EXTRA = "judges are trained with TRL and PEFT: pip install 'hedge-tasks[train]'"
_LANGUAGE = ("language_model", "text_model")
"""Part of the name of every module of a vision-language model's language model, in transformers."""


@dataclass(frozen=True)
class Recipe:
    """How a judge is trained; see `recipe.yaml` for what each value means."""

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

    Raises:
        ConfigError: A key is unknown (names the nearest) or a value makes no sense.
    """
    own = yaml.safe_load((resources.files("hedge_tasks.making.judging") / "recipe.yaml").read_text("utf-8"))
    given: Any = {}
    if path is not None:
        try:
            given = yaml.safe_load(read_text(path))
        except (DataError, yaml.YAMLError) as error:
            raise ConfigError(f"recipe: {error}") from None
        if not isinstance(given, dict):
            raise ConfigError(f"recipe: {path} is no mapping")
    known = [field.name for field in fields(Recipe)]
    for key in (*given, *(changes or {})):
        if key not in known:
            raise unknown("key of the recipe", str(key), known)
    return Recipe(**{**own, **given, **(changes or {})})


@dataclass(frozen=True)
class Trained:
    """Result of a training.

    Attributes:
        adapter: Folder of the adapter, for `hf:model=BASE,peft=ADAPTER`.
        losses: (step, training loss) as they were logged.
        eval_loss: On the held-out part; None without one.
        steps: Optimizer steps.
        trained: Number of weights that were trained, and of all.
    """

    adapter: Path
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
) -> Trained:
    """Fine-tune a model on the conversations of `write_examples`, the loss on the replies alone.

    Args:
        data: Their folder.
        base: Hub id or folder of a vision-language or text model.
        out: Checkpoints go to `checkpoints/`, the adapter with its card to `adapter/`. A training of the same data,
            base and recipe goes on from the last checkpoint there, and is not done twice.
        max_steps: End after so many optimizer steps.

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

    about = _about(data, base, revision, recipe, max_steps)
    checkpoints, adapter = out / "checkpoints", out / "adapter"
    last = _checkpoint(out, about, get_last_checkpoint)
    if (done := _done(out)) is not None:
        return done
    model, processor = _load(base, revision, recipe.dtype)
    rows = {part: _rows(data, part) for part in (TRAIN, EVAL)}
    if not len(rows[TRAIN]):
        raise DataError(f"{data}: there is no conversation in {TRAIN}.jsonl")
    settings = SFTConfig(
        output_dir=str(checkpoints),
        num_train_epochs=recipe.epochs,
        max_steps=max_steps or -1,
        learning_rate=recipe.learning_rate,
        per_device_train_batch_size=recipe.batch_size,
        per_device_eval_batch_size=recipe.batch_size,
        gradient_accumulation_steps=recipe.accumulate,
        warmup_steps=recipe.warmup_share,  # below 1 a share of all steps
        weight_decay=recipe.weight_decay,
        max_length=recipe.max_length,
        completion_only_loss=True,
        gradient_checkpointing=recipe.gradient_checkpointing,
        logging_steps=1,
        save_steps=recipe.save_every,
        save_total_limit=2,
        seed=recipe.seed,
        data_seed=recipe.seed,
        report_to="none",
        bf16=False,
        fp16=False,
        remove_unused_columns=False,
    )
    lora = LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=recipe.lora_dropout,
        target_modules=language_layers(model),
        task_type="CAUSAL_LM",
    )
    trainer = SFTTrainer(
        model=model,
        args=settings,
        train_dataset=rows[TRAIN],
        eval_dataset=rows[EVAL] if len(rows[EVAL]) else None,
        processing_class=processor,
        peft_config=lora,
    )
    trainable = [(name, weight.numel()) for name, weight in trainer.model.named_parameters() if weight.requires_grad]
    assert all("lora_" in name for name, _ in trainable)  # tower, connector and the model itself are frozen
    trainer.train(resume_from_checkpoint=last)
    eval_loss = trainer.evaluate()["eval_loss"] if len(rows[EVAL]) else None
    trainer.save_model(str(adapter))
    _forget_place(adapter, about["base"])
    history = trainer.state.log_history
    losses = tuple((entry["step"], float(entry["loss"])) for entry in history if "loss" in entry)
    total = sum(weight.numel() for weight in trainer.model.parameters())
    found = Trained(adapter, losses, eval_loss, trainer.state.global_step, (sum(n for _, n in trainable), total))
    _write_card(found, about, data)
    write_whole(out / _DONE, json.dumps({**asdict(found), "adapter": adapter.name}, indent=2) + "\n")
    return found


def language_layers(model: Any) -> list[str]:
    """Names of the linear layers of a model's language model, its output layer left out.

    Raises:
        ConfigError: None is found.
    """
    import torch

    sees = any(hasattr(model.config, key) for key in ("vision_config", "vision_tower"))
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

    from hedge_tasks.serving.loading import load_or_explain

    def load(source: str) -> tuple[Any, Any]:
        config = AutoConfig.from_pretrained(source, revision=revision)
        sees = config.model_type in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
        kind = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        processor = (AutoProcessor if sees else AutoTokenizer).from_pretrained(source, revision=revision)
        return kind.from_pretrained(source, revision=revision, dtype=dtype), processor

    return load_or_explain(load, base, revision, kind="base")


def _rows(data: Path, part: str) -> Any:
    """The conversations of a part; pictures are read when they are needed."""
    from datasets import Dataset, Features, Image, List, Value

    path = data / f"{part}.jsonl"
    if not path.is_file():
        raise DataError(f"{data}: there is no {path.name}; `hedge judge data` writes it")
    rows = []
    for where, row in read_objects(path):
        if not all(isinstance(row.get(key), list) for key in ("images", "prompt", "completion")):
            raise DataError(f"{where}: no conversation of `hedge judge data`")
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


def _about(data: Path, base: str, revision: str | None, recipe: Recipe, max_steps: int | None) -> dict[str, Any]:
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
    } | steps


def _checkpoint(out: Path, about: Mapping[str, Any], find: Any) -> str | None:
    """The checkpoint to go on from, and a note of what this training is.

    Raises:
        ConfigError: What is there is of another training.
    """
    note, checkpoints = out / "training.json", out / "checkpoints"
    last: str | None = find(str(checkpoints)) if checkpoints.is_dir() else None
    if last is not None or (out / _DONE).is_file():
        known = json.loads(read_text(note)) if note.is_file() else None
        if known != json.loads(json.dumps(about)):
            raise ConfigError(f"{out} holds checkpoints of another training (see {note}); choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(note, json.dumps(about, indent=2) + "\n")
    return last


def _done(out: Path) -> Trained | None:
    """Return what a training that came to its end came to."""
    note = out / _DONE
    if not note.is_file():
        return None
    facts = json.loads(read_text(note))
    losses = tuple((step, loss) for step, loss in facts["losses"])
    given, total = facts["trained"]
    return Trained(out / facts["adapter"], losses, facts["eval_loss"], facts["steps"], (given, total))


def _forget_place(adapter: Path, base: str) -> None:
    """An adapter is handed on: of a base in a folder it holds the folder's name, and not where it was."""
    path = adapter / "adapter_config.json"
    config = json.loads(read_text(path))
    write_whole(path, json.dumps({**config, "base_model_name_or_path": base}, indent=2, sort_keys=True) + "\n")


def _write_card(trained: Trained, about: Mapping[str, Any], data: Path) -> None:
    from huggingface_hub import ModelCard, ModelCardData

    facts = data / "examples.json"
    made_of = json.loads(read_text(facts)) if facts.is_file() else {}
    template = resources.files("hedge_tasks.making") / "templates" / "judge_card.md.jinja"
    card = ModelCard.from_template(
        ModelCardData(base_model=str(about["base"]), library_name="peft", tags=["hallucination", "judge"]),
        template_str=template.read_text("utf-8"),
        base=about["base"],
        settings=json.dumps(about, indent=2),
        examples=json.dumps(made_of, indent=2, ensure_ascii=False),
        first=trained.losses[0][1] if trained.losses else None,
        last=trained.losses[-1][1] if trained.losses else None,
        eval_loss=trained.eval_loss,
        steps=trained.steps,
        weights=trained.trained,
    )
    write_whole(trained.adapter / "README.md", str(card))
