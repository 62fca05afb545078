"""Which tasks of lmms-eval can stand behind `hedge:`, and what each needs: every YAML with its functions, no data set.

    python benchmarks/stock_tasks.py [--out tasks.tsv] [--stub]

Read from the configuration and from the source of the scoring and of what it calls. `hedge:` itself decides by scoring
known answers before it samples: "as it is" here can still be refused there (a metric that turns out graded), and "may
ask a language model" includes tasks that ask one only for answers that they cannot read. `--stub` puts stand-ins in
place of packages that are not installed, so that tasks which need them are read as well.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib.abc
import importlib.machinery
import io
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HOME", str(Path.cwd() / "no-hub"))  # some tasks read it as they are loaded
os.environ.setdefault("OPENAI_API_KEY", "none")

from loguru import logger

from hedge_tasks.lmms.stock.numbers import is_graded, is_submission
from hedge_tasks.lmms.stock.source_scan import asks_a_model, sources

# fmt: off
STUBS = (
    "latex2sympy2_extended", "editdistance", "azure", "word2number", "soundfile", "spacy", "rouge", "decord",
    "pdf2image", "Levenshtein", "librosa", "anls", "jieba", "capture_metric", "langdetect", "google.genai",
    "antlr4", "distance", "pycocoevalcap", "nltk", "apted", "zss", "Polygon", "pycocotools", "sacrebleu",
    "rouge_score", "bert_score", "torchaudio", "torchvision", "whisper", "zhconv", "cn2an", "edit_distance",
    "math_verify", "mathruler", "clip", "openpyxl", "jiwer", "cairosvg", "bs4", "easyocr", "paddleocr",
    "terminaltables", "immutabledict", "faiss", "FlagEmbedding", "bleurt_pytorch",
)
# fmt: on

ORDER = (
    "as it is",
    "as it is, without noise (video)",
    "as it is, without noise (sound)",
    "needs a rule (judge=METRIC:at_least=X)",
    "needs judge=METRIC: may ask a language model",
    "cannot be labelled: only a submission (judge=none, HEDGE_JUDGE)",
    "cannot: not generate_until",
    "cannot: a class of its own",
    "not loaded here",
)


class Row(NamedTuple):
    task: str
    outcome: str
    why: str
    metrics: str


class Stub(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last: a package that is not installed, as far as importing it goes."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if any(name == stub or name.startswith(f"{stub}.") for stub in STUBS):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        module = MagicMock(name=spec.name)
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        return module

    def exec_module(self, module: Any) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="a table with every task")
    parser.add_argument("--stub", action="store_true")
    arguments = parser.parse_args()
    if arguments.stub:
        sys.meta_path.append(Stub())
    logger.remove()
    from lmms_eval.tasks import TaskManager

    manager = TaskManager()
    kinds = {name: entry["type"] for name, entry in manager.task_index.items()}
    names = sorted(name for name, kind in kinds.items() if kind in ("task", "python_task"))
    rows = [row_of(manager, name) for name in names if not name.startswith("hedge_")]
    if arguments.out:
        with arguments.out.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t")
            writer.writerow(Row._fields)
            writer.writerows(sorted(rows, key=lambda row: (ORDER.index(row.outcome), row.task)))
    counts = Counter(row.outcome for row in rows)
    print(f"| of {len(rows)} tasks | |\n|---|---:|")
    for outcome in ORDER:
        print(f"| {outcome} | {counts[outcome]} |")


def row_of(manager: Any, name: str) -> Row:
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            config = manager._get_config(name)
    except BaseException as error:  # task code of all kinds, some of which exits
        return Row(name, "not loaded here", f"{type(error).__name__}: {str(error).splitlines()[0:1]}", "")
    metrics = [entry for entry in config.get("metric_list") or () if isinstance(entry, dict)]
    outcome, why = outcome_of(config, metrics)
    return Row(name, outcome, why, ", ".join(map(metric_name, metrics)))


def outcome_of(config: dict[str, Any], metrics: list[dict[str, Any]]) -> tuple[str, str]:
    """What `hedge:` would do with a task, and what tells."""
    if "class" in config:
        return "cannot: a class of its own", ""
    output = config.get("output_type", "generate_until")
    if output != "generate_until":
        return "cannot: not generate_until", output
    own = [entry for entry in metrics if not is_submission(metric_name(entry), entry.get("aggregation"))]
    if not own:
        return "cannot be labelled: only a submission (judge=none, HEDGE_JUDGE)", ""
    if asks := asks_a_model([config.get("process_results"), *(entry.get("aggregation") for entry in metrics)]):
        return "needs judge=METRIC: may ask a language model", asks
    if all(is_graded(metric_name(entry)) or entry.get("higher_is_better") is False for entry in own):
        return "needs a rule (judge=METRIC:at_least=X)", ""
    media = media_of(config)
    return (f"as it is, without noise ({media})" if media else "as it is"), ""


def metric_name(entry: dict[str, Any]) -> str:
    return str(getattr(entry["metric"], "__name__", entry["metric"]))


def media_of(config: dict[str, Any]) -> str:
    """ "video", "sound", or nothing for pictures and text."""
    visual = config.get("doc_to_visual")
    source = "\n".join(sources([visual]).values()) if callable(visual) else str(visual or "")
    is_video = (config.get("dataset_kwargs") or {}).get("video") and re.search(r"mp4|video|\.avi|mkv|webm", source)
    if is_video or re.search(r"\.mp4|video_path|\.mkv", source):
        return "video"
    return "sound" if re.search(r"audio|\.wav", source, re.IGNORECASE) else ""


if __name__ == "__main__":
    main()
