"""A store of many questions: bytes, and what it costs to open all of it or a slice.

    python benchmarks/large_store.py [--questions 10000 100000] [--n 10] [--jobs 50] [--folder .]

As many jobs as `--jobs` says write a slice of the documents each, as the jobs of an array do. Then, in a process of its
own each: the whole store is opened, and the slice of one job. Prints CPU seconds and the largest memory, less what a
process has that opens nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from scale import document, fill, plan_of

from hedge_tasks.sampling.store import AnswerStore


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="where the stores are made (default: the temporary folder)")
    parser.add_argument(
        "--most-whole", type=int, default=100_000, help="questions up to which the whole store is opened"
    )
    parser.add_argument("--open", type=int, nargs=2, metavar=("BEGIN", "END"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.open is not None:
        print(json.dumps(opened(arguments.folder, *arguments.open)))
        return
    print(f"a process without a store: {measured(Path('/nonexistent'), 0, 0)['MB']} MB")
    for questions in arguments.questions:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            for row in rows(Path(folder), questions, arguments):
                print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)


def rows(folder: Path, questions: int, arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    size = questions // arguments.jobs
    for job in range(arguments.jobs):
        fill(folder, range(job * size, (job + 1) * size), arguments.n)
    middle = arguments.jobs // 2 * size
    about = {"questions": questions, "on disk MB": round(sum(f.stat().st_size for f in folder.iterdir()) / 1e6, 1)}
    for what, begin, end in (
        ("a slice", middle, middle + size),
        ("10 documents", middle, middle + 10),
        ("everything", 0, 0),
    ):
        if what != "everything" or questions <= arguments.most_whole:
            yield {**about, "opened": what, **measured(folder, begin, end)}


def measured(folder: Path, begin: int, end: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--folder", str(folder), "--open", str(begin), str(end)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # type: ignore[no-any-return]


def opened(folder: Path, begin: int, end: int) -> dict[str, float]:
    """Open the documents from begin to end, or all where both are 0."""
    definition = plan_of(1)[1]
    start = time.process_time()
    store = AnswerStore(folder, lazy=end > 0)
    store.load(document(i, definition, 1).key for i in range(begin, end))
    seconds = time.process_time() - start
    # Of this process alone: `ru_maxrss` begins with what the one that started it had.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) / 1e3
    return {"draws": len(store), "CPU s": round(seconds, 3), "MB": round(peak)}


if __name__ == "__main__":
    main()
