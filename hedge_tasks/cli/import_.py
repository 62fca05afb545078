"""`hedge import`: runs out of what other harnesses have written."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.io.commands import Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.runs.run_files import Run

_SHAPES = """\
FILE is one of these (docs/options.md has examples):
  a table, a question a row     {"id", "answer", "logits" or "logprobs" or "probabilities", "question"?, "options"?,
                                "question_type"?, "group"?, "image"?, "model"?}; weights by label, or a list
  NPZ                           for each model an array of logits (questions, options), with --questions TABLE: id,
                                answer, and if known question, question_type, group (or patient_id, study_id, ...),
                                image, and the options' texts in columns A, B, ...
Questions of one group, one picture or one patient, and rotations of one question (CircularEval) are one group.
Draws are simulated from the softmax of the weights over the options, which makes their log-probabilities exact.
"""

_TOOLS = """\
FILE is one of these; several files of the same questions (seeds, repeats) are joined by their ids:
  what `hedge score` reads      its help has the shapes; columns of replies are named by --reply
  .eval, .json of inspect_ai    epochs and choices are draws; a single scorer's C and I are labels
  .man of lm-polygraph          greedy_texts and sample_texts; data alone is loaded, never code
  data frame of uqlm            to_df() as CSV, JSON or parquet: prompt, response, sampled_responses
  samples of lmms-eval          --log_samples; repeats are draws
  .xlsx, .tsv of VLMEvalKit     prediction; `hit` is the label
  batch of vLLM or OpenAI       the file of replies; --questions names the file of requests
Who judges what has a reference and no label is --judge. `hedge rescore` clusters the run by nli or embed.
"""


_REPEATED = {
    "reply": "the model's replies, the baseline first, again for draws",
    "answer": "right answers, again for more references",
}
_SINGLE = {"question": "the questions", "label": "labels: 1 = hallucinated", "id": "ids"}


def add(commands: Parser) -> None:
    parts = commands.add_command("import", "make runs of what other harnesses have written")
    options = command(parts, "options", _options, "a run a model, out of weights of multiple-choice options")
    options.formatter_class, options.epilog = argparse.RawDescriptionHelpFormatter, _SHAPES
    options.add_argument("file", type=Path, metavar="FILE", help="table or NPZ file with the weights of all options")
    options.add_argument("--questions", type=Path, metavar="FILE", help="the questions of an NPZ file")
    options.add_argument(
        "--group", metavar="COLUMN", help="column that alone says which questions belong together; none: they do not"
    )
    _add_result(options, "the file's name")
    options.add_argument(
        "--declining",
        default="",
        metavar="LABELS",
        help='options that say "I don\'t know" or the like, such as E,F, where the file has no texts of options',
    )
    options.add_argument("--draws", type=int, default=10, help="samples per question (default: 10)")
    options.add_argument("--temperature", type=float, default=1.0, help="of the draws (default: 1)")
    options.add_argument("--baseline-temperature", type=float, default=0.1, help="of the baseline (default: 0.1)")
    options.add_argument("--seed", type=int, default=0, help="another one gives independent draws (default: 0)")
    answers = command(parts, "answers", _answers, "a run out of answers that another tool has sampled")
    answers.formatter_class, answers.epilog = argparse.RawDescriptionHelpFormatter, _TOOLS
    answers.add_argument("files", type=Path, nargs="+", metavar="FILE", help="files of one tool, for one model")
    answers.add_argument("--questions", type=Path, metavar="FILE", help="requests of a batch")
    for name, what in _REPEATED.items():
        answers.add_argument(f"--{name}", action="append", default=[], metavar="COLUMN", help=f"column with {what}")
    for name, what in _SINGLE.items():
        answers.add_argument(f"--{name}", metavar="COLUMN", help=f"column with {what}")
    answers.add_argument("--judge", default="rule", metavar="JUDGE", help="default: %(default)s")
    _add_result(answers, "unknown")


def _add_result(parser: Parser, model: str) -> None:
    """Add the options that name the run and say where it is written.

    Args:
        model: Default of `--model`, in words.
    """
    parser.add_argument("--task", help="name of the data set (default: that of the file)")
    parser.add_argument("--model-name", help=f"name of the model, where the file does not tell (default: {model})")
    add_out(parser, "folder of the run files", default=Path("hedge_runs"))


def _answers(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.answer_files import read_answers
    from hedge_tasks.data.roles import ColumnSettings
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.from_answers import run_from_answers
    from hedge_tasks.runs.run_files import save_run

    columns = ColumnSettings(
        question=arguments.question,
        answers=tuple(arguments.answer),
        id=arguments.id,
        label=arguments.label,
        reply=tuple(dict.fromkeys(arguments.reply)),  # a column that is named twice is one
    )
    read = read_answers(arguments.files, arguments.questions, columns)
    if arguments.model_name and read.model and arguments.model_name != read.model:
        raise ConfigError(f"--model-name: {arguments.files[0]} names its model itself: {read.model}")
    task, model = arguments.task or arguments.files[0].stem, read.model or arguments.model_name or ""
    source = ", ".join(file.name for file in arguments.files)
    run = run_from_answers(task, model, read.answer_sets, arguments.judge, given_by=read.judge, source=source)
    path = save_run(run, arguments.out)
    counts = {
        "documents": len(run.answer_sets),
        "draws": sum(len(a.clean) for a in run.answer_sets),
        **_label_counts(run),
    }
    facts = ", ".join(f"{n} {what}" for what, n in counts.items())
    lines = [f"{read.form}: {facts}, {path}", *(f"  {note}" for note in read.notes)]
    value = {"form": read.form, "task": task, "model": model, "file": str(path), **counts, "notes": list(read.notes)}
    show(arguments, value, "\n".join(lines))
    return 0


def _label_counts(run: Run) -> dict[str, int]:
    labels = [answers.label for answers in run.answer_sets]
    return {"wrong": labels.count(1), "right": labels.count(0), "unlabelled": labels.count(None)}


def _options(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.groups import count_groups
    from hedge_tasks.data.option_files import read_options
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.from_options import run_from_options
    from hedge_tasks.runs.run_files import save_run
    from hedge_tasks.sampling.option_draws import OptionSampling

    sampling = OptionSampling(
        n=arguments.draws,
        temperature=arguments.temperature,
        baseline_temperature=arguments.baseline_temperature,
        seed=arguments.seed,
    )
    models = read_options(arguments.file, arguments.questions, arguments.group)
    if arguments.model_name is not None and set(models) != {""}:
        raise ConfigError(f"--model: {arguments.file} names its models itself: {', '.join(sorted(models))[:300]}")
    task = arguments.task or arguments.file.stem
    declining = [label.strip() for label in arguments.declining.split(",") if label.strip()]
    runs = []
    for model, questions in models.items():
        name = model or arguments.model_name or arguments.file.stem
        run = run_from_options(task, name, questions, sampling, arguments.file.name, declining)
        path = save_run(run, arguments.out)
        groups = count_groups([answers.group for answers in run.answer_sets])
        labels = _label_counts(run)
        counts = {"wrong": labels["wrong"], "declined": labels["unlabelled"]}
        runs.append({"model": name, "file": str(path), "questions": len(questions), "groups": groups, **counts})
    lines = [
        f"{r['model']}: {r['questions']} questions of {r['groups']} groups, {r['wrong']} wrong, {r['declined']} "
        f"declined, {r['file']}"
        for r in runs
    ]
    show(arguments, {"task": task, "n": sampling.n, "runs": runs}, "\n".join(lines))
    return 0
