"""Build the documentation: `python docs/site/build.py OUT [--no-notebooks]`.

The Markdown of the repository keeps its place (links between files work here as they do there), the pages of
`docs/site/pages` come to the root, generated pages beside them, and Sphinx makes HTML of it. A warning is an error.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

SITE = Path(__file__).resolve().parent
ROOT = SITE.parents[1]

TEXTS = (
    "README.md",
    "CONTRIBUTING.md",
    "EXTENDING.md",
    "CHANGELOG.md",
    "docs/*.md",
    "docs/notebooks/*.md",
    "tasks/**/*.md",
    "models/**/*.md",
    "hedge_tasks/**/*.md",
    "benchmarks/RESULTS.md",
)
"""What of the repository's Markdown is a page."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def assemble(source: Path, environment: Mapping[str, str] | None) -> None:
    """Put together what Sphinx reads, in an empty folder.

    Args:
        environment: to run notebooks in; None: they are not run.
    """
    import notebooks
    from generated import all_pages, measured_table, tasks_of_suites, with_measured

    if source.exists():
        shutil.rmtree(source)
    shutil.copytree(SITE / "pages", source)
    shutil.copytree(SITE / "_static", source / "_static")
    suites = tasks_of_suites()
    for path in texts():
        text = with_known_links(path.read_text("utf-8"), path, source)
        if path.parent.parent == ROOT / "tasks":
            text = text.rstrip("\n") + suites.get(path.parent.name, "")
        place = source / path.relative_to(ROOT)
        if notebooks.is_notebook(text):
            download = source / "downloads" / f"{path.stem}.ipynb"
            notebooks.put(text, place.with_suffix(".ipynb"), download, environment)
        else:
            write(place, text)
    table = (ROOT / "docs" / "detectors.md").read_text("utf-8")
    advice = source / "which_detector.md"
    write(advice, with_measured(advice.read_text("utf-8"), table))
    for name, text in all_pages(measured_table(table)).items():
        write(source / f"{name}.rst", text)


def texts() -> list[Path]:
    """The Markdown files that are pages."""
    return sorted({path for pattern in TEXTS for path in ROOT.glob(pattern) if "hedge_tasks/models" not in str(path)})


def with_known_links(text: str, path: Path, source: Path) -> str:
    """Links to files that are no page become downloads; those to folders become their README, or plain text.

    Raises:
        FileNotFoundError: a link goes nowhere.
    """
    pages = set(texts())

    def link(match: re.Match[str]) -> str:
        image, words, target = match.groups()
        place = target.partition("#")[0]
        if not place or re.match(r"[a-z]+:", target):
            return match.group(0)
        found = (path.parent / place).resolve()
        if not found.exists():
            raise FileNotFoundError(f"{path.relative_to(ROOT)}: {target} is not there")
        if image:
            (source / found.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found, source / found.relative_to(ROOT))
            return match.group(0)
        if found in pages:
            is_notebook = found.parent == ROOT / "docs" / "notebooks"
            return match.group(0).replace(".md", ".ipynb") if is_notebook else match.group(0)
        if found.is_dir():
            return f"[{words}]({place.rstrip('/')}/README.md)" if found / "README.md" in pages else words
        copy = source / found.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, copy)
        return f"[{words}]({place})"

    return "".join(part if in_code else _LINK.sub(link, part) for in_code, part in split_at_fences(text))


def split_at_fences(text: str) -> Iterator[tuple[bool, str]]:
    """The parts of a Markdown text, and whether they are a block of code."""
    for i, part in enumerate(re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.DOTALL | re.MULTILINE)):
        yield i % 2 == 1, part


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def environment_of(out: Path) -> dict[str, str]:
    """For notebooks: our commands, nobody's settings, no network and no traces."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HEDGE_")}
    return {
        **kept,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "HEDGE_CACHE": str((out / "cache").resolve()),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder; the site is in OUT/html")
    parser.add_argument("--no-notebooks", action="store_true", help="show notebooks without running them")
    arguments = parser.parse_args()
    source = arguments.out / "source"
    assemble(source, None if arguments.no_notebooks else environment_of(arguments.out))
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    command += ["--conf-dir", str(SITE), "--builder", "html", "--doctree-dir", str(arguments.out / "doctrees")]
    return subprocess.run([*command, str(source), str(arguments.out / "html")]).returncode


if __name__ == "__main__":
    sys.exit(main())
