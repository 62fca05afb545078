"""`Number`, formats and `Table`: the one way in which results are printed."""

from __future__ import annotations

import csv
import io

import pytest
from at_border import at_border
from hypothesis import given
from hypothesis import strategies as st

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import options
from hedge_tasks.io.outside import parse_json, shown
from hedge_tasks.numbers import Column, Format, Number, Table

NUMBER = Number(0.75, stderr=0.1, interval=(0.55, 0.9), n=20, n_positive=6, method="by hand")
GONE = Number.undefined("no labels", n=3)


@given(st.floats(-1e6, 1e6), st.integers(0, 6), st.booleans())
def test_a_format_writes_the_value_to_its_digits(value: float, digits: int, percent: bool) -> None:
    text = Format(digits, percent=percent)(value)
    assert float(text.removesuffix(" %")) / (100 if percent else 1) == pytest.approx(value, abs=0.51 * 10**-digits)
    assert Format(digits, signed=True)(value)[0] in "+-"


TABLE = Table(
    [
        Column("name"),
        Column("auroc", "ROC-AUC", interval=True),
        Column("stderr", "s.e.", show="stderr", of="auroc"),
        Column("n", show="n", of="auroc"),
        Column("p", show="p"),
    ],
    [{"name": "se", "auroc": NUMBER, "p": 0.04}, {"name": "vase", "auroc": GONE}],
    "Title",
    ["a note"],
)


def test_text_has_title_rows_notes_and_reasons() -> None:
    lines = TABLE.to_text().splitlines()
    assert lines[0] == "Title"
    assert [line.split() for line in lines[1:4]] == [
        ["name", "ROC-AUC", "s.e.", "n", "p"],
        ["se", "0.750", "[0.550,", "0.900]", "0.100", "20", "0.0400"],
        ["vase", "undefined", "-", "3", "-"],
    ]
    assert lines[4:] == ["a note", "undefined: vase: no labels"]
    assert str(TABLE) == TABLE.to_text()
    numbers = Table([Column("a long heading"), Column("another")], [{"a long heading": 1.5, "another": 2.5}])
    assert not numbers.to_text().splitlines()[1].startswith(" "), "the first column is flush left, whatever is in it"


def test_csv_and_data_frame_have_one_flat_row_each() -> None:
    [first, second] = csv.DictReader(io.StringIO(TABLE.to_csv()))
    assert (first["auroc"], first["auroc_low"], first["auroc_n_rarer"], first["p"]) == ("0.75", "0.55", "6", "0.04")
    assert (second["auroc"], second["auroc_reason"], second["p"]) == ("", "no labels", "")
    frame = TABLE.to_pandas()
    assert list(frame["name"]) == ["se", "vase"]
    assert frame["auroc_stderr"][0] == 0.1


def test_html_escapes() -> None:
    html = Table([Column("a", "<b>")], [{"a": "<script>"}], "x & y").to_html()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<th>&lt;b&gt;</th>" in html
    assert "<caption>x &amp; y</caption>" in html


def test_what_is_missing_of_a_number_is_said_by_its_row_or_its_column() -> None:
    less = NUMBER.less(0.25)
    assert (less.value, less.interval, less.n) == (0.5, pytest.approx((0.3, 0.65)), 20)
    assert [GONE.less(0.5).reason, NUMBER.less(None).reason] == ["no labels", "there is nothing to compare with"]
    assert [GONE.less(None).n, (NUMBER.low, GONE.low, GONE.high)] == [3, (0.55, None, None)]

    def reasons(*rows: dict[str, object]) -> list[str]:
        return Table([Column("name"), Column("a"), Column("b", "B")], list(rows)).reasons()  # type: ignore[arg-type]

    assert reasons({"name": "x", "b": GONE}, {"name": "y", "b": NUMBER}) == ["undefined: x: no labels"]
    assert reasons({"name": "x", "a": NUMBER, "b": GONE}, {"b": NUMBER}) == ["undefined: x, B: no labels"]
    assert reasons({"b": GONE}, {"b": NUMBER}) == ["undefined: B: no labels"]
    assert reasons({"name": GONE, "b": NUMBER}, {"name": "y"}) == ["undefined: name: no labels"]


def test_settings_from_outside_are_of_their_kind() -> None:
    for base in ("http://h:1/v1", "https://h"):
        assert {options.address("k", f"{base}{end}") for end in ("", "/", "/chat/completions")} == {base}
    for wrong in (
        "ftp://h",
        "http://",
        "http://h:0",
        "http://h:x",
        "http://u@h",
        "http://h?k=1",
        "http://h/completions",
    ):
        with pytest.raises(ConfigError, match="k: "):
            options.address("k", wrong)
    at_border(lambda n: shown("x" * int(n)) == repr("x" * int(n)), 58, "110")
    at_border(lambda n: shown(10 ** int(n)).startswith("1"), 40, "100")
    at_border(lambda n: parse_json("9" * int(n), "x") > 0 if n <= 40 else False, 40, "110")
    with pytest.raises(DataError):
        parse_json("9" * 41, "x")
