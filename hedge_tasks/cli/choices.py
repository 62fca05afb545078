"""Options that several commands take, each declared here once, as `hedge_tasks.cli.signatures` reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedge_tasks.data.roles import ColumnSettings
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.guard import Guard
    from hedge_tasks.judging import Judge
    from hedge_tasks.measures.headline import Headline
    from hedge_tasks.runs.run_files import Run


@dataclass(frozen=True)
class RunChoice:
    """A finished run.

    Attributes:
        run: Lmms-eval's output folder, a run file, or a JSONL file of answers.
        task: Which task, where the folder holds runs of several.
        trust_run: Load the models and data sets that the run names, even if no installed task has them.
    """

    run: Path
    task: str | None = None
    trust_run: bool = False

    def load(self) -> Run:
        from hedge_tasks.runs.run_files import load_run

        return load_run(self.run, self.task, trust=self.trust_run)


@dataclass(frozen=True)
class RunsChoice:
    """Finished runs.

    Attributes:
        runs: Output folders of lmms-eval, or run files.
        task: Only runs of this task.
        trust_run: Load the models and data sets that the run names, even if no installed task has them.
    """

    runs: list[Path]
    task: str | None = None
    trust_run: bool = False

    def load(self) -> list[Run]:
        from hedge_tasks.runs.run_files import load_runs

        return [run for path in self.runs for run in load_runs(path, self.task, trust=self.trust_run)]


@dataclass(frozen=True)
class ClusteringChoice:
    """A clustering of answers, and the scores under it.

    Attributes:
        clustering: One of the run's own, such as nli or embed_qa, or another: exact, embed:threshold=.9,
            nli:model=...,rule=strict; a name that ends in _qa puts the question in front of each
            answer.
        alpha: Weight of the clean-noisy gap in VASE, 1 where the run has no other.
        detectors: Which ones, such as se,kle,msp, in place of the usual ones; all are those that are not experimental
            (`hedge detectors RUN --all` lists them).
    """

    clustering: str | None = None
    alpha: float | None = None
    detectors: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The chosen detectors; empty where none are chosen.

        Raises:
            ConfigError: There is no such detector; names the nearest one.
        """
        from hedge_tasks.detectors.registry import named

        return () if self.detectors is None else named(self.detectors)

    def each(self, run: Run) -> list[ClusteringChoice]:
        """Return the chosen clustering, or all of the run's where none is chosen."""
        own = () if self.clustering is not None else run.settings.get("filters") or ()
        return [replace(self, clustering=name) for name in own] or [self]

    def scorer(self, run: Run | None = None) -> Scorer:
        """Return the scorer that the options describe, else a run's first; of answers that belong to no run `embed`.

        Raises:
            ConfigError: There is no such clustering, or a value makes no sense.
        """
        from hedge_tasks.clustering import BACKENDS
        from hedge_tasks.detectors.scorer import Scorer
        from hedge_tasks.errors import unknown
        from hedge_tasks.io.options import named
        from hedge_tasks.io.sources import model_option
        from hedge_tasks.runs.scorers import model_options, scorer_of, with_kept_outputs

        own = run.settings.get("filters") or {} if run else {}
        if run and (self.clustering is None or self.clustering in own):
            return self._completed(scorer_of(run, self.clustering))
        options = named("--clustering", self.clustering or "embed")
        name = str(options.pop("name"))
        backend = name.removesuffix("_qa")
        if backend not in BACKENDS.names():
            raise unknown("clustering", name, {*own, *BACKENDS.names()})
        options = {**(model_options(run, backend, options) if run else model_option(backend)), **options}
        scorer = self._completed(Scorer.build(name, backend, options, with_question=name.endswith("_qa")))
        return with_kept_outputs(scorer, run) if run else scorer

    def scorers(self, run: Run) -> dict[str, Scorer]:
        """Return the scorer of `scorer`, or all of the run's where none is chosen, by name."""
        return {scorer.name: scorer for scorer in (choice.scorer(run) for choice in self.each(run))}

    def headline(self, run: Run) -> Headline:
        """Return a run's headline by the chosen clustering, or by all of the run's where none is chosen."""
        from hedge_tasks.measures.headline import headline

        scorers = {} if self.clustering is None else replace(self, detectors=None).scorers(run)
        scores = {name: scorer.score(run.answer_sets) for name, scorer in scorers.items()}
        return headline(run, scores or None, scorers=scorers)

    def _completed(self, scorer: Scorer) -> Scorer:
        changes: dict[str, Any] = {"alpha": self.alpha, "detectors": self.names}
        return replace(scorer, **{name: value for name, value in changes.items() if value not in (None, ())})


