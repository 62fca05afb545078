"""A judge without a model: fixed rules for closed questions and short references."""

from hedge_tasks.judging.rule.judge import RuleJudge as RuleJudge
