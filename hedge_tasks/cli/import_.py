"""`hedge import`: runs out of what other harnesses have written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import key_and_value
from hedge_tasks.io.commands import Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.runs.run_files import Run

_SHAPES = """\
FILE is one of these (docs/options.md has examples):
  JSON lines, a question each   {"id", "answer", "logits" or "logprobs" or "probabilities", "question"?, "options"?,
                                "question_type"?, "group"?, "image"?, "model"?}; weights by label, or a list
  CSV, a question a row         the same: columns id, answer, logit:A, logit:B, ... (or logprob:A, probability:A), and
                                any of question, option:A, option:B, ..., question_type, group, image, model
  JSON lines of                 --log_samples of a multiple-choice task: log-likelihoods of the options
  lm-evaluation-harness
  NPZ                           for each model an array of logits (questions, options), with --questions FILE in JSON
                                lines, CSV or Parquet: id, answer, and if known question, question_type, group (or
                                patient_id, study_id, ...), image, and the options' texts in columns A, B, ...
Questions of one group, one picture or one patient, and rotations of one question (CircularEval) are one group.
Draws are simulated from the softmax of the weights over the options, which makes their log-probabilities exact.
"""

_TOOLS = """\
FILE is one of these; several files of the same questions (seeds, repeats) are joined by their ids:
  JSON lines, CSV, parquet      {"id", "question"?, "reference"?, "generations": [...], "greedy"?, "label"?}; each a
                                text, or {"text", "logprobs"?: [...], "finish_reason"?}
  .eval, .json of inspect_ai    epochs and choices are draws; a single scorer's C and I are labels
  .man of lm-polygraph          greedy_texts and sample_texts; data alone is loaded, never code
  data frame of uqlm            to_df() as CSV, JSON or parquet: prompt, response, sampled_responses
  samples of lmms-eval          --log_samples; repeats are draws
  .xlsx, .tsv of VLMEvalKit     prediction; `hit` is the label
  batch of vLLM or OpenAI       the file of replies; --questions names the file of requests
