"""Sampling of answers: draws, plan, prompts, the generate hook and the durable answer store."""

from hedge_tasks.data.answers import Answer, AnswerSet, Draw
from hedge_tasks.sampling.plan import SamplingPlan

__all__ = ["Answer", "AnswerSet", "Draw", "SamplingPlan"]
