"""Documents of a board that its maintainers keep to themselves, and an entry's model scored on them.

Whoever cannot see a document cannot have chosen anything on it. A split keeps whole groups together. The private part
is a manifest that stays off the board's repository; scores on it are a file beside the entry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.manifests import Manifest
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import build_judge
from hedge_tasks.leaderboard.attestation_draws import answers_to, check_prompt, draws_of, plan_of
from hedge_tasks.leaderboard.attestation_records import Engine
from hedge_tasks.leaderboard.private_records import PrivateScores
from hedge_tasks.leaderboard.recomputation import asks_nobody
from hedge_tasks.leaderboard.submission import make_submission, sha256_of
from hedge_tasks.runs.relabel import relabel
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.trust import check_models

if TYPE_CHECKING:
    from hedge_tasks.lmms.task import HedgeTask


def split_manifest(manifest: Manifest, groups: Sequence[str | None], share: float, secret: str) -> list[Manifest]:
    """The public and the private part of a task's documents.

    Args:
        manifest: of all documents.
        groups: of each; documents of a group stay together.
        share: of documents that become private, about.
        secret: decides which, with nothing else.

    Raises:
        ConfigError: a part would be empty.
    """
    group_of = {
        id: group if group is not None else f"alone {id}" for id, group in zip(manifest.documents, groups, strict=True)
    }
    order = sorted(set(group_of.values()), key=lambda group: _place(secret, group))
    n_wanted, private = share * len(group_of), set[str]()
    sizes = {group: list(group_of.values()).count(group) for group in order}
    n_private = 0
    for group in order:
        if n_private + sizes[group] / 2 > n_wanted:
            break
        private.add(group)
        n_private += sizes[group]
    parts = [
        {id: d for id, d in manifest.documents.items() if (group_of[id] in private) is hidden}
        for hidden in (False, True)
    ]
    if not all(parts):
        raise ConfigError(f"--share: {share:g} of {len(group_of)} documents in {len(order)} groups leaves a part empty")
    return [replace(manifest, documents=part) for part in parts]


def _place(secret: str, group: str) -> str:
    return hashlib.sha256(json.dumps(["hedge split", secret, group]).encode()).hexdigest()


def private_scores(
    model: Any, task: HedgeTask, submission: Mapping[str, Any], private: Manifest, engine: Engine, *, created: str
) -> PrivateScores:
    """An entry's model on private documents: sampled, judged and scored as the entry says.

    Args:
        model: an adapter.
        task: with its documents, the private ones among them.
        submission: the entry.
        private: which documents.
        engine: the model as the file has it.
        created: time, ISO 8601.

    Raises:
        ConfigError: the judge is one that asks a model or people, or the task asks with another prompt here.
        DataError: the entry has private documents, the task lacks some, or draws failed.
    """
    ids = set(private.documents)
    if leaked := [d["id"] for d in submission["documents"] if d["id"] in ids]:
        raise DataError(f"the entry has {len(leaked)} of the private documents, such as {leaked[0][:80]!r}")
    check_models(submission["settings"].get("filters") or {}, "this submission")
    scored = make_submission(_run(model, task, submission, sorted(ids)), texts=False)
    fields = {
        "hedge_private": 1,
        "split": split_digest(private),
        "documents": len(ids),
        "summary": scored["summary"],
        "clusterings": {name: clustering["aggregates"] for name, clustering in scored["clusterings"].items()},
    }
    return PrivateScores.sealed(submission, engine, created, fields)


def split_digest(private: Manifest) -> str:
    """Digest that tells a split from another one without telling its documents."""
    return sha256_of(sorted(private.documents))


def _run(model: Any, task: HedgeTask, submission: Mapping[str, Any], ids: Sequence[str]) -> Run:
    judge = submission["labels"]["judge"]
    named = judge.get("judge") if isinstance(judge, Mapping) else None
    if not isinstance(judge, Mapping) or not isinstance(named, str) or not asks_nobody(named):
        raise ConfigError(f"labels.judge: {named!r} asks a model or people; private documents are judged by rules only")
    check_prompt(task, submission)
    sets = tuple(_sampled(model, task, submission, ids))
    entry = submission["entry"]
    run = Run(entry["task"], entry["model"], sets, settings=dict(submission["settings"]))
    options = {key: value for key, value in judge.items() if key not in ("judge", "version")}
    return relabel(run, build_judge(named, **options))[0]


def _sampled(model: Any, task: HedgeTask, submission: Mapping[str, Any], ids: Sequence[str]) -> Iterator[AnswerSet]:
    plan = plan_of(submission)
    requests = task.sample_requests(plan, ids)
    if missing := [id for id in ids if id not in requests]:
        raise DataError(f"the task lacks {len(missing)} of the private documents here, such as {missing[0][:80]!r}")
    for id in ids:
        request, row = requests[id]
        draws = draws_of(task, request, row, plan)
        by_index = answers_to(model, {str(i): draw for i, draw in enumerate(draws)})
        answers, n = [by_index[str(i)] for i in range(len(draws))], plan.n
        fields = (request.question, request.reference, None, request.group, request.question_type)
        yield AnswerSet(id, answers[0], tuple(answers[1 : 1 + n]), tuple(answers[1 + n :]), *fields)
