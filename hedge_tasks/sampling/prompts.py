"""Prompts as data: named variants in JSON files, rendered for chat and for plain-text adapters.

A prompt file maps a variant's name to `{"system": str | null, "user": str}`. In the user text `{question}` stands for
the question and `<image>` for the place of the image (at the front where it is left out).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from hedge_tasks.errors import ConfigError, DataError, unknown

IMAGE = "<image>"
QUESTION = "{question}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt variant. `version` is recorded with every answer: a changed wording is a new prompt."""

    name: str
    user: str
    system: str | None = None

    def user_text(self, question: str) -> str:
        """The user turn as text, without the image mark."""
        return self.user.replace(IMAGE, "").strip().replace(QUESTION, question)

    def text(self, question: str) -> str:
        """System and user turn as one text, for adapters that know no roles."""
        return f"{self.system}\n{self.user_text(question)}" if self.system else self.user_text(question)

    def messages(self, question: str, images: Sequence[Any]) -> list[dict[str, Any]]:
        """Chat messages in lmms-eval's form (`{"type": "image", "url": PIL image}`)."""
        pictures = [{"type": "image", "url": image} for image in images]
        before, mark, after = self.user.partition(IMAGE)
        head = [_text(before.strip().replace(QUESTION, question))] if mark and before.strip() else []
        tail = _text((after if mark else before).strip().replace(QUESTION, question))
        turns = [{"role": "user", "content": [*head, *pictures, tail]}]
        return [{"role": "system", "content": [_text(self.system)]}, *turns] if self.system else turns


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def load_prompt(reference: str) -> Prompt:
    """Load `file/variant`, such as `medical_vqa/default`, from the package's prompt files.

    Raises:
        ConfigError: no such file or variant; names the nearest one.
    """
    file, _, variant = reference.partition("/")
    variants = _load_file(file)
    if variant not in variants:
        raise unknown(f"prompt of {file!r}", variant, variants)
    entry = variants[variant]
    return Prompt(name=reference, user=entry["user"], system=entry.get("system"))


@cache
def _load_file(name: str) -> dict[str, dict[str, str]]:
    folder = resources.files("hedge_tasks.tasks") / "_prompts"
    path = folder / f"{name}.json"
    if not name.isidentifier() or not path.is_file():
        raise unknown("prompt file", name, (entry.name.removesuffix(".json") for entry in folder.iterdir()))
    variants = json.loads(path.read_text("utf-8"))["prompts"]
    for variant, entry in variants.items():
        if QUESTION not in entry.get("user", ""):
            raise DataError(f"prompt {name}/{variant}: the user text has no {QUESTION}")
        if entry["user"].count(IMAGE) > 1:
            raise ConfigError(f"prompt {name}/{variant}: more than one {IMAGE}")
    return variants
