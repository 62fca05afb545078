"""How large a report of many questions is, and how fast it opens.

    python benchmarks/report_pages.py [--questions 500 5000] [--run RESULTS]

The questions have a photograph-like picture each (600 x 600, own noise, which compresses badly) and 21 answers of
some thirty words; opening is timed in headless Chromium (from the start of navigation to the first frame after all
scripts have run), the median of five, each in a browser of its own; the CPU time of the page's own thread is said
beside it, which on a busy machine is nearer to what a reader would wait for. Then, the median of 30: a step to the
next question by its key, a search in all answers, and frames while the list is scrolled by two of its heights a frame
from its start to its end; the longest frame is said as well.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from finished_runs import finished_run

from hedge_tasks.report import ReportOptions, build_report
from hedge_tasks.report.results import ResultFile
from hedge_tasks.runs.run_files import Run, load_run

_DISTINCT = 200
WORDS = ["the", "scan", "shows", "a", "small", "left", "pleural", "effusion", "without", "midline", "shift", "lesion"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, nargs="*", default=[500, 5000])
    parser.add_argument("--run", type=Path, help="a finished run, whose questions are repeated to these numbers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for n in arguments.questions:
            measure_report(Path(folder) / str(n), n, arguments.run)


def measure_report(folder: Path, n: int, finished: Path | None) -> None:
    folder.mkdir()
    results = []
    if finished is None:
        os.environ["HEDGE_DATA_DIR"] = str(folder)
        write_pictures(folder / "bench__pictures", n)
        config = {"dataset_path": "bench/pictures", "test_split": "test"}
        results.append(ResultFile(Path("r"), configs={"hedge_x": config}))
        run = run_with_pictures(n)
    else:
        run = repeated(load_run(finished), n)
    started = time.process_time()
    page = build_report([run], results, ReportOptions(curves=False))
    seconds = time.process_time() - started
    path = folder / "report.html"
    path.write_text(page, "utf-8")
    size = f"{page.count('data:image')} pictures, {len(page.encode()) / 1e6:.1f} MB"
    say(f"report of {n} questions: {size}, made in {seconds:.1f} s of CPU time")
    if shutil.which("chromium") is None:
        say("no chromium here: not opened")
        return
    opened = [measured(path, look=False) for _ in range(5)]
    found = measured(path, look=True)
    for what in ("open", "cpu"):
        values = sorted(one[what] / 1000 for one in opened)
        word = "opens in" if what == "open" else "CPU time of the page's thread until then"
        say(f"{word} {statistics.median(values):.2f} s ({', '.join(f'{value:.2f}' for value in values)})")
    say("; ".join(f"{name}: {found[name]:.0f} ms" for name in ("step", "search", "frame", "longest frame")))
    say(f"rows in the page after scrolling: {found['rows']:.0f}")


def run_with_pictures(n: int) -> Run:
    run = finished_run(n, samples=10)
    columns = {"id": "id", "question": "question", "images": ["image"]}
    sets = []
    for i, answers in enumerate(run.answer_sets):
        chance = random.Random(i)
        texts = [" ".join(chance.choice(WORDS) for _ in range(30)) for _ in range(4)]
        longer = [
            tuple(replace(a, text=chance.choice(texts)) for a in group) for group in (answers.clean, answers.noisy)
        ]
        sets.append(replace(answers, clean=longer[0], noisy=longer[1]))
    return replace(run, answer_sets=tuple(sets), settings={**run.settings, "documents": columns}, trusted=True)


def repeated(run: Run, n: int) -> Run:
    """The questions of a run again and again, each time under other names."""
    sets, rows = [], {}
    for i in range(n):
        first = run.answer_sets[i % len(run.answer_sets)]
        sets.append(replace(first, id=f"{first.id}-{i}"))
        if first.id in run.evidence.rows:
            rows[sets[-1].id] = run.evidence.rows[first.id]
    verdicts = {a.id: run.verdicts.get(a.id.rpartition("-")[0], {}) for a in sets}
    return replace(run, answer_sets=tuple(sets), verdicts=verdicts, evidence=replace(run.evidence, rows=rows))


def write_pictures(folder: Path, n: int) -> None:
    from datasets import Dataset, Features, Image, Value
    from PIL import Image as Pictures

    folder.mkdir()
    files = []
    for i in range(min(n, _DISTINCT)):
        rng = np.random.default_rng(i)
        coarse = Pictures.fromarray(rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)).resize((600, 600))
        noisy = np.clip(np.asarray(coarse) + rng.normal(0, 12, (600, 600, 3)), 0, 255).astype(np.uint8)
        written = io.BytesIO()
        Pictures.fromarray(noisy).save(written, "JPEG", quality=90)
        files.append(written.getvalue())
    # What stands behind a JPEG's end is not looked at, and makes another file of it.
    images = [{"bytes": files[i % len(files)] + str(i).encode(), "path": None} for i in range(n)]
    rows = [{"id": f"q{i}", "question": f"question {i}?", "image": image} for i, image in enumerate(images)]
    features = Features({"id": Value("string"), "question": Value("string"), "image": Image()})
    Dataset.from_list(rows, features=features).to_parquet(str(folder / "test.parquet"))


_OPENED = "() => new Promise(done => requestAnimationFrame(() => done(performance.now())))"

_LOOKED = """async () => {
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  const explorer = Explorer.all[0], rows = explorer.rows;
  const timed = async (times, act) => {
    const found = [];
    for (let i = 0; i < times; i += 1) {
      const start = performance.now();
      act(i);
      rows.getBoundingClientRect();  // with the layout, which the next frame would do
      found.push(performance.now() - start);
      await frame();
    }
    return median(found);
  };
  const key = () => new KeyboardEvent("keydown", { key: "j", bubbles: true });
  const step = await timed(30, () => document.body.dispatchEvent(key()));
  const words = ["lesion", "left", "midline"];
  const search = await timed(30, (i) => { explorer.search.value = words[i % 3]; explorer.update(); });
  explorer.search.value = "";
  explorer.update();
  const frames = [];
  rows.scrollTop = 0;
  let last = await frame();
  for (let top = 0; top < rows.scrollHeight && frames.length < 120; top += 2 * rows.clientHeight) {
    rows.scrollTop = top;
    const now = await frame();
    frames.push(now - last);
    last = now;
  }
  const shown = rows.querySelectorAll(".card").length;
  return { step, search, "longest frame": Math.max(...frames), frame: median(frames), rows: shown };
}"""


def measured(path: Path, *, look: bool) -> dict[str, float]:
    """Milliseconds until the page is there; with `look` also of what a reader does on it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.as_uri())
        found = {"open": float(page.evaluate(_OPENED))}
        metrics = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
        found["cpu"] = 1000 * metrics["TaskDuration"]
        if look:
            found |= page.evaluate(_LOOKED)
        browser.close()
    return found


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
