"""An evaluation with hedge_vllm on a real vLLM in this process: `python in_process.py PACKAGES RECORD ARGUMENT ...`.

Runs in vLLM's environment. PACKAGES is the project's site-packages, appended to the path; RECORD the file that gets
every draw as a line of JSON: what the model was shown and what it answered. A first line has what the first draw was
shown and how likely the model finds some options as the whole reply. Beside it lies a file `.again`: draws as they
came with others and once more alone. The rest are arguments of lmms-eval.
"""

from __future__ import annotations

import base64
import io
import json
import site
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

AGAIN = 8
"""Draws of one call, none the first of its request, that are asked for once more, each alone."""
OPTIONS = ("upper", "upper left", "yes", "no", "small cyst")


def main(record: Path, arguments: list[str]) -> None:
    """Run lmms-eval with every draw written down."""
    from lmms_eval.__main__ import cli_evaluate_single, parse_eval_args

    from hedge_tasks.models.hedge_vllm import HedgeVLLM

    plain = HedgeVLLM.generate_draws

    def recorded(self: Any, draws: Any) -> Iterator[Any]:
        with record.open("a", encoding="utf-8") as lines:
            if lines.tell() == 0:
                asked = draws[0].messages()
                replies = [asdict(of) for of in self.reply_logprobs([asked] * len(OPTIONS), OPTIONS)]
                lines.write(json.dumps({"messages": _plain(asked), "replies": replies}) + "\n")
            answers = {}
            for batch in plain(self, draws):
                for i, answer in batch:
                    answers[i] = answer
                    lines.write(json.dumps({"messages": _plain(draws[i].messages()), "answer": asdict(answer)}) + "\n")
                yield batch
        later = [i for i, draw in enumerate(draws) if draw.draw.condition == "clean" and draw.draw.index][:AGAIN]
        if len(later) < AGAIN:
            return  # a probe's
        with record.with_suffix(".again").open("w", encoding="utf-8") as lines:
            for i in later:
                [[(_, singly)]] = plain(self, [draws[i]])
                lines.write(json.dumps([asdict(answers[i]), asdict(singly)]) + "\n")

    HedgeVLLM.generate_draws = recorded
    sys.argv = ["lmms-eval", *arguments]
    # Not `cli_evaluate`: it swallows what goes wrong and exits with 0.
    _, parsed = parse_eval_args()
    cli_evaluate_single(parsed)


def _plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with their pictures as PNG in base64."""
    return [{**turn, "content": [_part(part) for part in turn["content"]]} for turn in messages]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] != "image":
        return part
    content = io.BytesIO()
    part["url"].save(content, "PNG")
    return {"type": "image", "png": base64.b64encode(content.getvalue()).decode()}


if __name__ == "__main__":  # vLLM starts its engine in a process that imports this file
    site.addsitedir(sys.argv[1])
    main(Path(sys.argv[2]), sys.argv[3:])
