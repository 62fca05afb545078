"""SHALE's audit by people: a blinded sample of the set's pictures, controls, and what labels say of the set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import hypergeom

from hedge_tasks.cli import main
from hedge_tasks.errors import DataError
from hedge_tasks.making.shale.audit import FITS, MINOR, MISFIT, read_audit

MAKE = ["make", "shale", "--aspect", "color", "--aspect", "count", "--scenario", "pfx", "--per-aspect", "8"]
MAKE += ["--floor", "1"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("audit") / "set"
    assert main([*MAKE, "--out", str(out), "--audit", "10"]) == 0
    return out


def queue(made: Path) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads((made / "audit" / "queue.json").read_text())["items"]
    return items


def labels(folder: Path, name: str, made: Path, said: Callable[[dict[str, Any]], str]) -> Path:
    path = folder / f"{name}.csv"
    path.write_text("code,label\n" + "".join(f"{item['code']},{said(item)}\n" for item in queue(made)))
    return path


@pytest.mark.slow
def test_pages_show_a_sample_with_controls_and_do_not_tell_which(made: Path) -> None:
    items = queue(made)
    assert sum(item["id"] is not None for item in items) == 10
    assert sum(item["id"] is None for item in items) == 2
    assert len({item["id"] for item in items if item["id"]}) == 10
    pages = [(made / "audit" / f"page-{rater}.html").read_text() for rater in (1, 2)]
    for page in pages:
        assert page.count("<article") == 12
        assert page.count("data:image/jpeg") == 12
        assert not [item["id"] for item in items if item["id"] and item["id"] in page]
    assert pages[0] != pages[1]  # each in an order of its own


@pytest.mark.slow
def test_shares_are_counted_and_their_intervals_are_exact(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = [item["id"] for item in queue(made) if item["id"]]
    size = json.loads((made / "audit" / "queue.json").read_text())["size"]

    def first(item: dict[str, Any]) -> str:
        return MISFIT if item["id"] in (None, *real[:2]) else MINOR if item["id"] in real[2:5] else FITS

    def second(item: dict[str, Any]) -> str:
        return MISFIT if item["id"] in (None, real[0]) else MINOR if item["id"] in real[1:5] else FITS

    files = [labels(tmp_path, name, made, said) for name, said in (("a", first), ("b", second))]
    found = read_audit(made / "audit", files)
    assert found.looked_at == 10
    assert found.misfits == {real[0]}
    assert found.misfit.value == pytest.approx(0.15)  # one, and half of the one that they dispute
    assert found.minor.value == pytest.approx(0.5)  # five of ten, on which both agree
    # Brute force: every share of the set under which five or fewer, or five or more, of ten are no rarer than 2.5 %.
    fits = [k for k in range(size + 1) if min(hypergeom.cdf(5, size, k, 10), hypergeom.sf(4, size, k, 10)) >= 0.025]
    assert found.minor.interval == pytest.approx((fits[0] / size, fits[-1] / size))
    assert found.controls == {"a.csv": (2, 2), "b.csv": (2, 2)}
    command = [*MAKE, "--out", str(made), *(part for file in files for part in ("--audit-labels", str(file)))]
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["audit"]["misfits"] == [real[0]]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "fewer than 5 % minor issues" in shown
    assert "a.csv: 2 of 2 controls seen" in shown


@pytest.mark.slow
def test_labels_that_say_nothing_are_refused(made: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.csv"
    for text, complaint in (
        ("code,label\nx,fits\n", "no picture of this audit"),
        (f"code,label\n{queue(made)[0]['code']},fit\n", "did you mean 'fits'"),
        (f"code,label\n{queue(made)[0]['code']},fits\n{queue(made)[0]['code']},fits\n", "labelled twice"),
    ):
        wrong.write_text(text)
        with pytest.raises(DataError, match=complaint):
            read_audit(made / "audit", [wrong])
    with pytest.raises(DataError, match="there is no queue"):
        read_audit(tmp_path, [wrong])


@pytest.mark.slow
def test_who_sees_no_control_is_not_heard(made: Path, tmp_path: Path) -> None:
    blind = labels(tmp_path, "blind", made, lambda item: FITS)
    found = json.loads((made / "audit" / "queue.json").read_text())
    items = [{**item, "id": None, "label": 1} for item in found["items"]]  # all twelve were controls
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "queue.json").write_text(json.dumps({**found, "items": items}))
    with pytest.raises(DataError, match="0 of 12 hidden controls are seen"):
        read_audit(tmp_path / "audit", [blind])