Who judges what has a reference and no label is --judge. `hedge rescore` clusters the run by nli or embed.
"""

_DUMPS = """\
Lines are an id, white space and an answer. The id of a draw begins with that of a baseline answer; what follows says
what was done to the question, and the number of the draw (FESTA's dumps look like this):
  --baseline       val_Spatial_Reasoning_111 B
  --truth          val_Spatial_Reasoning_111 (A)
  FILE             val_Spatial_Reasoning_111_sample0 B                       a clean draw
                   val_Spatial_Reasoning_111_blur1_rephrased2_sample0 A      a noisy one
Answers are of a closed set: equal ones are one meaning, others contradict each other.
"""

_MOST_SHOWN = 8


def add(commands: Parser) -> None:
    parts = commands.add_command("import", "make runs of what other harnesses have written")
    options = command(parts, "options", _options, "a run a model, out of weights of multiple-choice options")
    options.formatter_class, options.epilog = argparse.RawDescriptionHelpFormatter, _SHAPES
    options.add_argument(
        "file", type=Path, metavar="FILE", help="JSONL, CSV or NPZ file with the weights of all options"
    )
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
    options.add_argument(
        "--draws", dest="n", metavar="N", type=int, default=10, help="samples per question (default: 10)"
    )
    options.add_argument("--temperature", type=float, default=1.0, help="of the draws (default: 1)")
    options.add_argument("--baseline-temperature", type=float, default=0.1, help="of the baseline (default: 0.1)")
    options.add_argument("--seed", type=int, default=0, help="another one gives independent draws (default: 0)")
    answers = command(parts, "answers", _answers, "a run out of answers that another tool has sampled")
    answers.formatter_class, answers.epilog = argparse.RawDescriptionHelpFormatter, _TOOLS
    answers.add_argument("files", type=Path, nargs="+", metavar="FILE", help="files of one tool, for one model")
    answers.add_argument("--questions", type=Path, metavar="FILE", help="requests of a batch")
    answers.add_argument("--judge", default="rule", metavar="JUDGE", help="default: %(default)s")
    _add_result(answers, "unknown")

    draws = command(parts, "draws", _draws, "a run out of single draws of closed answers, clean or noisy")
    draws.formatter_class, draws.epilog = argparse.RawDescriptionHelpFormatter, _DUMPS
    draws.add_argument("files", type=Path, nargs="+", metavar="FILE", help="draws, a line each: id and answer")
    draws.add_argument(
        "--baseline", type=Path, metavar="FILE", required=True, help="answers that are judged: id and answer"
    )
    draws.add_argument("--truth", type=Path, metavar="FILE", help="right answers: id and answer")
    draws.add_argument(
        "--same", default="", metavar="WORD=ANSWER,...", help="words of --truth for answers, such as 1=A,0=B"
    )
    draws.add_argument("--clean", metavar="REGEX", help="what was done to a question in draws that count as clean")
    draws.add_argument(
        "--draws", dest="n", metavar="N", type=int, help="clean and noisy draws of a question at most, chosen at random"
    )
    draws.add_argument("--seed", type=int, default=0, help="of this choice (default: 0)")
    _add_result(draws, "unknown")


def _add_result(parser: Parser, model: str) -> None:
    """Add the options that name the run and say where it is written.

    Args:
        model: Default of `--model`, in words.
    """
    parser.add_argument("--task", help="name of the data set (default: that of the file)")
    parser.add_argument(
        "--model-name", dest="model", help=f"name of the model, where the file does not tell (default: {model})"
    )
    add_out(parser, "folder of the run files", default=Path("hedge_runs"))


def _draws(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.foreign.draws import read_draws
    from hedge_tasks.io.options import count
    from hedge_tasks.runs.from_answers import run_from_answers
    from hedge_tasks.runs.run_files import save_run

    if arguments.n is not None:
        count("--draws", arguments.n, at_least=1)
    pairs = [pair for pair in arguments.same.split(",") if pair.strip()]
    synonyms = dict(key_and_value("--same", pair, "WORD=ANSWER,...") for pair in pairs)
    read = read_draws(
        arguments.files,
        arguments.baseline,
        arguments.truth,
        clean=arguments.clean,
        same=synonyms,
        most=arguments.n,
        seed=arguments.seed,
    )
    task, model = arguments.task or arguments.files[0].stem, arguments.model or ""
    labelled_by = arguments.truth.name if arguments.truth else ""
    run = run_from_answers(
        task, model, read.answer_sets, "none", given_by=labelled_by, source=_names(arguments.files), closed=True
    )
    path = save_run(run, arguments.out)
    counts = {
        "questions": len(run.answer_sets),
        "clean": sum(len(a.clean) for a in run.answer_sets),
        "noisy": sum(len(a.noisy) for a in run.answer_sets),
        **_label_counts(run),
    }
    variants = [f"{n} {name or 'nothing'}" for name, n in sorted(read.variants.items(), key=lambda pair: -pair[1])]
    listed = ", ".join(variants[:_MOST_SHOWN])
    listed += f" and {len(variants) - _MOST_SHOWN} more" if len(variants) > _MOST_SHOWN else ""
    lines = [", ".join(f"{n} {name}" for name, n in counts.items()) + f", {path}", f"  behind the ids: {listed}"]
    value = {"task": task, "model": model, "file": str(path), **counts, "variants": dict(read.variants)}
    show(arguments, value | {"notes": list(read.notes)}, "\n".join([*lines, *(f"  {note}" for note in read.notes)]))
    return 0


def _answers(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.foreign.answers import read_answers
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.from_answers import run_from_answers
    from hedge_tasks.runs.run_files import save_run

    read = read_answers(arguments.files, arguments.questions)
    if arguments.model and read.model and arguments.model != read.model:
        raise ConfigError(f"--model-name: {arguments.files[0]} names its model itself: {read.model}")
    task, model = arguments.task or arguments.files[0].stem, read.model or arguments.model or ""
    source = _names(arguments.files)
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


def _names(files: Sequence[Path]) -> str:
    return ", ".join(file.name for file in files)


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

    sampling = OptionSampling(arguments.n, arguments.temperature, arguments.baseline_temperature, arguments.seed)
    models = read_options(arguments.file, arguments.questions, arguments.group)
    if arguments.model is not None and set(models) != {""}:
        raise ConfigError(f"--model-name: {arguments.file} names its models itself: {', '.join(sorted(models))[:300]}")
    task = arguments.task or arguments.file.stem
    declining = [label.strip() for label in arguments.declining.split(",") if label.strip()]
    runs = []
    for model, questions in models.items():
        name = model or arguments.model or arguments.file.stem
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
