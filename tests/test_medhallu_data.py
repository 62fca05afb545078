"""`hedge data medhallu`: MeSH groups out of NLM's tree numbers and PubMedQA's terms."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from datasets import Dataset

from hedge_tasks.cli import main
from hedge_tasks.errors import DataError
from hedge_tasks.suites.medhallu.mesh import group_questions, read_terms, read_trees

TREES = "Asthma;C08.127.108\nAsthma;C20.543.480\nAdult;M01.060.116\r\nHumans;B01.050.150\nDrug Therapy;E02.319\n"
QUESTIONS = {
    "Does it help?": ["Adult", "Humans", "Asthma", "Drug Therapy"],  # M 1, B 1, C 2, E 1
    "Is it safe?": ["Drug Therapy", "adult"],  # as often: the first
    "Who knows?": ["Female", "Renamed Since"],
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "mtrees2025.bin").write_text(TREES, "utf-8")
    rows = [{"question": f"{q} ", "context": {"meshes": terms}} for q, terms in QUESTIONS.items()]
    Dataset.from_list(rows).to_parquet(tmp_path / "pqa.parquet")
    return tmp_path / "mtrees2025.bin", tmp_path / "pqa.parquet"


def test_a_question_belongs_to_its_most_frequent_group(files: tuple[Path, Path]) -> None:
    trees, terms = read_trees(files[0]), read_terms(files[1])
    assert (trees, terms) == ({"asthma": "CC", "adult": "M", "humans": "B", "drug therapy": "E"}, QUESTIONS)
    assert group_questions(terms, trees, "ABCDEM") == {"Does it help?": "C", "Is it safe?": "E"}
    assert group_questions({"q": ["Adult", "Humans", "Drug Therapy"]}, trees, "CDEFN") == {"q": "E"}


@pytest.mark.parametrize("content", [b"<a><b></a>", b"\x1f\x8b broken", b"", b"Asthma\n"])
def test_a_file_of_another_form_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mtrees.bin").write_bytes(content)
    for read in (read_trees, read_terms):
        with pytest.raises(DataError, match=r"mtrees\.bin"):
            read(tmp_path / "mtrees.bin")


def test_the_command_writes_the_groups_and_says_how_they_are_shared_out(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (str(files[1]), "--trees", str(files[0]), "--out", str(tmp_path / "groups.json"))
    assert main(["data", "medhallu", *options]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"groups +2\nquestions +3", printed)
    [diseases] = [line.split() for line in printed.splitlines() if line.startswith("C ")]
    assert diseases == ["C", "Diseases", "0.500", "0.259"]
    assert json.loads((tmp_path / "groups.json").read_text("utf-8")) == {"Does it help?": "C", "Is it safe?": "E"}
