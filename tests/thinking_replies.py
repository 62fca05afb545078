"""Replies of five families of thinking models, token by token as their vocabularies have it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ThinkingReply:
    """A reply and what has to be read of it.

    Attributes:
        thought: tokens before the answer: marks, thought, blanks between the two.
        answer: tokens of the answer.
        end: the end token.
        control: tokens that are no text, which servers leave out of it.
        reasoning: the thought, as a server with a parser tells it.
    """

    thought: tuple[str, ...]
    answer: tuple[str, ...]
    end: str
    control: tuple[str, ...] = ()
    reasoning: str = "It may be the right."

    @property
    def tokens(self) -> list[tuple[str, float]]:
        """All tokens; a thought is unlikely, the answer's tokens have -0.25 each, the end token -4."""
        thought = [(text, -1.0 - i / 8) for i, text in enumerate(self.thought)]
        return [*thought, *((text, -0.25) for text in self.answer), (self.end, -4.0)]

    @property
    def said(self) -> str:
        return "".join(self.answer).strip()

    @property
    def inline(self) -> str:
        """The text as a server without a parser sends it: control tokens are left out, and marks may be such."""
        texts = (*self.thought, *self.answer)
        return "".join(text for text in texts if text not in self.control)


_SAID = ("It", " may", " be", " the", " right", ".")
_ANSWER = ("upper", " left", ", 5", "\u00a0", "µ", "m")

REPLIES = {
    "Qwen3": ThinkingReply(("<think>", "\n", *_SAID, "\n", "</think>", "\n\n"), _ANSWER, "<|im_end|>"),
    # Its template puts the opening mark into the prompt.
    "DeepSeek-R1": ThinkingReply(
        ("\n", *_SAID, "\n", "</think>", "\n\n"), _ANSWER, "<｜end▁of▁sentence｜>", ("<｜end▁of▁sentence｜>",)
    ),
    "GLM": ThinkingReply(("\n", "<think>", *_SAID, "</think>", "\n"), _ANSWER, "<|user|>"),
    "gpt-oss": ThinkingReply(
        (
            *("<|channel|>", "analysis", "<|message|>", *_SAID, "<|end|>"),
            *("<|start|>", "assistant", "<|channel|>", "final", "<|message|>"),
        ),
        _ANSWER,
        "<|return|>",
        ("<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|return|>"),
    ),
    "Magistral": ThinkingReply(("[THINK]", *_SAID, "[/THINK]"), _ANSWER, "</s>", ("[THINK]", "[/THINK]", "</s>")),
}
