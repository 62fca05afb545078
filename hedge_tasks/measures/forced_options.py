"""Numbers of the model's distribution over the offered answers, beside those of what it wrote.

The distribution comes from forced passes over whole replies (`hedge_tasks.sampling.forced`): nothing is drawn and
no reply is read. Lettered options are offered in the given and in the reversed order, and the probabilities are
averaged over both, since a model may prefer a position. The suite's numbers of generated replies do not change; the
gap shows how far the two are apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.answers import OPTION, REVERSED, AnswerSet, option_logprobs
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.measures.measure import Mean, Measure, Record
from hedge_tasks.numbers.number import Interval

Shares = Mapping[str, float]
"""Probability of each option; they add up to 1."""

_SIGNED: Interval = (-1.0, 1.0)


@dataclass(frozen=True)
class Offered:
    """A question with options, and what the model makes of them.

    Attributes:
        shares: its distribution, over both orders where there are two.
        given_order, reversed_order: the same in each order; None where it was not asked for.
        right: the right option; None where it is not among them.
        reply_option: the option that the written reply takes; None where it takes none.
        reply_is_right: 1 or 0 as the suite counts the written reply; None where it does not.
    """

    shares: Shares
    given_order: Shares
    reversed_order: Shares | None
    right: str | None
    reply_option: str | None
    reply_is_right: int | None

    @property
    def likeliest(self) -> list[str]:
        """The option with the largest share; several where they are equal."""
        most = max(self.shares.values())
        return [option for option, share in self.shares.items() if share == most]

    @property
    def forced_is_right(self) -> float | None:
        """Whether the likeliest option is the right one; of several equal ones a part."""
        if self.right is None:
            return None
        return (self.right in self.likeliest) / len(self.likeliest)


def option_shares(logprobs: Mapping[str, float]) -> dict[str, float] | None:
    """Probability of each option among those that are offered; None where nothing is known, or all are impossible.

    Args:
        logprobs: of each option as the whole reply, in nats.

    Example:
        >>> round(option_shares({"A": math.log(0.3), "B": math.log(0.1)})["A"], 6)
        0.75
    """
    most = max(logprobs.values(), default=-math.inf)
    if len(logprobs) < 2 or most == -math.inf:
        return None
    weights = {option: math.exp(value - most) for option, value in logprobs.items()}
    total = math.fsum(weights.values())
    return {option: weight / total for option, weight in weights.items()}


def offered_facts(answers: AnswerSet, right: str | None) -> dict[str, Any]:
    """Facts of a document that `OptionsMeasure` reads, for `HedgeTask.facts`.

    Where the verdict's category is not the option that the written reply takes, `option_said` holds it.

    Args:
        right: the right option, as it is offered.
    """
    orders = {"offered": OPTION, "offered_reversed": REVERSED}
    return {**{name: option_logprobs(answers.forced, order) for name, order in orders.items()}, "right_option": right}


@dataclass(frozen=True, eq=False, kw_only=True)
class OptionsMeasure(Mean):
    """Mean over documents of a number of the model's distribution over the offered answers.

    Attributes:
        value_of: the number of one document; None where it has none.
        reply_is_right: verdict -> as the suite counts the written reply.
    """

    value_of: Callable[[Offered], float | None]
    reply_is_right: Callable[[Record], int | None] = lambda verdict: (
        None if verdict["label"] is None else int(verdict["label"] == 0)
    )
    columns: tuple[str, ...] = ("offered", "offered_reversed", "right_option")
    passes: tuple[str, ...] = ("forced_reversed",)
    nothing: str = "the model does not tell how likely each option is as the whole reply"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        offered = self._offered(verdict, document)
        return {"value": None if offered is None else self.value_of(offered), "group": scores.group}

    def _offered(self, verdict: Record, document: Record) -> Offered | None:
        given_order, reversed_order = option_shares(document["offered"]), option_shares(document["offered_reversed"])
        if given_order is None:
            return None
        both = reversed_order is not None and reversed_order.keys() == given_order.keys()
        shares = (
            {option: (share + reversed_order[option]) / 2 for option, share in given_order.items()}
            if both and reversed_order
            else given_order
        )
        spelled = {option.casefold(): option for option in given_order}
        reply_option, right = document.get("option_said", verdict.get("category")), document["right_option"]
        return Offered(
            shares=shares,
            given_order=given_order,
            reversed_order=reversed_order if both else None,
            right=right if right in given_order else None,
            reply_option=spelled.get(str(reply_option).casefold()),
            reply_is_right=self.reply_is_right(verdict),
        )


def _gap(offered: Offered) -> float | None:
    forced, replied = offered.forced_is_right, offered.reply_is_right
    return None if forced is None or replied is None else forced - replied


def _brier(offered: Offered) -> float | None:
    if offered.right is None:
        return None
    return math.fsum((share - (option == offered.right)) ** 2 for option, share in offered.shares.items())


def _overconfidence(offered: Offered) -> float | None:
    right = offered.forced_is_right
    return None if right is None else max(offered.shares.values()) - right


def _entropy(offered: Offered) -> float:
    return -math.fsum(share * math.log(share) for share in offered.shares.values() if share > 0)


def _differs(offered: Offered) -> float | None:
    return None if offered.reply_option is None else float(offered.reply_option not in offered.likeliest)


def _order_gap(offered: Offered) -> float | None:
    if offered.reversed_order is None:
        return None
    return math.fsum(abs(share - offered.reversed_order[option]) for option, share in offered.given_order.items()) / 2


def forced_measures(**declared: Any) -> list[Measure]:
    """Return the numbers of a task that declares its options (`HedgeTask.choices`, and `offered_facts` in its `facts`).

    Args:
        declared: another `reply_is_right`.
    """
    lower = {**declared, "higher_is_better": False}
    return [
        OptionsMeasure(
            name="forced_accuracy",
            about="Share of documents whose likeliest option, by forced passes, is the right one.",
            value_of=lambda offered: offered.forced_is_right,
            **declared,
        ),
        OptionsMeasure(
            name="forced_gap",
            about="Accuracy by forced passes less that of the written replies, on the same documents.",
            value_of=_gap,
            bounds=_SIGNED,
            **declared,
        ),
        OptionsMeasure(
            name="forced_differs_rate",
            about="Of the replies that take an option, the share that takes another one than the likeliest.",
            value_of=_differs,
            **lower,
        ),
        OptionsMeasure(
            name="option_brier",
            about="Brier score of the distribution over the options: sum over them of (p - [right])^2.",
            value_of=_brier,
            bounds=(0.0, 2.0),
            **lower,
        ),
        OptionsMeasure(
            name="option_overconfidence",
            about="Mean probability of the likeliest option less how often it is right.",
            value_of=_overconfidence,
            bounds=_SIGNED,
            **lower,
        ),
        OptionsMeasure(
            name="option_entropy_mean",
            title="entropy over the options",
            about="Mean entropy (nats) of the distribution over the options.",
            value_of=_entropy,
            bounds=(0.0, math.inf),
            **lower,
        ),
        OptionsMeasure(
            name="option_order_gap",
            about="How far the distribution moves (total variation) where lettered options stand in the other order.",
            value_of=_order_gap,
            **{
                **lower,
                "nothing": "its options are not asked for in two orders, or how likely they are is not told",
            },
        ),
    ]


FORCED_ROWS: Sequence[str] = tuple(measure.name for measure in forced_measures())
"""Names of their rows."""
