"""Replies that the model reads itself: how likely each option is as its final answer behind its own reply.

Off unless `--gen_kwargs self_reading=true`. The reply stands as the assistant's turn, the options are asked for, and
each is scored by a forced pass (`hedge_tasks.sampling.forced`), so that no judge is asked and nothing is parsed. The
rules are the second opinion: where both read the same, the rules' verdict stays; where the rules read nothing for sure,
the model's own reading counts if it is sure of it (`SURE`); where the two differ, the reply is unread.
Replies that hold no answer (refusals, cut ones, empty ones) stay what they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.data.answers import READ, AnswerSet, option_logprobs
from hedge_tasks.errors import ConfigError
from hedge_tasks.judging import Case, Judge, Verdict
from hedge_tasks.judging.reply_judge import ReplyJudge
from hedge_tasks.measures.forced_options import option_shares
from hedge_tasks.numbers import THREE_DIGITS
from hedge_tasks.replies.reading import DISAGREED, MODEL, UNANSWERED

SURE = 0.8
"""Probability from which a model's reading of its own reply may count where the rules read nothing, or only softly.

Below it the model leaves its reply open; to put a reading of the rules in doubt, another likeliest option is enough.
"""

Judged = list[tuple[Verdict, Mapping[str, Any]]]
"""Verdicts, each with what else its record holds."""


def check_self_reading(task: str, judge: Judge, *, offers: bool) -> None:
    """Refuse what would read nothing.

    Args:
        offers: whether the task declares the answers that its questions offer.

    Raises:
        ConfigError: its replies are not read, or its answers are free.
    """
    if not (isinstance(judge, ReplyJudge) and judge.of_documents and offers):
        raise ConfigError(
            f"{task}: self_reading: it has no options that a reply could be read as; MedHallu, the closed questions "
            "of SHALE and tasks with the judge 'option' have"
        )


def self_read(
    judge: ReplyJudge, cases: Sequence[Case], answer_sets: Sequence[AnswerSet], judged: Judged
) -> tuple[Judged, Counter[str]]:
    """Verdicts with the model's own readings.

    Args:
        cases: what the judge has seen of every document, in the order of the answer sets.
        judged: what it says of them.

    Returns:
        The verdicts, and how many documents both `agree` on, the model `decided`, was `unsure` of, hold no answer
        (`declined`), and are unread because the two `differ`.
    """
    likeliest = [_likeliest(answers) for answers in answer_sets]
    with_reading = [(case, option) for case, option in zip(cases, likeliest, strict=True) if option is not None]
    own = iter(judge.judge([replace(case, answer=option[0], cut=False) for case, option in with_reading]))
    verdicts: Judged = []
    counts = Counter(dict.fromkeys(("agree", "decided", "unsure", "declined", "differ"), 0))
    for case, option, (verdict, facts) in zip(cases, likeliest, judged, strict=True):
        if option is not None:
            outcome, verdict = _second_opinion(judge, case, verdict, replace(next(own), raw=verdict.raw), *option)
            counts[outcome] += 1
        verdicts.append((verdict, facts))
    return verdicts, counts


def _likeliest(answers: AnswerSet) -> tuple[str, float] | None:
    """The option that the model takes for its final answer, with its probability; None without one, or of several."""
    shares = option_shares(option_logprobs(answers.forced, READ))
    if shares is None:
        return None
    first, second = sorted(shares.items(), key=lambda item: -item[1])[:2]
    return None if first[1] == second[1] else first


def _second_opinion(
    judge: ReplyJudge, case: Case, verdict: Verdict, own: Verdict, option: str, share: float
) -> tuple[str, Verdict]:
    rules = judge.reading(judge.parsing, case)
    itself = f"the model itself reads {option!r} (p = {THREE_DIGITS(share)})"
    if rules.basis in UNANSWERED:
        return "declined", verdict
    if rules.value is not None and rules.value != own.category:
        reason = f"unread: the rules read {rules.value!r}, {itself}"
        return "differ", replace(verdict, label=None, category=judge.unread, reason=reason, basis=DISAGREED)
    if share < SURE and (rules.value is None or rules.soft):
        return "unsure", replace(verdict, reason=f"{verdict.reason}; {itself}, and is not sure")
    if rules.value is None:
        return "decided", replace(own, reason=itself, votes=verdict.votes, basis=MODEL)
    return "agree", replace(own, reason=itself, votes=verdict.votes, basis=MODEL) if rules.soft else verdict
