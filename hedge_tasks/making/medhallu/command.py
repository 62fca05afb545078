"""`hedge make medhallu`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.making.commands import MakingOptions, check_counts, cost_facts, result_facts

if TYPE_CHECKING:
    from hedge_tasks.making.stages import Made, Models

_SUMMARY = (
    "Questions with their true answers, and for each a wrong answer that a model wrote so that other models take "
    "it for the true one, by the construction of MedHallu (Pandit et al. 2025, section 3). `Difficulty Level` says "
    "how many judges were deceived in both orders; rows with `Fallback` deceived none. Synthetic "
    "medical misinformation: for evaluating models only."
)
_CLAIM = "Does the answer say something that is not so?"


def medhallu(
    source: str,
    run: MakingOptions,
    *,
    out: Path,
    generator: str,
    judge: tuple[str, ...] = (),
    verifier: tuple[str, ...] = (),
    critic: str | None = None,
    attempts: int = 5,
    candidates: int | None = None,
    nli: str | None = None,
    embedding: str | None = None,
    split: str = "train",
    limit: int | None = None,
    concurrency: int = 16,
) -> tuple[dict[str, Any], int]:
    """Write wrong answers that models take for the true ones (MedHallu, section 3).

    Args:
        source: JSONL or Parquet of question, answer, knowledge; or qiaojin/PubMedQA:pqa_labeled.
        out: Folder of the set, its card and every reply.
        generator: model=NAME,url=...: writes the wrong answers.
        judge: model=NAME,url=...: is to be deceived; at least three times.
        verifier: model=NAME,url=...: says with the knowledge before it whether an answer is wrong, the judges if not
            given; may be given again.
        critic: model=NAME,url=...: says what gives an answer away, the generator if not given.
        attempts: Generations a question at most.
        candidates: In place of a set, write so many candidates a question, those that fail as well (the paper: 50),
            for `hedge paper candidates`.
        nli: Compares meanings, microsoft/deberta-large-mnli if not given.
        embedding: Finds the most similar, all-MiniLM-L6-v2 if not given.
        split: Of a data set on the hub.
        limit: Only the first questions.
        concurrency: Questions under way.
    """
    from hedge_tasks.making.medhallu import construction
    from hedge_tasks.making.medhallu.questions import read_questions
    from hedge_tasks.making.stages import make
    from hedge_tasks.models.by_text import model_from

    check_counts(limit=limit, candidates=candidates, attempts=attempts, concurrency=concurrency)
    judges, verifiers = ([model_from(spec) for spec in specs] for specs in (judge, verifier))
    models = construction.models_of(model_from(generator), judges, model_from(critic) if critic else None, verifiers)
    read = read_questions(source, split=split, licence=run.licence)
    questions = read.rows[:limit]
    if candidates is None:
        stages = construction.stages_of(len(judges), len(models["verifier"]), attempts)
    else:
        stages = construction.sampling_stages(len(judges), candidates)
    if run.dry_run:
        return cost_facts(stages, models, questions)
    build: Any = construction.CandidateSampling(candidates) if candidates is not None else None
    if build is None:
        compares = construction.ModelComparison(nli, embedding)
        compares.load()
        build = construction.MedHallu(compares, attempts)
    result = make(questions, build, stages, models, out, seed=run.seed, concurrency=concurrency)
    result = result.with_left_out({"no question or answer in the source": len(read.left_out)} if read.left_out else {})
    if candidates is not None:
        return _candidates(out, result)
    settings = {"source": source, "attempts": attempts, "nli": nli or construction.NLI_MODEL, "embedding": embedding}
    return _set(run, out, result, models, settings)


def _candidates(out: Path, result: Made) -> tuple[dict[str, Any], int]:
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.making.gate.accept import check_some
    from hedge_tasks.making.gate.verify import check_controls
    from hedge_tasks.making.medhallu.candidates import FILE

    check_controls(result.controls)
    check_some(result)
    write_whole(out / FILE, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in result.rows))
    return result_facts(result, "records", [out / FILE])


def _set(
    run: MakingOptions, out: Path, result: Made, models: Models, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], int]:
    from hedge_tasks.judging.review import ReviewItem
    from hedge_tasks.making.gate.accept import accept
    from hedge_tasks.making.gate.sets import answer_pairs
    from hedge_tasks.making.medhallu.construction import without_surplus, written_text
    from hedge_tasks.making.output import CardText, describe_set, read_labels, write_page, write_rows

    labels = read_labels(run.labels)
    right = {at: "not wrong, people say" for at, row in enumerate(result.rows) if labels.get(row["Id"]) == 0}
    result = without_surplus(result.without(right, alone=True))
    accepted = accept(result, written_text, answer_pairs, alone=True, bound=run.floor)
    if not labels:
        items = [
            ReviewItem(
                row["Id"],
                {
                    "Question": row["Question"],
                    "Evidence": "\n\n".join([row["Ground Truth"], *row["Knowledge"]]),
                    "Answer to judge": row["Hallucinated Answer"],
                },
                _CLAIM,
            )
            for row in accepted.made.rows
        ]
        write_page(out, "Medical answers", items, n=run.review, seed=run.seed)
    path = write_rows(out, accepted.made.rows)
    settings = run.settings(models, **settings, looked_at=len(labels))
    writers = list(dict.fromkeys(model.name for role in ("generator", "critic") for model in models[role]))
    card = CardText("MedHallu, made again", run.licence, _SUMMARY, settings, accepted.attacks, writers=writers)
    describe_set(out, accepted.made, card, {"train": path})
    return result_facts(accepted.made, "records", [path])
