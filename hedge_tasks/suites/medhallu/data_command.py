"""`hedge data medhallu`: MeSH groups of its questions, and the reference code's own prompts, out of your own copies."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hedge_tasks.io.commands import Parser, add_out, command, show
from hedge_tasks.numbers import Table

_SHOWN = 5


def add(commands: Parser) -> None:
    parser = command(
        commands, "medhallu", _make, "make MedHallu's MeSH groups or its official prompts from your own copies"
    )
    parser.add_argument(
        "--descriptors", type=Path, metavar="DESC.xml", help="NLM's desc2025.xml (.gz) or mtrees2025.bin"
    )
    parser.add_argument(
        "--pubmedqa",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="PubMedQA's ori_pqal.json, ori_pqaa.json or parquet files",
    )
    parser.add_argument(
        "--among", default="", metavar="CDEFN", help="letters of the trees that count (default: all sixteen)"
    )
    parser.add_argument(
        "--official-code", type=Path, metavar="FILE.py", help="the reference code's detection_vllm_notsurecase.py"
    )
    add_out(parser, "file of the groups (.json), or folder of the prompts and their tasks", required=True)


def _make(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError

    mesh = (arguments.descriptors, arguments.pubmedqa)
    if arguments.official_code is not None and not any(mesh):
        return _prompts(arguments)
    if all(mesh) and arguments.official_code is None:
        return _groups(arguments)
    raise ConfigError("give --descriptors and --pubmedqa for the MeSH groups, or --official-code for the prompts")


def _groups(arguments: argparse.Namespace) -> int:
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.suites.medhallu.mesh import (
        PAPER_SHARES,
        TREES,
        group_questions,
        letter_of,
        read_terms,
        read_trees,
    )

    among = [letter_of(letter) for letter in arguments.among] or list(TREES)
    terms = {question: names for file in arguments.pubmedqa for question, names in read_terms(file).items()}
    groups = group_questions(terms, read_trees(arguments.descriptors), among)
    write_whole(arguments.out, json.dumps(groups.letters, ensure_ascii=False, indent=0, sort_keys=True) + "\n")
    shares = groups.shares()
    rows = [[f"{letter} {TREES[letter]}", share, PAPER_SHARES.get(letter)] for letter, share in shares.items()]
    title = f"{len(groups.letters)} of {len(terms)} questions have a group"
    lines = [str(Table.of(["group", "share", "paper"], rows, title=title))]
    if groups.unknown_terms:
        listed = ", ".join(list(groups.unknown_terms)[:_SHOWN])
        lines.append(f"{len(groups.unknown_terms)} terms are no descriptors of this file, such as {listed}")
    lines.append(f"Now include _hedge_medhallu_mesh_yaml in a task and set dataset_kwargs: {{mesh: {arguments.out}}}")
    facts = {
        "groups": len(groups.letters),
        "questions": len(terms),
        "shares": shares,
        "without": list(groups.without),
        "unknown_terms": dict(groups.unknown_terms),
    }
    show(arguments, facts, "\n".join(lines))
    return 0


def _prompts(arguments: argparse.Namespace) -> int:
    from hedge_tasks.evaluation import own_folder
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.suites.medhallu.official import (
        LICENCE,
        VARIANTS,
        official_prompts,
        prompt_file,
        task_files,
    )

    prompts = official_prompts(arguments.official_code)
    folder = arguments.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "prompts.json"
    write_whole(file, json.dumps(prompt_file(prompts), ensure_ascii=False, indent=2) + "\n")
    tasks = task_files(prompts, file, own_folder("hedge_medhallu"))
    for name, text in tasks.items():
        write_whole(folder / name, text)
    names = [name.removesuffix(".yaml") for name in tasks]
    missing = [variant for variant in VARIANTS if variant not in prompts]
    lines = [f"{file}: {', '.join(prompts)} ({LICENCE})"]
    lines += [f"not in this code: {', '.join(missing)}"] if missing else []
    lines.append(f"Now run lmms-eval --include_path {folder} --tasks {','.join(names)}")
    show(arguments, {"prompts": prompts, "tasks": names, "missing": missing, "licence": LICENCE}, "\n".join(lines))
    return 0