@dataclass(frozen=True)
class LabelFileChoice:
    """A file of answers that people labelled.

    Attributes:
        columns: Where the file has others, such as label=verdict,reference=ground_truth,answer=said.
        images: Folder of the pictures that the column `image` names.
    """

    columns: str = ""
    images: Path | None = None

    def settings(self) -> dict[str, Any]:
        """Return options of `hedge_tasks.judging.check.read_checked`."""
        from hedge_tasks.io.options import pairs

        return {"columns": pairs("--columns", self.columns, read=str), "images": self.images}


@dataclass(frozen=True)
class ColumnChoice:
    """Columns of a table of questions.

    Attributes:
        question: Column with the questions.
        answer: Column with right answers; again for more references; none.
        group: Column that questions share that belong together, such as a patient's; none.
        id: Column with ids; none numbers the rows.
        question_type: Column with the kind of question; none.
    """

    question: str | None = None
    answer: tuple[str, ...] = ()
    group: str | None = None
    id: str | None = None
    question_type: str | None = None

    def settings(self, reply: Iterable[str] = (), **others: Any) -> ColumnSettings:
        """Return these columns, and others of `ColumnSettings`."""
        from hedge_tasks.data.roles import ColumnSettings

        own = {name: value for name, value in vars(self).items() if name != "answer"}
        return ColumnSettings(answers=tuple(self.answer), reply=tuple(dict.fromkeys(reply)), **own, **others)


@dataclass(frozen=True)
class ReplyChoice:
    """Columns of a file of answers.

    Attributes:
        reply: Column with the model's replies, the baseline first; again for draws.
        label: Column with labels, 1 = hallucinated.
    """

    reply: tuple[str, ...] = ()
    label: str | None = None


@dataclass(frozen=True)
class PolicyChoice:
    """A policy, and the model that is asked under it.

    Attributes:
        policy: Of `hedge calibrate`.
        model: Adapter, such as hedge_hf, hedge_vllm or hedge_openai.
        model_args: Of the adapter, as for lmms-eval: base_url=...; the model is the policy's where it is left out.
        trust_policy: Load the models, functions and packages that the policy names, also where no installed task uses
            them.
    """

    policy: Path = field(kw_only=True)
    model: str = "hedge_openai"
    model_args: str = ""
    trust_policy: bool = False

    def guard(self, **options: Any) -> Guard:
        """Return the model under the policy; see `hedge_tasks.guard.Guard.load`."""
        from hedge_tasks.guard import Guard

        return Guard.load(self.policy, model=self.model, model_args=self.model_args, trust=self.trust_policy, **options)


def label_counts(labels: Iterable[int | None]) -> dict[str, int]:
    """Return how many answers have which label."""
    counts = Counter(labels)
    return {name: counts[label] for label, name in ((1, "hallucinated"), (0, "supported"), (None, "unlabelled"))}


def keeping_judge(spec: Any, path: Path | None, *, images: bool = False) -> Judge:
    """Return a judge that can be asked, and keeps its replies.

    Args:
        spec: As a user names it; or what `HEDGE_JUDGE` says, where nobody does.
        path: File of a run, or of answers that people labelled: the replies are kept beside it; None keeps none.
        images: Whether there are pictures to judge by.
    """
    from hedge_tasks.judging import check_judge, configured_judge, judge_from, keep_labels
    from hedge_tasks.judging.config import LABELS
    from hedge_tasks.runs.run_files import FOLDER

    # The command line is nearer to the user than the environment.
    judge = judge_from(spec) if spec else configured_judge("rule")
    check_judge(judge, cases_have_images=images)
    if path is not None:
        keep_labels(judge, (path.parents[1] if path.parent.name == FOLDER else path.parent) / LABELS)
    return judge
