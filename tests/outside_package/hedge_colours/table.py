from pathlib import Path


def colours(run: Path) -> dict[str, int]:
    """Say which colours a run names.

    Args:
        run: Of the task.
    """
    from collections import Counter

    from hedge_tasks.runs.run_files import load_run

    return Counter(answers.baseline.text for answers in load_run(run, None).answer_sets)
