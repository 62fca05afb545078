"""What judges that ask a model share: nothing is asked twice, and a reply that cannot be read is asked for again."""

from __future__ import annotations

import abc
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.adjudication.base import JUDGE_UNREAD, NO_ANSWER, Case, Verdict
from hedge_tasks.adjudication.label_store import LabelStore, label_key
from hedge_tasks.adjudication.prompt import JudgePrompt, load_judge_prompt
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io import options
from hedge_tasks.replies import read_free
from hedge_tasks.replies.declining import declined
from hedge_tasks.replies.judgement import bounded
from hedge_tasks.replies.reading import CUT

DEFAULT_MODEL = "Qwen/Qwen3-30B-A3B"
"""The adjudicator of the HEDGE paper (section 4.5)."""

UNLABELLED = "unlabelled: "
"""How the reason begins where a model was asked and said nothing that can be read."""


@dataclass(frozen=True)
class Reply:
    """What came back for one case.

    Attributes:
        text: all that the model wrote; empty where nothing came.
        problem: why there is no text, where that is known.
        failed: the request came to nothing, which says nothing about the case: not recorded, so that the next run asks.
        unreachable: it failed because nobody answered.
    """

    text: str = ""
    problem: str | None = None
    failed: bool = False
    unreachable: bool = False


Replies = Generator[list[tuple[int, Reply]], None, None]


