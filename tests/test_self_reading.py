"""Replies of which words leave open what they say: the model itself is asked about these, and about no other."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation import evaluate
from hypothesis import assume, given
from hypothesis import strategies as st

from hedge_tasks.data.answers import READ, Answer
from hedge_tasks.judging import Case, build_judge
from hedge_tasks.judging.fallback import own_reading
from hedge_tasks.models.hedge_scripted import HedgeScripted
from hedge_tasks.replies.reading import ITSELF
from hedge_tasks.runs.relabel import relabel
from hedge_tasks.runs.run_files import Run, load_run

SOFT, UNREAD, REFUSED = "Yes, but it may be an artefact.", "Bright tissue.", "I'm sorry, I can't help."
ODD = "The claim would make any pharmacologist laugh."
CLOSED = {"demo-000": SOFT, "demo-006": UNREAD, "demo-012": "Yes.", "demo-018": REFUSED, "demo-024": "Yes. No."}
MEANT = {SOFT: ("No", 0.9), UNREAD: ("No", 0.9), "Yes. No.": ("Yes", 0.25)}
"""What a scripted model takes its replies for, and how surely."""

REPLIES = {f"demo-{i:03d}": "large" for i in range(25)} | CLOSED
LABELS = {"demo-000": 1, "demo-006": 0}
"""That follow from what the model takes its replies for."""


def run_of(folder: Path, *arguments: str) -> Run:
    folder.mkdir()
    (folder / "replies.json").write_text(json.dumps(REPLIES), "utf-8")
    model = ("--model", "hedge_scripted", "--model_args", f"script={folder / 'replies.json'}", "--limit", "25")
    evaluate(
        folder, *model, "--tasks", "hedge_demo", "--gen_kwargs", ",".join(("n=1,n_noisy=0,probe=false", *arguments))
    )
    return load_run(next(folder.rglob("hedge_runs/run-*.jsonl")), None)


@pytest.mark.slow
@pytest.mark.framework
def test_a_model_is_asked_about_open_replies_alone_and_decides_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def reply_logprobs(self: Any, conversations: Sequence[Any], texts: Sequence[str]) -> list[Answer]:
        turns = [conversation[-2:-1] for conversation in conversations]  # none before the question, or the reply
        replies = [turn[0]["content"][0]["text"] if turn and turn[0]["role"] == "assistant" else "" for turn in turns]
        asked.extend(filter(None, replies))
        meant = [MEANT.get(reply, ("", 0.9)) for reply in replies]
        shares = [p if text == option else (1 - p) / 9 for (option, p), text in zip(meant, texts, strict=True)]
        return [Answer(text, math.log(share), 1) for text, share in zip(texts, shares, strict=True)]

    silent = run_of(tmp_path / "silent")  # its adapter cannot tell
    monkeypatch.setattr(HedgeScripted, "reply_logprobs", reply_logprobs, raising=False)
    off = run_of(tmp_path / "off", "self_reading=false")
    assert not asked
    monkeypatch.setenv("HEDGE_STORE", str(tmp_path / "store"))
    told = run_of(tmp_path / "told")
    wanted = {id: reply for id, reply in REPLIES.items() if reply in MEANT}
    assert set(asked) == set(wanted.values())
    before, without, after = ({a.id: a.label for a in run.answer_sets} for run in (silent, off, told))
    assert (before, after) == (without, before | LABELS)
    assert {before[id] for id in LABELS} <= {None}
    assert "self_reading" not in {**silent.settings["outcome"], **off.settings["outcome"]}
    decided = [[id, MEANT[reply][0]] for id, reply in wanted.items() if MEANT[reply][1] > 0.5]
    counts = {"asked": len(wanted), "decided": len(decided), "changed": len(decided), "labels": decided}
    assert told.settings["outcome"]["self_reading"] == counts
    assert [id for id, verdict in told.verdicts.items() if verdict.get("basis") == ITSELF] == list(LABELS)
    asked.clear()
    again = run_of(tmp_path / "again")  # what is stored is not asked again
    assert (asked, again.verdicts) == ([], told.verdicts)
    # Judged once more, the reading is part of the answers.
    assert {a.id: a.label for a in relabel(told, build_judge("rule"))[0].answer_sets} == after


@given(share=st.floats(0.01, 1.0), total=st.floats(1e-9, 1.0))
def test_a_model_is_heard_where_its_offered_readings_have_half_of_all_probability(share: float, total: float) -> None:
    assume(min(abs(total - 0.5), abs(share - 0.8)) > 1e-9)
    parts = {"Yes": share * total, "No": max(1 - share, 1e-12) * total / 2}
    parts["Maybe"] = parts["No"]
    forced = {f"{READ}{option}": Answer(option, math.log(p), 1) for option, p in parts.items()}
    assert own_reading(forced) == ("Yes" if share > 0.8 and total > 0.5 else None)
    assert own_reading(dict([*forced.items()][:1])) is own_reading({}) is None


@pytest.mark.parametrize(("judge", "reference"), [("medhallu", "1"), ("option", "A"), ("rule", "yes"), ("vope", "yes")])
def test_a_firm_reading_and_published_code_know_nothing_of_it(judge: str, reference: str) -> None:
    right, wrong = {"1": ("1", "0"), "A": ("A", "B"), "yes": ("Yes", "No")}[reference]
    question = "Is it so? (A) this (B) that" if judge == "option" else "Is it so?"
    cases = [Case(str(i), question, reference, reply, own=wrong) for i, reply in enumerate((right, ODD, REFUSED))]
    assert [verdict.label for verdict in build_judge(judge).judge(cases)] == [0, 1, None]
    assert build_judge(judge).judge([replace(cases[1], own=right)])[0].label == 0
    if judge == "option":
        assert build_judge(judge, parsing="official").judge(cases[1:2])[0].label is None
