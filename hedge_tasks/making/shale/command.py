"""`hedge make shale`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_labels, add_out, command, show
from hedge_tasks.making.commands import (
    MODEL,
    add_floor,
    add_models,
    add_run,
    estimate_tokens,
    show_share,
    stage_template,
    summary_text,
    upload_lines,
)
from hedge_tasks.numbers import Table

if TYPE_CHECKING:
    from hedge_tasks.making.elements import Element
    from hedge_tasks.making.knowledge import Fact
    from hedge_tasks.making.shale.making import MadeSet, ShaleMaking

_CHARACTERS_FILLED_IN = 400
"""Characters that fill a prompt of SHALE, roughly."""


def add(commands: Parser) -> None:
    text = "make pictures and questions that induce hallucinations (SHALE, section 3.2)"
    parser = command(commands, "shale", run_shale, text)
    add_out(parser, "folder that HEDGE_DATA_DIR will name", required=True)
    parser.add_argument(
        "--per-aspect", type=int, default=1, metavar="N", help="scenes of each of the 18 aspects (default: 1)"
    )
    parser.add_argument("--aspect", action="append", metavar="NAME", help="only this aspect (repeat for several)")
    parser.add_argument("--scenario", action="append", metavar="NAME", help="only this and clean (repeat for several)")
    parser.add_argument(
        "--generator",
        default="drawn",
        metavar="NAME",
        help="drawn (default; drawn:size=256), diffusers:MODEL,steps=28, or openai:MODEL,url=...",
    )
    parser.add_argument(
        "--checker",
        action="append",
        default=[],
        metavar="NAME",
        help="vqascore:adapter=...,pretrained=...; clip:MODEL; detector:MODEL; ocr (repeat for several)",
    )
    parser.add_argument("--alpha", type=float, default=0.85, help="least mean of the scores (default: 0.85)")
    parser.add_argument("--beta", type=float, default=0.5, help="largest variance of the scores (default: 0.5)")
    add_labels(parser, "of the pictures in review.html (CSV)")
    parser.add_argument(
        "--elements",
        action="append",
        default=[],
        metavar="SOURCE",
        help="wordnet, or a list of labels: a text or JSON file, or a classifier of transformers (repeat for several)",
    )
    parser.add_argument(
        "--knowledge",
        action="append",
        default=[],
        type=Path,
        metavar="DUMP",
        help="facts: DBpedia's N-Triples or Wikidata's JSON, also .gz and .bz2 (repeat for several files)",
    )
    parser.add_argument("--writer", metavar=MODEL, help="proposes the scenes, in place of the element pools")
    text = "says whether the writer's wrong answers contradict its records (repeat for several)"
    add_models(parser, "--verifier", text)
    add_models(parser, "--blind", "is asked without pictures (repeat for several)")
    parser.add_argument("--blind-items", default="drop", metavar="WAY", help="drop (default) or mark what they answer")
    parser.add_argument(
        "--encoder",
        action="append",
        metavar="MODEL",
        help="vision encoder that ADV attacks; repeat to attack several at once (default: the embedded model's)",
    )
    add_floor(parser, "a scenario")
    parser.add_argument(
        "--audit", type=int, metavar="N", help="write pages on which two people look at N pictures (the paper: 500)"
    )
    parser.add_argument(
        "--audit-labels",
        type=Path,
        action="append",
        default=[],
        metavar="LABELS",
        help="labels of the pages in audit/ (repeat for several people)",
    )
    parser.add_argument("--released", type=Path, metavar="DIR", help="also write it as SHALE is handed out")
    parser.add_argument("--batch", type=int, default=8, metavar="N", help="pictures at a time (default: 8)")
    licence = "of the set, for its card (drawn: apache-2.0)"
    add_run(parser, "scene", seed="another seed is another set", licence=licence)


@dataclass(frozen=True)
class _Planned:
    """Stands for a model in a dry run."""

    name: str


def run_shale(arguments: argparse.Namespace) -> int:
    from hedge_tasks.making.production import worker_of
    from hedge_tasks.making.shale.released import write_released
    from hedge_tasks.making.shale.report import as_text, distributions, warnings_of, write

    worker = worker_of(arguments.worker)
    making = _making(arguments)
    if arguments.dry_run:
        return _estimate(arguments, making)
    made_set = making.run(arguments.out, worker=worker)
    facts = {**made_set.report(), "items": len(made_set.items), "short": dict(made_set.short)}
    code = PROBLEMS_FOUND if made_set.unfinished else 0
    if worker is not None:
        show_share(arguments, facts, _summary(made_set))
        return code
    licence = arguments.licence or ("apache-2.0" if making.draws else None)  # drawings and pools are ours
    built = write(arguments.out, making, made_set, licence=licence, bound=arguments.floor)
    files = [str(file.relative_to(arguments.out)) for file in built.files.values()]
    tables = distributions(made_set)
    lines = [_summary(made_set), as_text(tables), *(f"Warning: {warning}" for warning in warnings_of(made_set))]
    if arguments.released is not None:
        write_released(made_set, arguments.released)
        lines.append(f"Query files and images are in {arguments.released}")
    audit = _audit(arguments, made_set, lines)
    lines += [*upload_lines(arguments, files), f"Now set HEDGE_DATA_DIR={arguments.out}"]
    as_json = {title: [list(header), *map(list, rows)] for title, (header, rows) in tables.items()}
    show(
        arguments,
        {**facts, **audit, "tables": as_json, "files": files, "warnings": warnings_of(made_set)},
        "\n\n".join(lines),
    )
    return code


def _audit(arguments: argparse.Namespace, made_set: MadeSet, lines: list[str]) -> dict[str, object]:
    """Write the pages of an audit, or read what came back."""
    from hedge_tasks.io import options
    from hedge_tasks.making.shale.audit import FOLDER, audit_table, read_audit, write_audit

    if arguments.audit_labels:
        audit = read_audit(arguments.out / FOLDER, arguments.audit_labels)
        lines.append(str(audit_table(audit)))
        return {"audit": audit.to_dict()}
    if arguments.audit is not None:
        n = options.count("--audit", arguments.audit, at_least=1)
        queue, *pages = write_audit(arguments.out / FOLDER, made_set, n=n, seed=arguments.seed)
        lines.append(f"Pages of the audit: {', '.join(map(str, pages))}; keep {queue} away from who labels")
    return {}


def _making(arguments: argparse.Namespace) -> ShaleMaking:
    from hedge_tasks.making.pictures.checkers import CHECKERS, checker_from
    from hedge_tasks.making.pictures.generators import GENERATORS, generator_from
    from hedge_tasks.making.pictures.specs import parse_spec
    from hedge_tasks.making.shale.drawn import drawn_generator
    from hedge_tasks.making.shale.making import ShaleMaking
    from hedge_tasks.making.shale.pictures import TINY_ENCODER, PictureFilter
    from hedge_tasks.models.by_text import model_from
    from hedge_tasks.suites.shale.items import ASPECTS, SCENARIOS

    name, settings = parse_spec("generator", arguments.generator)
    if arguments.dry_run:  # no model is loaded for it
        for spec in arguments.checker:
            CHECKERS.get(parse_spec("checker", spec)[0])
        checker_from = generator_from = model_from = _Planned  # type: ignore[assignment]
        if name != "drawn":
            GENERATORS.get(name)
    return ShaleMaking(
        generator=drawn_generator(settings) if name == "drawn" else generator_from(arguments.generator),
        checkers=[checker_from(spec) for spec in arguments.checker],
        per_aspect=arguments.per_aspect,
        aspects=arguments.aspect or ASPECTS,
        scenarios=arguments.scenario or SCENARIOS,
        seed=arguments.seed,
        elements=_elements(arguments),
        facts=_facts(arguments),
        writer=model_from(arguments.writer) if arguments.writer else None,
        verifiers=[model_from(spec) for spec in arguments.verifier],
        blind=[model_from(spec) for spec in arguments.blind],
        blind_items=arguments.blind_items,
        encoders=arguments.encoder or (TINY_ENCODER,),
        picture_filter=PictureFilter(arguments.alpha, arguments.beta, labels=_labels(arguments.labels)),
        batch=arguments.batch,
        concurrency=arguments.concurrency,
    )


def _elements(arguments: argparse.Namespace) -> list[Element] | None:
    from hedge_tasks.making.elements import label_elements, merged, with_kin, wordnet_elements
    from hedge_tasks.making.shale.records import own_elements, wordnet_roots

    if not arguments.elements:
        return None
    roots = wordnet_roots()
    pools = [
        wordnet_elements(roots) if source == "wordnet" else label_elements(source, roots)
        for source in arguments.elements
    ]
    own = with_kin(own_elements(), roots) if "wordnet" in arguments.elements else own_elements()
    return merged(own, *pools)


def _facts(arguments: argparse.Namespace) -> list[Fact]:
    from hedge_tasks.making.knowledge import cached_facts
    from hedge_tasks.making.shale.records import relations_of

    if not arguments.knowledge:
        return []
    triples = any({".nt", ".ttl"} & {suffix.lower() for suffix in path.suffixes} for path in arguments.knowledge)
    relations = relations_of("dbpedia" if triples else "wikidata")
    return cached_facts(arguments.knowledge, relations, arguments.out / "knowledge")


def _labels(path: str | None) -> dict[str, int]:
    from hedge_tasks.judging.label_files import by_id, label_rows

    if path is None:
        return {}
    labels = by_id(label_rows(Path(path)), "id", "label", None)
    return {name: label.label for name, label in labels.items() if label.label is not None}


def _estimate(arguments: argparse.Namespace, making: ShaleMaking) -> int:
    estimate = making.estimate()
    rows, tokens = [], {}
    for what, counts in estimate.items():
        rows += [[what, name, f"{least:,}", f"{most:,}"] for name, (least, most) in counts.items()]
    for stage, requests in estimate["requests"].items():
        template = stage_template("hedge_tasks.making.shale", stage)
        prompt_tokens, completion = estimate_tokens(template, _CHARACTERS_FILLED_IN, requests)
        tokens[stage] = [*prompt_tokens, completion]
        rows.append(["prompt tokens", stage, *(f"{count:,}" for count in prompt_tokens)])
        rows.append(["completion tokens", stage, "0", f"{completion:,}"])
    total = sum(most for _, most in estimate["items"].values())
    rows.append(["items", "all", "0", f"{total:,}"])
    note = (
        "Tokens at four characters each. To: every picture is accepted; every question is answered blindly so far that "
        "all its forms are asked; replies are as long as they may be."
    )
    facts = {**estimate, "tokens": tokens, "most_items": total}
    show(arguments, facts, Table.of(["", "of", "from", "to"], rows, notes=[note]))
    return 0


def _summary(made_set: MadeSet) -> str:
    report = made_set.report()
    contents = f"{len(made_set.items)} items"
    return summary_text(report, made_set.account, "scenes", contents=contents, steps=report["steps"])