class ModelJudge(abc.ABC):
    """A judge that asks a model, with a prompt from a file.

    Args:
        model: its name.
        prompt: name of one of the package's prompts, or the path of a prompt file (`*.json`).
        images: show the pictures to the model. None does where the prompt needs them.
        asks: how often a case is asked in all, where the reply cannot be read.
        ask_unlabelled: ask again what an earlier run asked in vain; by default that stays unlabelled.

    Raises:
        ConfigError: a value makes no sense.
    """

    name: str

    def __init__(self, model: str, prompt: str, images: bool | None, asks: int, ask_unlabelled: bool) -> None:
        self.model = options.text("model", model)
        self.prompt: JudgePrompt = load_judge_prompt(prompt)
        self.version = self.prompt.id
        self.images = self._sees(images)
        self.asks = options.count("asks", asks, at_least=1)
        self.ask_unlabelled = options.flag("ask_unlabelled", ask_unlabelled)
        self._folder: Path | None = None

    @abc.abstractmethod
    def _identity(self) -> dict[str, Any]:
        """What a verdict depends on besides prompt and case, ready for JSON. No address, no secret."""

    @abc.abstractmethod
    def _ask(self, cases: Sequence[Case], *, again: bool) -> Replies:
        """Replies as they come, each with the position of its case. Closing it stops the asking.

        Raises:
            HedgeError: asking on makes no sense. What was yielded before is kept.
        """

    @property
    def title(self) -> str:
        """Who judges, with the model: what `Verdict.judge` says."""
        # Of a folder only the name: verdicts travel, paths of somebody's machine should not.
        model = os.path.basename(self.model.rstrip("/")) if os.path.isdir(self.model) else self.model
        return f"{self.name}:{model}"

    def settings(self) -> dict[str, Any]:
        """All that can change a verdict, ready for JSON."""
        prompt = {"prompt": self.prompt.id, "prompt_digest": self.prompt.digest[:16]}
        return {"judge": self.name, **self._identity(), **prompt, "images": self.images, "asks": self.asks}

    def keep_labels(self, folder: Path | None) -> None:
        """Keep labels in a folder, and ask nothing that is there; None keeps nothing."""
        self._folder = folder

    def check(self, cases_have_images: bool = True) -> None:
        """Fail early where it can be known that judging will not work. Loads no model and sends nothing.

        Raises:
            ConfigError: the judge looks at images, and there are none.
        """
        if self.images and not cases_have_images:
            raise ConfigError(
                f"judge {self.name!r} with prompt {self.prompt.id} looks at images, and there are none here"
            )

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case, with None as its label where the model said nothing that can be read.

        Raises:
            HedgeError: the model cannot be asked. Labels that came before are kept (see `keep_labels`).
        """
        keys = [self._key(case, position) for position, case in enumerate(cases)]
        with LabelStore(self._folder) if self._folder is not None else nullcontext() as store:
            verdicts, pending = self._known(dict(zip(keys, cases, strict=True)), store)
            if pending:
                logger.info("judge {}: {} of {} cases to ask", self.title, len(pending), len(set(keys)))
                verdicts |= self._ask_until_read(pending, store)
        kept = self._folder is not None
        return [replace(verdicts[k], key=k) if kept and not k.startswith(_NOT_STORED) else verdicts[k] for k in keys]

    def _known(self, cases: Mapping[str, Case], store: LabelStore | None) -> tuple[dict[str, Verdict], dict[str, Case]]:
        """Verdicts that need no asking, and the cases that do."""
        verdicts: dict[str, Verdict] = {}
        for key, case in cases.items():
            stored = store.get(key) if store is not None else None
            if why := self._not_asked(case):
                verdicts[key] = self._verdict(None, f"not asked: {why}")
            elif why := declined(case.answer):
                verdicts[key] = self._verdict(None, f"declined: {why}", category=NO_ANSWER, basis=why)
            elif stored is not None and not (stored.undecided and self.ask_unlabelled):
                verdicts[key] = stored
        return verdicts, {key: case for key, case in cases.items() if key not in verdicts}

    def _not_asked(self, case: Case) -> str | None:
        """Why there is nothing to ask about a case."""
        shown = self.images and case.images is not None
        if self.prompt.images == "required" and not shown:
            return "there is no image"
        if missing := self.prompt.missing(case, shown):
            return f"there is no {missing}"
        if self.prompt.answers_only:
            read = read_free(case.answer, cut=case.cut)
            return str(read) if read.basis == CUT else None
        return None

    def _ask_until_read(self, pending: Mapping[str, Case], store: LabelStore | None) -> dict[str, Verdict]:
        verdicts: dict[str, Verdict] = {}
        failed: set[str] = set()
        left = dict(pending)
        for turn in range(self.asks):
            keys = list(left)
            with closing(self._ask([left[key] for key in keys], again=turn > 0)) as batches:
                for batch in batches:
                    new = {keys[i]: self._read(left[keys[i]], reply) for i, reply in batch}
                    verdicts |= new
                    failed = (failed - new.keys()) | {keys[i] for i, reply in batch if reply.failed}
                    finished = {k: v for k, v in new.items() if turn == self.asks - 1 or not v.undecided}
                    self._store(store, {key: v for key, v in finished.items() if key not in failed})
            left = {key: left[key] for key in keys if verdicts[key].undecided}
            if not left:
                break
        if len(failed) == len(pending):
            reason = verdicts[next(iter(failed))].reason.removeprefix(UNLABELLED)
            raise HedgeError(f"judge {self.title} answered none of {len(failed)} cases; one of them: {reason}")
        return verdicts

    def _store(self, store: LabelStore | None, verdicts: Mapping[str, Verdict]) -> None:
        if store is not None:
            store.add((key, verdict) for key, verdict in verdicts.items() if not key.startswith(_NOT_STORED))

    def _read(self, case: Case, reply: Reply) -> Verdict:
        if reply.problem is not None:
            return self._verdict(None, f"{UNLABELLED}{reply.problem}", raw=bounded(reply.text) or None)
        outcome, reason = self.prompt.read(reply.text, case.answer)
        if outcome is None:
            return self._verdict(None, f"{UNLABELLED}{reason}", basis=JUDGE_UNREAD, raw=bounded(reply.text))
        category = self.prompt.category(outcome)
        return self._verdict(outcome.label, reason, category=category, raw=bounded(reply.text))

    def _verdict(self, label: int | None, reason: str, **more: Any) -> Verdict:
        return Verdict(label, reason, self.title, self.version, **more)

    def _key(self, case: Case, position: int) -> str:
        images = case.image_key if self.images and case.images is not None else None
        if self.images and case.images is not None and images is None:
            return f"{_NOT_STORED}{position}"  # nothing tells its pictures from others
        texts = {"question": case.question, "reference": case.reference, "answer": case.answer}
        context = {"description": case.description, "images": images}
        return label_key({"identity": self._identity(), "prompt": self.prompt.digest, **texts, **context})

    def _sees(self, images: bool | None) -> bool:
        wanted = self.prompt.images == "required" if images is None else options.flag("images", images)
        if wanted and self.prompt.images == "never":
            raise ConfigError(f"images: the prompt {self.prompt.id} shows none")
        if not wanted and self.prompt.images == "required":
            raise ConfigError(f"images: the prompt {self.prompt.id} cannot do without")
        return wanted


_NOT_STORED = "position:"
