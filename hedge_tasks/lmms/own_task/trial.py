"""Does a task work? lmms-eval asks the embedded model, and the rule judge is tried on answers that are known."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loguru import logger

from hedge_tasks.adjudication import Case, build_judge
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.lmms.requests import check_models

N_DOCUMENTS = 3
OUTCOME = "hedge_tasks.lmms.outcome"

_JUDGED = 200
_FILTERS = [
    {"name": "exact", "filter": [{"function": "hedge_cluster", "backend": "exact"}, {"function": "hedge_score"}]}
]


@dataclass(frozen=True)
class DocumentPreview:
    """One document as a model sees it."""

    text: str
    pictures: tuple[str, ...]
    reference: str


@dataclass(frozen=True)
class JudgeTrial:
    """Verdicts of the rule judge on answers that are known to be right or wrong.

    Attributes:
        n: documents that were tried.
        right: how many references it calls supported, as answers to their own question.
        wrong: how many of as many answers to other questions it calls hallucinated.
    """

    n: int
    right: int
    wrong: int


@dataclass(frozen=True)
class Trial:
    """Outcome of a trial.

    Attributes:
        missing: what is said of a clustering model that cannot be had here; None where all can.
    """

    shown: tuple[DocumentPreview, ...]
    judged: JudgeTrial
    missing: str | None


def check_free(name: str) -> None:
    """Refuse a name that lmms-eval or a package has a task of: it would be run instead.

    Raises:
        ConfigError: it is taken; says by what.
    """
    from lmms_eval.tasks import TaskManager

    manager = TaskManager()
    if name in manager.all_tasks:
        where = manager.task_index[name].get("yaml_path")
        raise ConfigError(f"{name!r} is taken: lmms-eval has a task or group of that name ({where}); choose another")


def try_task(folder: Path, name: str) -> Trial:
    """Load the task as lmms-eval does, and evaluate the embedded model on its first documents.

    Answers are clustered by their texts alone, so that it needs no other model; whether those of the task can be had is
    looked up.

    Args:
        folder: of its YAML.

    Raises:
        HedgeError: it does not work; says why.
    """
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager, get_task_dict
    from lmms_eval.utils import load_yaml_config

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    task = get_task_dict([name], manager, "chat")[name]
    config = {**load_yaml_config(str(folder / f"{name}.yaml"), mode="full"), "filter_list": _FILTERS}
    config["generation_kwargs"] = {
        **(config.get("generation_kwargs") or {}),
        "n": 2,
        "max_new_tokens": 8,
        "probe": False,
    }
    with _own_settings():
        outcome = simple_evaluate(
            "hedge_tiny", tasks=[config], limit=N_DOCUMENTS, batch_size=1, bootstrap_iters=0, task_manager=manager
        )
    asked = len(outcome["samples"][name]) if outcome else 0
    documents = task.test_docs()
    if asked != min(N_DOCUMENTS, len(documents)):
        raise HedgeError(f"{name}: of {N_DOCUMENTS} documents {asked} were answered and scored")
    first = [documents[row] for row in range(asked)]
    shown = tuple(_shown(task, document) for document in first)
    return Trial(shown, _judged(task, config["hedge"]["question"]), _missing_models(task))


def _missing_models(task: Any) -> str | None:
    try:
        check_models(task._filters)
    except HedgeError as error:
        return " ".join(str(error).split())
    return None


@contextmanager
def _own_settings() -> Iterator[None]:
    """Within, no setting of the user's says how tasks are run, and what is kept is kept in a folder that goes away."""
    before = {key: os.environ.pop(key) for key in list(os.environ) if key.startswith("HEDGE_")}
    try:
        with TemporaryDirectory() as folder:
            os.environ["HEDGE_STORE"] = folder
            logger.disable(OUTCOME)  # three answers of a model that knows nothing are unreliable, and mean nothing
            yield
    finally:
        logger.enable(OUTCOME)
        os.environ.pop("HEDGE_STORE", None)
        os.environ.update(before)


def _shown(task: Any, document: Any) -> DocumentPreview:
    sizes = tuple(f"{picture.width} x {picture.height}" for picture in task.doc_to_visual(document))
    return DocumentPreview(task.doc_to_text(document), sizes, task.doc_to_target(document))


def _judged(task: Any, question: str) -> JudgeTrial:
    """The rule judge on each reference, and on another document's reference in its place.

    Args:
        question: column with the questions.
    """
    documents = task.dataset_no_image[task.config.test_split]
    step = max(1, len(documents) // _JUDGED)
    chosen = [documents[row] for row in range(0, len(documents), step)][:_JUDGED]
    questions = [str(document[question]) for document in chosen]
    references = [task.doc_to_target(document) for document in chosen]
    others = [_another(references, row) for row in range(len(references))]
    return JudgeTrial(
        len(chosen),
        sum(label == 0 for label in _labels(questions, references, references)),
        sum(label == 1 for label in _labels(questions, references, others)),
    )


def _another(references: Sequence[str], row: int) -> str:
    """Another reference, of as many words where there is one: beside "yes", "no" tells more than "in the left lung"."""
    own = references[row].lower()
    after = [other for other in (*references[row + 1 :], *references[:row]) if other.lower() != own]
    alike = [other for other in after if len(other.split()) == len(own.split())]
    return next(iter(alike or after), references[row])


def _labels(questions: Sequence[str], references: Sequence[str], answers: Sequence[str]) -> list[int | None]:
    judge = build_judge("rule")
    cases = [Case(str(i), *case) for i, case in enumerate(zip(questions, references, answers, strict=True))]
    return [verdict.label for verdict in judge.judge(cases)]
