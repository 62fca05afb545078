"""The documentation site: built once, strictly, with its notebooks run; what stands on it, and that it stands alone."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
from conftest import REPOSITORY

from hedge_tasks.clustering import BACKENDS
from hedge_tasks.detectors import get, names
from hedge_tasks.judging.base import JUDGES
from hedge_tasks.models import MODELS
from hedge_tasks.perturb.base import KINDS

pytestmark = [pytest.mark.slow, pytest.mark.docs]

SITE = REPOSITORY / "docs" / "site"


def extra_or_skip() -> None:
    for package in ("sphinx", "furo", "myst_nb"):
        pytest.importorskip(package, reason="the site needs the extra [docs]: pip install 'hedge-tasks[docs]'")


def module(name: str) -> SimpleNamespace:
    extra_or_skip()
    return SimpleNamespace(**runpy.run_path(str(SITE / f"{name}.py")))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages. A warning of Sphinx or an error in a notebook ends the build."""
    extra_or_skip()
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, str(SITE / "build.py"), str(out)], capture_output=True, text=True, cwd=out)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return out / "html"


class Page(HTMLParser):
    """What a page loads, links to, and can be linked to at; and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.text: list[str] = []
        self.formulas = 0
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        of = {key: value or "" for key, value in attributes}
        self.ids.add(of.get("id", ""))
        self.formulas += tag == "math"
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
        elif tag != "a":
            self.loads += [of[key] for key in ("src", "href", "data", "srcset", "poster") if key in of]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_everything_that_is_chosen_by_name_has_a_page(pages: dict[Path, Page], site: Path) -> None:
    for folder, known in (
        ("detectors", names()),
        ("judges", JUDGES.names()),
        ("clusterings", BACKENDS.names()),
        ("perturbations", KINDS.names()),
        ("adapters", list(MODELS)),
    ):
        assert {site / folder / f"{name}.html" for name in known} <= pages.keys(), folder
    suites = [path.parent.name for path in (REPOSITORY / "tasks").glob("*/README.md")]
    assert len(suites) >= 8
    for suite in suites:
        text = "".join(pages[site / "tasks" / suite / "README.html"].text)
        assert "All tasks of this folder" in text
        assert suite in text


def test_a_detectors_page_has_formula_price_needs_and_source(pages: dict[Path, Page], site: Path) -> None:
    for name in names():
        page = pages[site / "detectors" / f"{name}.html"]
        text = " ".join("".join(page.text).split()).replace("\u2019", "'")  # the site has typographic apostrophes
        detector = get(name)
        assert page.formulas >= detector.explanation.count(".. math::"), name
        for part in (detector.source, f"hedge score answers.jsonl --detectors {name}", "Price in draws"):
            assert " ".join(part.split()) in text, name
        assert not re.search(r"\\(frac|sum|ln|mathrm|operatorname)", text), f"{name}: a formula that is none"
    assert "n clean + m noisy" in "".join(pages[site / "detectors" / "vase.html"].text)
    assert "none beyond the baseline answer" in "".join(pages[site / "detectors" / "msp.html"].text)


def test_nothing_is_loaded_from_outside(pages: dict[Path, Page], site: Path) -> None:
    for path, page in pages.items():
        assert [url for url in page.loads if re.match(r"([a-z]+:)?//", url)] == [], path.name
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text("utf-8")), style.name


def broken(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"([a-z]+:)?//|mailto:", link):
                continue
            place, _, anchor = unquote(link).partition("#")
            target = (path.parent / place).resolve() if place else path
            if not target.exists():
                yield f"{path.relative_to(site)}: {link}"
            elif anchor and target in pages and anchor not in pages[target].ids:
                yield f"{path.relative_to(site)}: {link} has no such place"


def test_every_link_goes_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert list(broken(site, pages)) == []


def test_links_to_files_become_downloads_and_a_broken_one_an_error(tmp_path: Path) -> None:
    with_known_links = module("build").with_known_links
    readme = REPOSITORY / "README.md"
    said = with_known_links("[a](docs/guard.md#x) [b](pyproject.toml) [c](docs) [d](tasks)", readme, tmp_path)
    assert said == "[a](docs/guard.md#x) [b](pyproject.toml) c [d](tasks/README.md)"
    assert (tmp_path / "pyproject.toml").is_file()
    notebook = with_known_links("[e](docs/notebooks/own_answers.md)", readme, tmp_path)
    assert notebook == "[e](docs/notebooks/own_answers.ipynb)"
    fenced = "```\n[x](nowhere.md)\n```\n"
    assert with_known_links(fenced, readme, tmp_path) == fenced
    with pytest.raises(FileNotFoundError, match=r"README.md: nowhere.md is not there"):
        with_known_links("[x](nowhere.md)", readme, tmp_path)


NOTEBOOK = """---
file_format: mystnb
kernelspec: {display_name: Python 3, name: python3}
---

