"""Prompts as data: named variants in JSON files, rendered for chat and for plain-text adapters.

A prompt file maps a variant's name to `{"system": str | null, "user": str}`. In the user text `{question}` stands for
the question, `{context}` for what is given to read with it, and `<image>` for the place of the image (at the front
where it is left out).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import field_validator

from hedge_tasks.errors import lookup, unknown
from hedge_tasks.evaluation import prompt_files
from hedge_tasks.io.outside import read_json
from hedge_tasks.io.records import Objects, OpenRecord
from hedge_tasks.perturb import Wording

IMAGE = "<image>"
QUESTION = "{question}"
CONTEXT = "{context}"

_MARKS = re.compile(f"{re.escape(QUESTION)}|{re.escape(CONTEXT)}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt variant. `version` is recorded with every answer: a changed wording is a new prompt."""

    name: str
    user: str
    system: str | None = None

    def user_text(self, wording: Wording) -> str:
        """The user turn as text, without the image mark."""
        return _fill(self.user.replace(IMAGE, "").strip(), wording)

    def text(self, wording: Wording) -> str:
        """System and user turn as one text, for adapters that know no roles."""
        return f"{self.system}\n{self.user_text(wording)}" if self.system else self.user_text(wording)

    def messages(self, wording: Wording, images: Sequence[Any]) -> list[dict[str, Any]]:
        """Chat messages in lmms-eval's form (`{"type": "image", "url": PIL image}`)."""
        pictures = [{"type": "image", "url": image} for image in images]
        before, mark, after = self.user.partition(IMAGE)
        head = [_text(_fill(before.strip(), wording))] if mark and before.strip() else []
        tail = _text(_fill((after if mark else before).strip(), wording))
        turns = [{"role": "user", "content": [*head, *pictures, tail]}]
        return [{"role": "system", "content": [_text(self.system)]}, *turns] if self.system else turns


def _fill(template: str, wording: Wording) -> str:
    # In one pass: a question that holds a mark of its own is text, not a template.
    values = {QUESTION: wording.question, CONTEXT: wording.context}
    return _MARKS.sub(lambda mark: values[mark[0]], template)


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def load_prompt(reference: str) -> Prompt:
    """Load `evaluation/variant`, such as `shale/question`, from an evaluation's folder.

    Prompts that evaluations share are in `tasks/_prompts`: `medical_vqa/default` is in `medical_vqa.json` there.
    A file of the user's own is named by its path with the ending: `/home/me/mine.json/default`.

    Raises:
        ConfigError: no such file or variant; names the nearest one.
        DataError: a file of the user's own cannot be read or has another form.
    """
    file, _, variant = reference.rpartition("/")
    entry = lookup(f"prompt of {file!r}", variant, _load_file(file))
    return Prompt(name=reference, user=entry.user, system=entry.system)


class _Variant(OpenRecord):
    user: str
    system: str | None = None

    @field_validator("user")
    @classmethod
    def _has_its_marks(cls, user: str) -> str:
        if QUESTION not in user:
            raise ValueError(f"there is no {QUESTION}")
        if user.count(IMAGE) > 1:
            raise ValueError(f"more than one {IMAGE}")
        return user


class _PromptFile(OpenRecord):
    prompts: Objects[_Variant]


@cache
def _load_file(name: str) -> dict[str, _Variant]:
    files = prompt_files()
    path = Path(name) if name.endswith(".json") else files.get(name)
    if path is None or not path.is_file():
        raise unknown("prompt file", name, files)
    return _PromptFile.read(read_json(path), f"prompt file {name}").prompts
