"""A judge without a model: fixed rules for closed questions and short references."""

from hedge_tasks.judging.rule.judge import RULES, RuleJudge, describe_rules, question_type

__all__ = ["RULES", "RuleJudge", "describe_rules", "question_type"]