# Title

```{code-cell} ipython3
for i in range(3):
    print(i, flush=True)
```

```{code-cell} ipython3
:tags: [remove-cell]
assert i == %d
```
"""


def test_a_notebook_is_run_and_one_that_fails_ends_the_build(tmp_path: Path) -> None:
    notebooks = module("notebooks")
    assert notebooks.is_notebook(NOTEBOOK)
    assert not notebooks.is_notebook("# Title\n")
    page, download = tmp_path / "docs" / "a.ipynb", tmp_path / "downloads" / "a.ipynb"
    notebooks.put(NOTEBOOK % 2, page, download, dict(os.environ))
    title, loop, check = json.loads(page.read_text("utf-8"))["cells"]
    assert "{download}`a.ipynb <../downloads/a.ipynb>`" in "".join(title["source"])
    [output] = loop["outputs"]
    assert "".join(output["text"]) == "0\n1\n2\n", "in one piece"
    assert check["metadata"]["tags"] == ["remove-cell"]
    readers = json.loads(download.read_text("utf-8"))["cells"]
    assert ["assert" in "".join(cell["source"]) for cell in readers] == [False, False]
    assert readers[1]["outputs"] == []
    with pytest.raises(notebooks.NotebookFailed, match=r"b: .*(\n.*)*assert i == 3"):
        notebooks.put(NOTEBOOK % 3, tmp_path / "b.ipynb", download, dict(os.environ))


def test_the_notebook_for_colab_has_the_cells_that_are_run_here() -> None:
    notebooks = module("notebooks")
    page, colab = (REPOSITORY / "docs" / "notebooks" / f"{notebooks.FOR_COLAB}.{ending}" for ending in ("md", "ipynb"))
    title, install, *cells = notebooks.nbformat.read(colab, 4).cells
    assert "pip install" in install.source
    shown = notebooks.for_readers(notebooks.as_notebook(page.read_text("utf-8"))).cells
    assert [(cell.cell_type, cell.source) for cell in (title, *cells)] == [(c.cell_type, c.source) for c in shown]


def test_there_is_a_notebook_for_each_door_and_it_was_run(pages: dict[Path, Page], site: Path) -> None:
    for name, shows in (("own_answers", "radflag_auroc_interval"), ("safe_to_show", "Trust: ")):
        page = pages[site / "docs" / "notebooks" / f"{name}.html"]
        text = "".join(page.text)
        assert shows in text, name
        assert "What the text says, checked" not in text, name
        assert any(link.endswith(f"{name}.ipynb") for link in page.links), name


def test_numbers_of_the_advice_are_those_of_the_table() -> None:
    with_measured = module("generated").with_measured
    table = "## Leaderboard at 10 draws\n| 1 | `msp`, `nll` | 10 | 0.800 | i | 0.700 | i |  |  |\n"
    assert with_measured("<auroc nll>, <b>", table) == "0.800 and 0.700, <b>"
    with pytest.raises(KeyError):
        with_measured("<auroc se>", table)
    with pytest.raises(ValueError, match="no table"):
        with_measured("", "")
