"""Notebooks: kept as Markdown, run as the site is built, and offered as .ipynb to whoever wants to run them.

`python docs/site/notebooks.py` writes the one for Colab, which installs the package first, beside its page.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import nbformat
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

SECONDS = 600
"""Longest time for one cell, on a machine that has other things to do."""

CHECK = "remove-cell"
"""Tag of cells that check what the text says; they are run and not shown."""

FOR_COLAB = "safe_to_show"

INSTALL = "%pip install --quiet 'hedge-tasks[offline] @ git+REPOSITORY@v0.1.0'  # REPOSITORY: where you found this"


class NotebookFailed(Exception):
    """A cell raised an error; the message shows which, and how."""


def is_notebook(text: str) -> bool:
    return bool(is_myst_markdown_notebook(text))


def as_notebook(text: str) -> nbformat.NotebookNode:
    """Markdown with code cells as a notebook without outputs.

    Raises:
        NotebookFailed: it has no code cell, or a cell without an id would be no valid notebook.
    """
    notebook = read_myst_markdown_notebook(text, code_directive="{code-cell}", raw_directive="{raw-cell}")
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        raise NotebookFailed("a notebook without code")
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # by default they are random, and every build another one
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    nbformat.validate(notebook)
    return notebook


def for_readers(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Without the cells that check the text."""
    shown = notebook.copy()
    shown.cells = [cell for cell in notebook.cells if CHECK not in cell.metadata.get("tags", [])]
    return shown


def for_colab(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """For readers who start on a machine without the package."""
    shown = for_readers(notebook)
    shown.cells.insert(1, nbformat.v4.new_code_cell(INSTALL, id="install"))
    return shown


def run(notebook: nbformat.NotebookNode, environment: Mapping[str, str], name: str) -> None:
    """Run all cells in an empty folder, in place.

    Raises:
        NotebookFailed: a cell raised an error.
    """
    with TemporaryDirectory() as folder, patch.dict(os.environ, environment, clear=True):
        # What a command prints comes in pieces; together they are what it printed.
        client = NotebookClient(
            notebook, timeout=SECONDS, coalesce_streams=True, resources={"metadata": {"path": folder}}
        )
        try:
            client.execute()
        except CellExecutionError as error:
            raise NotebookFailed(f"{name}: {error}") from error


def put(text: str, path: Path, download: Path, environment: Mapping[str, str] | None) -> None:
    """Write a notebook's page, and the notebook to be downloaded.

    Args:
        text: of the Markdown file.
        path: of the page, `.ipynb`.
        download: of the notebook without outputs.
        environment: to run it in; None: do not run it.

    Raises:
        NotebookFailed: a cell raised an error.
    """
    notebook = as_notebook(text)
    write(for_readers(notebook), download)
    if environment is not None:
        run(notebook, environment, path.stem)
    offer = f"This page is a notebook: {{download}}`{download.name} <{os.path.relpath(download, path.parent)}>`."
    title, *rest = notebook.cells[0].source.split("\n")
    notebook.cells[0].source = "\n".join([title, "", offer, *rest])
    write(notebook, path)


def write(notebook: nbformat.NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    page = Path(__file__).resolve().parents[1] / "notebooks" / f"{FOR_COLAB}.md"
    write(for_colab(as_notebook(page.read_text("utf-8"))), page.with_suffix(".ipynb"))
