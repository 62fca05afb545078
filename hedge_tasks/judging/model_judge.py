"""A judge that asks a model: a template, a model, and the reading of its replies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.errors import ConfigError
from hedge_tasks.io import options
from hedge_tasks.judging.base import JUDGE_UNREAD, Case, Verdict
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.judging.prompt import JudgePrompt, load_judge_prompt
from hedge_tasks.llm.account import Account
from hedge_tasks.llm.asker import Asker, Query, QueryResult
from hedge_tasks.llm.log import Reply, ReplyLog
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.reading import Unreadable
from hedge_tasks.replies import read_free
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.replies.labels import bounded
from hedge_tasks.replies.reading import CUT

DEFAULT_MODEL = "Qwen/Qwen3-30B-A3B"
"""The adjudicator of the HEDGE paper (section 4.5)."""

UNLABELLED = "unlabelled: "
"""How the reason begins where a model was asked and said nothing that can be read."""


class ModelJudge:
    """Asks a model about every case, with a prompt from a file.

    Args:
        model: whom to ask.
        prompt: name of one of the package's prompts, or the path of a prompt file (`*.json`).
        images: show the pictures to the model. None does where the prompt needs them.
        asks: how often a case is asked in all, where the reply cannot be read.
        sampling: `temperature`, `top_p`, `top_k`, `min_p`; 0 is greedy.
        max_tokens: of a reply; where a reply is asked for again, twice as many.

    Attributes:
        account: what the asking of this judge has cost.

    Raises:
        ConfigError: a value makes no sense.
    """

    name: str = "model"

    def __init__(
        self,
        model: Model,
        prompt: str | JudgePrompt,
        *,
        images: bool | None,
        asks: int,
        max_tokens: int,
        sampling: Mapping[str, float] | None = None,
    ) -> None:
        self.model = model
        self.prompt = prompt if isinstance(prompt, JudgePrompt) else load_judge_prompt(prompt)
        self.version = self.prompt.id
        self.images = self._sees(images)
        self.asks = options.count("asks", asks, at_least=1)
        self.sampling = {"temperature": 0.0, **(sampling or {})}
        self.max_tokens = options.count("max_tokens", max_tokens, at_least=1)
        self.account = Account()
        self._folder: Path | None = None

    @property
    def title(self) -> str:
        """Who judges, with the model: what `Verdict.judge` says."""
        return title(self.name, self.model.name)

    def identity(self) -> dict[str, Any]:
        """Everything a verdict depends on besides prompt and case, ready for JSON. No address, no secret."""
        return {**self.model.identity, **self.sampling}

    def settings(self) -> dict[str, Any]:
        """All that can change a verdict, ready for JSON."""
        prompt = {"prompt": self.prompt.id, "prompt_digest": self.prompt.digest[:16]}
        how = {"images": self.images, "asks": self.asks, "max_tokens": self.max_tokens}
        return {"judge": self.name, **self.identity(), **prompt, **how}

    def keep_labels(self, folder: Path | None) -> None:
        """Keep replies in a folder, and ask nothing that is there; None keeps nothing."""
        self._folder = folder

    def check(self, cases_have_images: bool = True) -> None:
        """Fail early where it can be known that judging will not work. Loads no model and sends nothing.

        Raises:
            ConfigError: the judge looks at images, and there are none; a provider, an address or a key is missing.
        """
        if self.images and not cases_have_images:
            raise ConfigError(
                f"judge {self.name!r} with prompt {self.prompt.id} looks at images, and there are none here"
            )
        self.model.check()

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case, with None as its label where the model said nothing that can be read.

        Raises:
            HedgeError: the model cannot be asked. Replies that came before are kept (see `keep_labels`).
        """
        verdicts = {i: verdict for i, case in enumerate(cases) if (verdict := self._unasked(case)) is not None}
        left = [i for i in range(len(cases)) if i not in verdicts]
        try:
            with ReplyLog(self._folder) if self._folder is not None else nullcontext() as log:
                asker = Asker(self.model, self.account, log, asks=self.asks, stage=self.title)
                answered = asker.ask_all([self._question(cases[i]) for i in left])
        finally:
            self.model.free()
        verdicts |= {i: self._verdict_of(result) for i, result in zip(left, answered, strict=True)}
        if left:
            logger.info("judge {}: {} cases; asked so far: {}", self.title, len(left), self.account.total)
        return [verdicts[i] for i in range(len(cases))]

    def _question(self, case: Case) -> Query[Verdict]:
        images = case.images if self.images else None
        return Query(
            self.prompt,
            self.prompt.values(case),
            lambda reply: self._read(case, reply),
            images=images or tuple,
            image_keys=() if images is None else None if case.image_key is None else (case.image_key,),
            max_tokens=self.max_tokens,
            sampling=self.sampling,
        )

    def _unasked(self, case: Case) -> Verdict | None:
        """The verdict on a case that nobody needs to be asked about; None where somebody does."""
        has_images = self.images and case.images is not None
        needs_image = self.prompt.images == "required" and not has_images
        if missing := "image" if needs_image else self.prompt.missing(case, has_images):
            return self._verdict(None, f"not asked: there is no {missing}")
        why = unanswered(case.answer, cut=case.cut)
        if not why and self.prompt.answers_only and read_free(case.answer, cut=case.cut).basis == CUT:
            why = CUT
        return of_unanswered(why, self.title, self.version) if why else None

    def _read(self, case: Case, reply: Reply) -> Verdict:
        outcome, reason = self.prompt.outcome_in(reply.text, case.answer)
        if outcome is None:
            raise Unreadable(reason)
        category = self.prompt.category(outcome)
        return self._verdict(outcome.label, reason, category=category, raw=bounded(reply.text))

    def _verdict_of(self, answered: QueryResult[Verdict]) -> Verdict:
        if answered.value is not None:
            return replace(answered.value, key=answered.key)
        raw = None if answered.reply is None or answered.reply.problem else bounded(answered.reply.text)
        basis = None if raw is None else JUDGE_UNREAD
        return self._verdict(None, f"{UNLABELLED}{answered.problem}", basis=basis, raw=raw, key=answered.key)

    def _verdict(self, label: int | None, reason: str, **fields: Any) -> Verdict:
        return Verdict(label, reason, self.title, self.version, **fields)

    def _sees(self, images: bool | None) -> bool:
        sees_images = self.prompt.images == "required" if images is None else options.flag("images", images)
        if sees_images and self.prompt.images == "never":
            raise ConfigError(f"images: the prompt {self.prompt.id} shows none")
        if not sees_images and self.prompt.images == "required":
            raise ConfigError(f"images: the prompt {self.prompt.id} cannot do without")
        return sees_images


def title(judge: str, model: str) -> str:
    """A judge with its model. Of a folder only the name: verdicts travel, paths of somebody's machine should not."""
    return f"{judge}:{os.path.basename(model.rstrip('/')) if os.path.isdir(model) else model}"
