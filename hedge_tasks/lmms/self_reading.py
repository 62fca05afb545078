"""Replies of which words do not settle what they say: these alone the model is asked about itself.

The reply stands as the assistant's turn, the offered answers are asked for, and each is scored by a forced pass
(`hedge_tasks.sampling.forced`), so that no judge is asked and nothing is parsed. What the model is sure of decides
(`hedge_tasks.judging.fallback`); a firm reading of the rules is never put to it, and replies that hold no answer
(refusals, cut ones, empty ones) stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.data.answers import READ, AnswerSet
from hedge_tasks.judging import Judge, Verdict
from hedge_tasks.judging.fallback import Fallback, own_reading
from hedge_tasks.lmms.reasoning import Tags, without_reasoning
from hedge_tasks.replies import spoken_text
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.replies.reading import UNSETTLED
from hedge_tasks.runs.processes import gather
from hedge_tasks.runs.relabel import case_of


def asks_itself(judge: Judge) -> bool:
    """Whether a judge reads replies by rules of ours, and names no other model for what these leave open."""
    fallback = getattr(judge, "fallback", None)
    return isinstance(fallback, Fallback) and not fallback.parts and getattr(judge, "parsing", HEDGE) == HEDGE


def unsettled(judge: Judge, tags: Tags, free: bool, answers: AnswerSet) -> bool:
    """Whether words leave open what a document's baseline reply says.

    Args:
        judge: reads it.
        tags: around thoughts.
        free: whether the judge is shown what of the reply is spoken, and not all of it.
    """
    case = case_of(without_reasoning(answers, tags))
    [verdict] = judge.judge([replace(case, answer=spoken_text(case.answer)) if free else case])
    return verdict.basis in UNSETTLED


def self_readings(answer_sets: Sequence[AnswerSet], verdicts: Sequence[Verdict]) -> Mapping[str, Any]:
    """For the record: how many replies the model was asked about itself, and which labels follow from what it said.

    Args:
        answer_sets: of this process.
        verdicts: on them.

    Returns:
        Of all processes together the number of replies `asked` about, of those `decided`, and of those `changed`,
        with the `labels`: [id, the answer that the reply is taken for] of each of these. Empty where none was asked
        about.
    """
    rows = gather(
        [
            (part.id, own_reading(part.forced), part is not answers or verdict.label is not None)
            for answers, verdict in zip(answer_sets, verdicts, strict=True)
            for part in (answers, *answers.follow_ups)
            if any(name.startswith(READ) for name in part.forced)
        ]
    )
    decided = [(id, own, labelled) for id, own, labelled in rows if own is not None]
    changed = [[id, own] for id, own, labelled in decided if labelled]
    counts = {"asked": len(rows), "decided": len(decided), "changed": len(changed), "labels": changed}
    return counts if rows else {}
