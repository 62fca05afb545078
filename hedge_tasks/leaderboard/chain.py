"""The chain from the answers in a store over the run file to a submission, proved link by link.

A submission names the digest of its run file, the run file the digest of every document's draws with their keys in the
answer store, and every label of a model judge its key in the label store. Whoever is given those files can prove that
none was changed after the one before it was written. That the store's answers came from the model that it names,
nobody can prove from files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import HedgeError
from hedge_tasks.judging.reply_judge import reads_replies
from hedge_tasks.leaderboard.recomputation import DIFFERENT_BY_ROUNDING, same_clusters
from hedge_tasks.leaderboard.stated import MOST_FAULTS
from hedge_tasks.leaderboard.submission import digest_of, document_record
from hedge_tasks.leaderboard.suite import suite_of_run
from hedge_tasks.leaderboard.units import claims_of_run
from hedge_tasks.leaderboard.validation import ValidationFindings, check
from hedge_tasks.llm.log import Kept, ReplyLog
from hedge_tasks.runs.editions import clustering_rules
from hedge_tasks.runs.relabel import judge_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import with_kept_outputs
from hedge_tasks.runs.trust import check_models
from hedge_tasks.sampling.archive import documents_of, keyed_answers
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.jobs import draws_digest
from hedge_tasks.sampling.store import AnswerStore, StoredDocument

READ_BY = "read_by"
"""Setting of runs whose task reads every answer (`HedgeTask.read_answer`), so that texts are not what was drawn."""


@dataclass(frozen=True)
class Link:
    """One link of the chain.

    Attributes:
        name: which one.
        problems: why it does not hold; none where it does.
        facts: what was found, for people.
    """

    name: str
    problems: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


def prove_run(submission: Mapping[str, Any], run: Run) -> Link:
    """Prove that a submission is of this run file, and of all of it."""
    unknown: list[str] = []
    problems = (*_differences(submission, run), *_clustering_differences(submission, run, unknown))
    return Link(
        "run file",
        tuple(islice(problems, MOST_FAULTS)),
        {
            "documents": len(run.answer_sets),
            "sha256": run.digest or None,
            "clusters_that_cannot_be_made_again_here": ", ".join(unknown),
        },
    )


def check_with_texts(submission: Mapping[str, Any], run: Run, **options: Any) -> ValidationFindings:
    """Return what `check` finds when the run file lends its texts to a submission without them; options as there."""
    replies = reads_replies(judge_of(run))
    texts = {
        a.id: document_record(a, run.verdicts.get(a.id) or {}, {}, texts=True, replies=replies)["texts"]
        for a in run.answer_sets
    }
    documents = [
        {**document, **({"texts": texts[document["id"]]} if document["id"] in texts else {})}
        for document in submission["documents"]
    ]
    lent = {**submission, "documents": documents}
    return check({**lent, "digest": digest_of(lent)}, **options)


def prove_store(run: Run, store: AnswerStore) -> Link:
    """Prove that the answers of a run file are those of an answer store, draw by draw."""
    read: list[str] = []
    problems = tuple(islice(_draw_faults(run, store, read), MOST_FAULTS))
    named = {a.drawn.definition for a in run.answer_sets if a.drawn is not None}
    definitions = [d for d in store.definitions.values() if d.id in named]
    ids = {a.id for a in run.answer_sets}
    only_in_store = {id for definition in definitions for id in documents_of(store, definition)} - ids
    facts = {
        "models": sorted({str(d.model) for d in definitions}),
        # Thoughts that were taken out, and replies of a fixed form that were read as one.
        "answers_read_differently": len(read),
        "documents_that_are_only_in_the_store": len(only_in_store),
    }
    return Link("answer store", problems, facts)


def prove_labels(submission: Mapping[str, Any], store: ReplyLog) -> Link:
    """Prove that the labels of a model judge are those of a label store."""
    problems = tuple(islice(_label_faults(submission, store), MOST_FAULTS))
    keyed = sum(bool(document["judged"]["keys"]) for document in submission["documents"])
    return Link("label store", problems, {"labels_with_a_key": keyed})


def _differences(submission: Mapping[str, Any], run: Run) -> Iterator[str]:
    stated_digest = submission["run"]["sha256"]
    if not run.digest:
        yield f"{run.path}: this is no run file, so there is no digest to compare"
    elif stated_digest != run.digest:
        yield f"run.sha256: stated {stated_digest}, the file's is {run.digest}"
    entry = submission["entry"]
    for name in ("task", "model", "created"):
        if entry[name] != getattr(run, name):
            yield f"entry.{name}: stated {entry[name]!r:.80}, the run file says {getattr(run, name)!r:.80}"
    if submission["settings"] != run.settings:
        keys = submission["settings"].keys() | run.settings.keys()
        differing = sorted(k for k in keys if submission["settings"].get(k) != run.settings.get(k))
        yield f"settings: {', '.join(differing)[:200]} are not those of the run file"
    yield from _document_differences(submission["documents"], run)


def _clustering_differences(submission: Mapping[str, Any], run: Run, unknown: list[str]) -> Iterator[str]:
    """Clusterings that are not the run's: other settings, or other clusters than these settings give.

    Args:
        unknown: names are added of those whose model is neither here nor kept with the run.
    """
    filters = run.settings.get("filters")
    filters_of_run = filters if isinstance(filters, Mapping) else {}
    by_id = {document["id"]: document for document in submission["documents"]}
    for name, clustering in submission["clusterings"].items():
        settings = filters_of_run.get(name)
        if not isinstance(settings, Mapping):
            yield f"clusterings.{name[:80]}: none of the run's filters"
            continue
        of_run, stated_rules = clustering_rules(settings), clustering_rules(clustering["settings"])
        if of_run != stated_rules:
            keys = sorted(k for k in of_run.keys() | stated_rules.keys() if of_run.get(k) != stated_rules.get(k))
            yield f"clusterings.{name[:80]}.settings: {', '.join(keys)[:200]} are not those of the run file"
            continue
        try:
            check_models({name: settings}, "this run")
            clustered = with_kept_outputs(Scorer.from_settings(name, settings), run).cluster(run.answer_sets)
        except HedgeError:
            unknown.append(name[:80])
            continue
        differing = [
            a.id
            for a in clustered
            if a.id in by_id and not same_clusters(a.cluster_ids or (), by_id[a.id]["clusterings"][name]["clusters"])
        ]
        if len(differing) > DIFFERENT_BY_ROUNDING * len(clustered):
            where = f"in {len(differing)} documents, such as {differing[0][:80]!r}"
            yield f"clusterings.{name[:80]}.clusters: not those of the run {where}"


def _document_differences(documents: Sequence[Mapping[str, Any]], run: Run) -> Iterator[str]:
    of_run = {a.id: a for a in run.answer_sets}
    own, replies = suite_of_run(run), reads_replies(judge_of(run))
    claims = claims_of_run(run, texts=any("texts" in document for document in documents))
    # Scores are computed again, of blind baselines too. Claims and audits are kept in files of their own beside the run
    # file, which nobody need have been lent.
    left_out = {"clusterings", "blind", "audit", *(["claims"] if claims is None else [])}
    stated_ids = {document["id"] for document in documents}
    for id in of_run.keys() - stated_ids:
        yield f"documents: {id[:80]!r} of the run file is missing"
    for i, document in enumerate(documents):
        if (answers := of_run.get(document["id"])) is None:
            yield f"documents[{i}]: {document['id'][:80]!r} is none of the run file's"
            continue
        verdict, mine = run.verdicts.get(answers.id) or {}, own.records[answers.id]
        expected = document_record(answers, verdict, {}, texts="texts" in document, suite=mine, replies=replies)
        if claims is not None:
            expected["claims"] = claims.records[answers.id]
        for name in (expected.keys() | document.keys()) - left_out:
            if expected.get(name) != document.get(name):
                yield f"documents[{i}].{name}: not that of the run file"


def _draw_faults(run: Run, store: AnswerStore, read: list[str]) -> Iterator[str]:
    documents: dict[tuple[str, str], StoredDocument] = {}
    for stored in store.documents:
        documents.setdefault((stored.definition, stored.key), stored)
    for definition in _definitions(run, store):
        yield from _definition_faults(run, definition)
    for answers in run.answer_sets:
        yield from _document_draw_faults(answers, store, documents, read, bool(run.settings.get(READ_BY)))


def _definitions(run: Run, store: AnswerStore) -> list[Definition]:
    named = {a.drawn.definition for a in run.answer_sets if a.drawn is not None}
    return [definition for definition in store.definitions.values() if definition.id in named]


def _definition_faults(run: Run, definition: Definition) -> Iterator[str]:
    if definition.task != run.task:
        yield f"definition {definition.id}: of the task {definition.task!r:.80}, the run is of {run.task!r:.80}"
    prompt, sampling = (run.settings.get(name) for name in ("prompt", "sampling"))
    for name in ("system", "user"):
        if isinstance(prompt, Mapping) and prompt.get(name) != definition.prompt.get(name):
            yield f"definition {definition.id}: its prompt's {name!r} is not that of the run's settings"
    for name, value in definition.sampling.items():
        if isinstance(sampling, Mapping) and name in sampling and sampling[name] != value:
            yield f"definition {definition.id}: {name} {value!r:.80}, the run's settings say {sampling[name]!r:.80}"


def _document_draw_faults(
    answers: AnswerSet,
    store: AnswerStore,
    documents: Mapping[tuple[str, str], StoredDocument],
    read: list[str],
    reads: bool,
) -> Iterator[str]:
    at, recorded = f"document {answers.id[:80]!r}", answers.drawn
    if recorded is None:
        yield f"{at}: the run file does not say which draws these answers are"
        return
    definition = store.definitions.get(recorded.definition)
    stored = documents.get((recorded.definition, recorded.document))
    if definition is None or stored is None:
        yield f"{at}: the store has no document {recorded.document[:80]!r} under {recorded.definition[:80]!r}"
        return
    keyed = keyed_answers(store, definition, stored, len(answers.clean), len(answers.noisy))
    draws = [(key, answer) for key, answer in keyed if answer is not None]
    if len(draws) < len(keyed):
        yield f"{at}: {len(keyed) - len(draws)} of its {len(keyed)} draws are not in the store"
        return
    if draws_digest(draws) != recorded.sha256:
        yield f"{at}: the draws are not those that the run was made of"
    if (stored.question, stored.reference) != (answers.question, answers.reference):
        yield f"{at}: question or reference are not those of the store"
    for i, ((_, of_store), of_run) in enumerate(zip(draws, answers.answers, strict=True)):
        if _numbers(of_store) != _numbers(of_run):
            yield f"{at}: log-probability or tokens of answer {i} are not those of the store"
        if of_store.text != of_run.text:
            read.append(answers.id)
            # Thoughts are taken out, and nothing is put in, but by a task that reads replies of a fixed form.
            if not reads and of_run.text not in of_store.text:
                yield f"{at}: answer {i} is not that of the store"


def _numbers(answer: Answer) -> tuple[float | None, int | None]:
    return answer.mean_logprob, answer.n_tokens


def _label_faults(submission: Mapping[str, Any], store: ReplyLog) -> Iterator[str]:
    for i, document in enumerate(submission["documents"]):
        keys = document["judged"]["keys"]
        replies = [store.get(key) for key in keys]
        if not keys and document["label"] is not None:
            yield f"documents[{i}].label: no key of a label store"
        elif None in replies:
            yield f"documents[{i}].label: the label store has no such key"
        elif len(replies) == 1 and replies[0] is not None and (label := _label_of(replies[0])) != document["label"]:
            yield f"documents[{i}].label: stated {document['label']}, the label store says {label}"


def _label_of(reply: Kept) -> Any:
    """The label that a judge read from a kept reply; None of one that it could not read."""
    verdict = reply.about.get("verdict")
    return verdict.get("label") if isinstance(verdict, Mapping) else None
