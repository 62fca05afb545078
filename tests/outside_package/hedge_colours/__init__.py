"""An evaluation of colour words, with a judge, a clustering, a perturbation and a model of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hedge_tasks.evaluation import Evaluation

EVALUATION = Evaluation(
    "colours",
    Path(__file__).parent / "tasks",
    measures=("hedge_colours.measures:MEASURES",),
    second_stages={"colours_again": "hedge_colours.evaluation:ask_again"},
    commands={"data": ("hedge_colours.commands:colours",), "paper": ("hedge_colours.table:colours",)},
)


def models() -> list[Any]:
    from lmms_eval.models.registry_v2 import ModelManifest

    return [ModelManifest(model_id="colour_dice", chat_class_path="hedge_colours.model.ColourDice")]
