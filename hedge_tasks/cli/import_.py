"""`hedge import`: make runs of what other harnesses have written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ColumnChoice, ReplyChoice, label_counts

if TYPE_CHECKING:
    from hedge_tasks.runs.run_files import Run


@dataclass(frozen=True)
class NewRunChoice:
    """A run that is made of a file.

    Attributes:
        task: Name of the data set; that of the file if not given.
        model_name: Name of the model, where the file does not tell; of options that of the file if not given.
        out: Folder of the run files.
    """

    task: str | None = None
    model_name: str | None = None
    out: Path = Path("hedge_runs")

    def saved(self, run: Run) -> dict[str, Any]:
        """Write a run, and return its file and labels."""
        from hedge_tasks.runs.run_files import save_run

        return {"file": save_run(run, self.out), **label_counts(answers.label for answers in run.answer_sets)}


def answers(
    files: list[Path],
    columns: ColumnChoice,
    replies: ReplyChoice,
    new: NewRunChoice,
    *,
    questions: Path | None = None,
    judge: str = "rule",
) -> dict[str, Any]:
    """Make a run out of answers that another tool has sampled.

    FILE is one of these; several files of the same questions (seeds, repeats) are joined by their ids:
      what `hedge score` reads      its help has the shapes; columns of replies are named by --reply
      .eval, .json of inspect_ai    epochs and choices are draws; a single scorer's C and I are labels
      statistics of lm-polygraph    greedy_texts, sample_texts; its .man is a pickle, and is told how to become a table
      data frame of uqlm            to_df() as CSV, JSON or parquet: prompt, response, sampled_responses
      samples of lmms-eval          --log_samples; repeats are draws
      .xlsx, .tsv of VLMEvalKit     prediction; `hit` is the label
      batch of vLLM or OpenAI       the file of replies; --questions names the file of requests
    Several files: labels are the first one's, whose baselines stay. --judge labels by references where no document has
    a label; where some have one the others stay unlabelled. `hedge rescore` clusters the run by nli or embed.

    Args:
        files: Files of one tool, for one model.
        questions: Requests of a batch.
        judge: Who labels files without labels.
    """
    from hedge_tasks.data.answer_files import read_answers
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.from_answers import run_from_answers

    read = read_answers(files, questions, columns.settings(**vars(replies)))
    if new.model_name and read.model and new.model_name != read.model:
        raise ConfigError(f"--model-name: {files[0]} names its model itself: {read.model}")
    source = ", ".join(file.name for file in files)
    settings: dict[str, Any] = {"given_by": read.judge, "source": source}
    model = read.model or new.model_name or ""
    run = run_from_answers(new.task or files[0].stem, model, read.answer_sets, judge, **settings)
    draws = sum(len(a.clean) for a in run.answer_sets)
    facts = {"form": read.form, "documents": len(run.answer_sets), "draws": draws}
    return {"task": run.task, "model": run.model, **facts, **new.saved(run), "notes": list(read.notes)}


def options(
    file: Path,
    new: NewRunChoice,
    *,
    declining: str = "",
    draws: int = 10,
    temperature: float = 1.0,
    seed: int = 0,
) -> dict[str, Any]:
    """Make a run a model, out of weights of multiple-choice options.

    FILE is a table, a question a row (docs/options.md has an example): {"id", "answer", "logits", "question"?,
    "options"?, "question_type"?, "group"?, "model"?}; weights by label, or a list. Questions of one group, such as
    those about one picture, vary together.
    Draws are simulated from the softmax of the weights over the options, which makes their log-probabilities exact.

    Args:
        file: Table with the weights of all options.
        declining: Options that say "I don't know" or the like, such as E,F, where the file has no texts of options.
        draws: Samples per question.
        temperature: Of the draws.
        seed: Another one gives independent draws.
    """
    from hedge_tasks.data.groups import count_groups
    from hedge_tasks.data.option_files import read_options
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.from_options import run_from_options
    from hedge_tasks.sampling.option_draws import OptionSampling

    sampling = OptionSampling(n=draws, temperature=temperature, seed=seed)
    models = read_options(file)
    if new.model_name is not None and set(models) != {""}:
        raise ConfigError(f"--model-name: {file} names its models itself: {', '.join(sorted(models))[:300]}")
    labels = [label.strip() for label in declining.split(",") if label.strip()]
    runs = []
    for model, asked_about in models.items():
        name = model or new.model_name or file.stem
        run = run_from_options(new.task or file.stem, name, asked_about, sampling, file.name, labels)
        groups = count_groups([answers.group for answers in run.answer_sets])
        runs.append({"model": name, "questions": len(asked_about), "groups": groups, **new.saved(run)})
    return {"task": new.task or file.stem, "n": sampling.n, "runs": runs}


COMMANDS = {"answers": answers, "options": options}
