"""`hedge judge`: label a finished run anew, or measure a judge against labels that people gave."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, LabelFileChoice, keeping_judge, label_counts
from hedge_tasks.cli.judge_training import data, train
from hedge_tasks.errors import ConfigError, HedgeError

if TYPE_CHECKING:
    from hedge_tasks.judging import Verdict
    from hedge_tasks.runs.run_files import Run


def judge(
    clustering: ClusteringChoice,
    labelled: LabelFileChoice,
    run: Path | None = None,
    *,
    judge: tuple[str, ...] = (),
    out: Path | None = None,
    task: str | None = None,
    check: Path | None = None,
    scheme: str | None = None,
) -> dict[str, Any]:
    """Label a finished run anew, or check a judge against human labels.

    Args:
        run: Lmms-eval's output folder, a run file, or a file of answers.
        judge: Name, name:key=value,... or JSON; several for a majority; without it HEDGE_JUDGE. What a model replies is
            kept beside the file, and not asked again.
        out: Folder of the new run file; beside RUN if not given.
        task: Which task, where the folder holds runs of several.
        check: Question, reference, answer and human label a row.
        scheme: Whose outcomes the human labels are, such as medhallmark.
    """
    from hedge_tasks.cli.judge_check import run_check
    from hedge_tasks.judging import reliability
    from hedge_tasks.judging.config import ENVIRONMENT
    from hedge_tasks.llm.account import asked
    from hedge_tasks.runs.relabel import changes, relabel
    from hedge_tasks.runs.run_files import load_run, save_run

    if (run is None) == (check is None):
        raise ConfigError("give a RUN to label, or --check with human labels, not both")
    if not judge and not os.environ.get(ENVIRONMENT, "").strip():
        raise ConfigError(f"name a judge: --judge rule, --judge llm:model=..., or {ENVIRONMENT}")
    if check is not None:
        chosen = keeping_judge([*judge], check, images=labelled.images is not None)
        return run_check(check, chosen, scheme=scheme, **labelled.settings())
    finished = load_run(Path(run or ""), task)
    chosen = keeping_judge([*judge], finished.path)
    judged, verdicts = relabel(finished, chosen)
    cost, notes = asked(chosen)
    return {
        "task": judged.task,
        "model": judged.model,
        "run": save_run(judged, out or (finished.path or Path()).parent),
        "judge": chosen.settings(),
        "documents": len(verdicts),
        **label_counts(verdict.label for verdict in verdicts),
        "categories": Counter(filter(None, map(attrgetter("category"), verdicts))),
        "unreliable": reliability(verdicts),
        **cost,
        "changed": [{"from": a, "to": b, "ids": ids} for (a, b), ids in changes(finished, judged).items()],
        "notes": notes,
        **(_compared(clustering, judged, verdicts) if getattr(chosen, "judges", None) else {}),
    }


def _compared(clustering: ClusteringChoice, judged: Run, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return how far judges agree, where they do not, and the AUROC by judge and detector, or why there is none."""
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.detectors.units import detection_auroc, shared_groups
    from hedge_tasks.judging.baselines import MAJORITY
    from hedge_tasks.runs.judge_comparison import agreement, disagreements, votes_by_judge
    from hedge_tasks.runs.relabel import cases_of

    by_judge = {**votes_by_judge(verdicts), MAJORITY: verdicts}
    groups = shared_groups([answers.group for answers in judged.answer_sets])
    auroc: Any = {}
    try:
        scores = clustering.scorer(judged).score(judged.answer_sets)
        for judge, votes in by_judge.items():
            units = [replace(unit, label=vote.label) for unit, vote in zip(scores, votes, strict=True)]
            auroc[judge] = {name: detection_auroc(units, name) for name in clustering.names or SCORE_NAMES}
    except HedgeError as error:
        auroc = str(error)
    return {
        "labels": [{"judge": judge, **label_counts(vote.label for vote in votes)} for judge, votes in by_judge.items()],
        "agreement": agreement(verdicts, groups) if len(by_judge) > 2 else {},
        "disagreements": disagreements(cases_of(judged), verdicts),
        "auroc": auroc,
    }


COMMANDS = {"": judge, "data": data, "train": train}
