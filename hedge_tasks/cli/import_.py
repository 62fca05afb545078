"""`hedge import`: runs out of what other harnesses have written."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.io.commands import Parser, add_out, command, show

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
    add_out(options, "folder of the run files", default=Path("hedge_runs"))
    options.add_argument("--task", help="name of the data set (default: that of the file)")
    options.add_argument("--model", help="name of the model, where the file does not tell (default: the file's name)")
    options.add_argument("--n", type=int, default=10, help="samples per question (default: 10)")
    options.add_argument("--temperature", type=float, default=1.0, help="of the draws (default: 1)")
    options.add_argument("--baseline-temperature", type=float, default=0.1, help="of the baseline (default: 0.1)")
    options.add_argument("--seed", type=int, default=0, help="another one gives independent draws (default: 0)")


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
        raise ConfigError(f"--model: {arguments.file} names its models itself: {', '.join(sorted(models))[:300]}")
    task = arguments.task or arguments.file.stem
    written = []
    for model, questions in models.items():
        name = model or arguments.model or arguments.file.stem
        run = run_from_options(task, name, questions, sampling, arguments.file.name)
        path = save_run(run, arguments.out)
        groups = count_groups([answers.group for answers in run.answer_sets])
        wrong = sum(answers.label or 0 for answers in run.answer_sets)
        written.append(
            {"model": name, "file": str(path), "questions": len(questions), "groups": groups, "wrong": wrong}
        )
    lines = [
        f"{w['model']}: {w['questions']} questions of {w['groups']} groups, {w['wrong']} wrong, {w['file']}"
        for w in written
    ]
    show(arguments, {"task": task, "n": sampling.n, "runs": written}, "\n".join(lines))
    return 0
