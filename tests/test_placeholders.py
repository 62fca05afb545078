"""Placeholders among log-probabilities, by their values over a run: the border of each rule, and through commands."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from evaluation import evaluate
from openai_server import Response, completion, serve, texts_of
from printed import json_of

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.placeholders import PLACEHOLDER, extremes, known_by
from hedge_tasks.runs.run_files import load_run


def answer(text: str, *logprobs: float) -> Answer:
    return Answer(text, sum(logprobs) / len(logprobs), len(logprobs), **extremes(logprobs))


def lost(answer_sets: list[AnswerSet]) -> int:
    return sum(a.no_logprob == PLACEHOLDER for s in map(known_by(answer_sets), answer_sets) for a in s.answers)


def questions(n: int, *draws: Answer) -> list[AnswerSet]:
    return [AnswerSet(str(i), Answer("x"), draws) for i in range(n)]


@pytest.mark.parametrize("n", [1, 1000])
def test_next_to_impossible_tokens_are_placeholders(n: int) -> None:
    """Of so many tokens, which an unlikely token may well be among, however unlikely it is by itself."""
    floor = -math.log(10 * 2**18 * 3 * n)
    for value, count in ((floor + 1e-3, 0), (floor - 1e-3, 1), (-100.0, 1)):
        sets = questions(n, answer("a b", -0.5, -0.25), Answer("a"))
        sets[0] = AnswerSet("0", Answer("x"), (answer("a b", -0.5, -0.25), answer("c", value)))
        assert lost(sets[:1] + [AnswerSet(s.id, s.baseline, (*s.clean, answer("d", -1.0))) for s in sets[1:]]) == count


@pytest.mark.parametrize(("value", "count"), [(-1.0, 10), (-0.6, 0), (None, 0)])
@pytest.mark.parametrize("tokens", [True, False])
def test_one_value_of_many_questions_is_a_placeholder(value: float | None, count: int, tokens: bool) -> None:
    def drawn(i: int) -> Answer:
        least = -1.0 - i / 100 if value is None else value
        return answer(f"a {i}", -0.1 - i / 1000, least) if tokens else Answer(f"a {i}", least)

    few, enough = ([AnswerSet(str(i), Answer("x"), (drawn(i),)) for i in range(n)] for n in (9, 10))
    assert (lost(few), lost(enough)) == (0, count)
    others = [AnswerSet(f"b{i}", Answer("x"), (answer(f"b {i}", -2 - i / 64),)) for i in range(31)]
    assert (lost(enough + others[:30]), lost(enough + others)) == (count, 0)  # a quarter of the questions, and less
    one_text = [AnswerSet(s.id, Answer("x"), (Answer("a", s.clean[0].mean_logprob, 1),)) for s in enough]
    assert lost(one_text) == 0


def test_zeros_are_believed_until_two_answers_part_in_them() -> None:
    left, right = answer("the left lung", -0.5, 0.0, 0.0), answer("the right lung", -0.5, 0.0, 0.0)
    sure = answer("heart it is", -1.0, 0.0, 0.0)
    assert lost(questions(2, left, right)) == 0
    assert lost(questions(3, left, right)) == 6
    assert lost(questions(3, left, right, sure, answer("no", -0.5), answer("a cyst", 0.0, -0.5))) == 9
    for honest in (
        (left, sure),  # the first word decides
        (left, answer("the right lung", -0.5, -9.0, 0.0)),  # the second one says that it was unlikely
        (left, answer("the left lung.", -0.5, 0.0, 0.0, 0.0)),  # one begins the other: its end is not counted
        (answer("the left lung", -1e-6, 0.0, 0.0),) * 2,
        (Answer("the left lung", 0.0, 3), Answer("the right lung", 0.0, 3)),  # of no token is anything known
    ):
        assert lost(questions(100, *honest)) == 0


def test_follow_ups_and_the_whole_run_count() -> None:
    draws = (answer("the left lung", -0.5, 0.0, 0.0), answer("the right lung", -0.5, 0.0, 0.0))
    inner = questions(3, *draws)
    whole = AnswerSet("a", Answer("x"), draws, follow_ups=tuple(inner))
    outer = known_by([whole])(whole)
    assert all(a.mean_logprob is None for part in (outer, *outer.follow_ups) for a in part.answers)
    assert not known_by(inner)(inner[0]).has_logprobs


def test_a_file_of_answers_says_what_it_loses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": str(i), "answers": [{"text": f"{side} {i}", "logprobs": [-0.25, -100]} for side in ("a", "b", "c")]}
        for i in range(2)
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    scored = json_of(capsys, ["score", str(file), "--clustering", "exact", "--json"])
    assert f"lost: 6 log-probabilities, such as of 'a 0': {PLACEHOLDER}" in scored["notes"]


@pytest.mark.framework
@pytest.mark.slow
def test_a_server_of_placeholders_is_as_one_that_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"question": f"What is in picture {i}?", "answer": f"the left lung {i}"} for i in range(12)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEDGE_FILTERS", "embed")
    assert main(["init", "organs", "rows.jsonl", "--image", "none", "--group", "none"]) == 0
    tables: dict[float | None, Any] = {}
    for value in (None, -9999.0):

        def reply(body: dict[str, Any], value: float | None = value) -> Response:
            number = next(t for t in reversed(texts_of(body)) if "?" in t).partition("?")[0].split()[-1]
            tokens = ["the", (" left", " right", " upper")[body["seed"] % 3], " lung", f" {number}"]
            behind = [] if value is None else [(token, value) for token in tokens[1:]]
            first = -0.05 - 0.001 * int(number) if number.isdigit() else -0.5
            return Response(completion("".join(tokens), behind and [(tokens[0], first), *behind]))

        out = tmp_path / f"out{value}"
        with serve(reply) as url:
            made = evaluate(
                out,
                *("--tasks", "organs", "--include_path", str(tmp_path / "organs-task"), "--model", "hedge_openai"),
                *("--model_args", f"model=m,base_url={url},max_retries=0"),
                *("--gen_kwargs", "n=4,n_noisy=0,probe=false,max_new_tokens=9"),
            )
        tables[value] = made.values("organs")
        answers = [a for s in load_run(out).answer_sets for a in s.answers]
        assert all(a.mean_logprob is None for a in answers), value
        capsys.readouterr()
        main(["health", str(out)])
        assert (f"{PLACEHOLDER}: {len(answers)}" in capsys.readouterr().out) is (value is not None)
    assert all(table == tables[None] for table in tables.values())
