"""The page of an audit in a browser: keys, memory, and the one file that it gives back."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import HOSTILE, finished_run

from hedge_tasks.judging.designed import read_experts
from hedge_tasks.measures.audit_plan import make_plan, write_plan

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
pytestmark = pytest.mark.slow


def test_keys_label_and_one_file_comes_back(tmp_path: Path, open_page: Any) -> None:
    from PIL import Image

    run = finished_run(60)
    first = replace(run.answer_sets[0], question=HOSTILE["script"])
    run = replace(run, answer_sets=(first, *run.answer_sets[1:]))
    plan = make_plan(run, n=20)
    content = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(content, format="PNG")
    files = write_plan(plan, run, tmp_path, {a.id: [content.getvalue()] for a in run.answer_sets})
    page = open_page(files[1])
    codes = list(plan.codes)
    assert page.locator("article.now").get_attribute("data-id") == codes[0]
    playwright.expect(page.locator("article.now img")).to_have_js_property("naturalWidth", 40)
    # The right answer is hidden until it is called for, and the picture comes nearer.
    right = page.locator("article.now details p")
    playwright.expect(right).to_be_hidden()
    page.keyboard.press("r")
    playwright.expect(right).to_have_text(next(a.reference for a in run.answer_sets if a.id == plan.codes[codes[0]]))
    width = page.locator("article.now img").bounding_box()["width"]
    page.keyboard.press("z")
    assert page.locator("article.now img").bounding_box()["width"] > 2 * width
    chance = random.Random(2)
    meanings = {"1": "hallucinated", "2": "supported", "3": "no answer", "4": "cannot tell"}
    wanted = {}
    page.keyboard.press("j")
    page.keyboard.press("k")
    for code in codes[:-1]:
        key = chance.choice(list(meanings))
        wanted[code] = meanings[key]
        page.keyboard.press(key)
    # A label can be changed, and is still there after the page was closed.
    page.keyboard.press("k")
    page.keyboard.press("3")
    wanted[codes[-2]] = "no answer"
    page.reload()
    assert f"{len(wanted)} labelled" in page.locator("#place").inner_text()
    # Another audit with as many answers does not find them, though files share what the browser keeps.
    page.goto(write_plan(make_plan(run, n=20, seed=1), run, tmp_path / "other", {})[1].as_uri())
    assert ", 0 labelled" in page.locator("#place").inner_text()
    page.go_back()
    with page.expect_download(timeout=10_000) as download:
        page.click("#save")
    assert download.value.suggested_filename == "labels.csv"
    back = tmp_path / "back" / "labels.csv"
    download.value.save_as(back)
    said = read_experts(back)
    assert {each.code: each.meaning for each in said} == wanted
    assert page.evaluate("window.hacked") is None
