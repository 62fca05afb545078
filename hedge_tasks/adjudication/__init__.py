"""Is the baseline answer a hallucination? Imports nothing of lmms-eval; each judge is imported when it is built."""

from hedge_tasks.adjudication.base import Case, Judge, Verdict, build_judge, judge_names, register_judge

__all__ = ["Case", "Judge", "Verdict", "build_judge", "judge_names", "register_judge"]
