"""A detector: a name, what it needs, what it costs, and one function from the evidence to a number.

    @register("radflag", "RadFlag", needs=("clean", "clusters"), source="Zhang et al. 2024")
    def radflag_score(evidence: Evidence) -> float: ...

Detectors are compared on the same answers at the same price, so that each says what it needs and how many draws it
takes; where a run cannot give what it needs, the detector is left out and `Detector.missing` says why.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.claims.base import ClaimEvidence
from hedge_tasks.data.inside import ARRAYS
from hedge_tasks.detectors.evidence import INSIDE_ARRAYS, Evidence
from hedge_tasks.errors import check_names

__all__ = ["NEEDS", "Detector"]

NEEDS: Mapping[str, str] = {
    "clean": "answers sampled on the clean image",
    "noisy": "answers sampled on perturbed images",
    "clusters": "cluster ids of the answers",
    "baseline_logprob": "the log-probability of the baseline answer",
    "baseline_tokens": "the number of tokens of the baseline answer",
    "clean_logprobs": "log-probabilities of all clean answers",
    "clean_tokens": "numbers of tokens of all clean answers",
    "noisy_logprobs": "log-probabilities of all noisy answers",
    "noisy_tokens": "numbers of tokens of all noisy answers",
    "relations": "NLI probabilities of all pairs of answers",
    "cosines": "cosine similarities of all pairs of answers",
    "question": "the text of the question",
    "baseline_token_logprobs": "the log-probabilities of the baseline answer's tokens",
    "baseline_token_entropies": "alternatives of the baseline answer's tokens (top_logprobs)",
    "baseline_relevance": "the tokens of the baseline answer, or embeddings that tell their relevance",
    "clean_relevance": "the tokens of all clean answers, or embeddings that tell their relevance",
    "forced_blank": "the log-probability of the baseline answer on a blank image, from a forced pass",
    "forced_reworded": "the log-probability of the baseline answer to the question in other words, from a forced pass",
    "forced_truth": "the log-probabilities of calling the baseline answer true and false, from forced passes",
    "forced_options": "the log-probabilities of the answers that the question offers, from forced passes",
    "forced_noisy": "the log-probabilities of the offered answers on each perturbed image, from forced passes",
    "hidden_states": "hidden states of the baseline answer (inside=states)",
    "attention": "attention while the baseline answer is said (inside=attention)",
    "image_attention": "attention to image tokens while the baseline answer is said (inside=attention)",
    "token_logits": "logits of the baseline answer's tokens (inside=logits)",
    "draw_states": "hidden states of the clean answers (inside=draws)",
    "draw_logits": "logits of the clean answers (inside=draws)",
    "claims": "claims of the answer (hedge claims --keep finds them)",
    "clean_support": "clean samples that could support claims",
    "noisy_support": "noisy samples that could support claims",
    "contradictions": "contradictions (this kind of support does not tell them from silence)",
    "elsewhere": "answers about another image (none was asked for, or there is none)",
    "rarity": "answers about other images",
    "claim_logprobs": "log-probabilities of the claims' tokens",
}
"""Evidence that a detector may need, and how a reader is told that it is not there."""

KEPT_BY: Mapping[str, str] = {
    "baseline_token_logprobs": "--gen_kwargs alternatives=0",
    "baseline_token_entropies": "--gen_kwargs inside=logits, or alternatives=5 of a server",
    "hidden_states": "--gen_kwargs inside=states",
    "attention": "--gen_kwargs inside=attention",
    "image_attention": "--gen_kwargs inside=attention",
    "token_logits": "--gen_kwargs inside=logits",
    "draw_states": "--gen_kwargs inside=draws",
    "draw_logits": "--gen_kwargs inside=draws",
    "claims": "hedge claims --keep",
    "relations": "hedge detectors --keep",
    "cosines": "hedge detectors --keep",
    "noisy": "--gen_kwargs n_noisy=10",
} | {
    f"forced_{name}": "HEDGE_DETECTORS=NAME as it is sampled"
    for name in ("blank", "reworded", "truth", "options", "noisy")
}
"""The way to have a run keep evidence that not every run keeps."""

_PASSES = frozenset({"forced_blank", "forced_reworded", "forced_truth", "forced_options", "forced_noisy"})
_INSIDE = frozenset({"hidden_states", "attention", "image_attention", "token_logits"})
_INSIDE_DRAWS = frozenset({"draw_states", "draw_logits"})
INSIDE = _INSIDE | _INSIDE_DRAWS
"""Evidence from inside the model, which is kept beside a run and in no submission."""

LEVELS = ("answer", "claim")
"""The argument of a detector's function: one answer, or all claims of one."""

_DRAWS = frozenset({"clean", "noisy"})
_TOKENS = frozenset(f"{draws}_{what}" for draws in ("clean", "noisy") for what in ("logprobs", "tokens"))
_NOISY = frozenset(need for need in NEEDS if need.startswith("noisy"))
_CLEAN = frozenset(need for need in NEEDS if need.startswith(("clean", "draw_")))
"""Evidence that takes samples of one kind."""

_NEEDS_OF_LEVEL: Mapping[str, frozenset[str]] = {
    "object": frozenset({"clusters"}),
    "story": frozenset({"clusters"}),
    "verdict": frozenset({"clusters", "baseline_logprob", "baseline_tokens"}) | _TOKENS,
}
"""Other units than answers and claims: what is known of them besides how many draws there are. Of an object it is only
known which draws mention it; a verdict has lost its words, and kept the log-probabilities of the reply."""

_DIGITS = 12


@dataclass(frozen=True)
class Detector:
    """A number that should be the higher, the more likely the baseline answer is hallucinated.

    Attributes:
        name: in tables, files and options: lower-case letters, digits and underscores.
        title: in figures and reports.
        function: from the evidence, and the options by keyword, to the number; None or NaN where it is undefined.
        needs: which of `NEEDS` have to be there.
        unit: of the number; empty for a share or an index without one.
        source: paper, and equation where it has one.
        options: keyword arguments that differ from the function's defaults.
        experimental: not shown unless it is named.
        short: title where there is little room; empty where the title is short.
        level: "answer", or "claim": then the function goes from a `ClaimEvidence` to an array, one number a claim.
        blind: whether it sees neither image nor draws of the question: what others have to beat.
    """

    name: str
    title: str
    function: Callable[..., Any] = field(repr=False)
    needs: frozenset[str]
    unit: str = ""
    source: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    experimental: bool = False
    short: str = ""
    level: str = "answer"
    blind: bool = False

    def serves(self, level: str) -> bool:
        """Return whether it can score units of a level.

        Example:
            >>> from hedge_tasks.detectors import get
            >>> get("radflag").serves("object"), get("lexical").serves("object"), get("msp").serves("verdict")
            (True, False, True)

        Raises:
            ConfigError: there is no such level; names the nearest one.
        """
        check_names("level of units", [level], (*LEVELS, *_NEEDS_OF_LEVEL))
        if level in LEVELS:
            return self.level == level
        looked_at = self.needs - _DRAWS
        return self.level == "answer" and bool(looked_at) and looked_at <= _NEEDS_OF_LEVEL[level]

    def draws(self, n: int, m: int) -> int:
        """Return what it costs besides the baseline answer, of n clean and m noisy samples: those that it looks at."""
        return n * bool(self.needs & _CLEAN) + m * bool(self.needs & _NOISY)

    def passes(self, n: int) -> int:
        """Return how many prompts the model reads once more for it, after all draws.

        Example:
            >>> from hedge_tasks.detectors import get
            >>> [get(name).passes(10) for name in ("se", "rauq", "inside")]
            [0, 1, 10]
        """
        return len(self.needs & _PASSES) + bool(self.needs & _INSIDE) + n * bool(self.needs & _INSIDE_DRAWS)

    @property
    def parts(self) -> frozenset[str]:
        """The parts of the model that have to be kept for it, of `hedge_tasks.data.inside.PARTS`.

        Example:
            >>> from hedge_tasks.detectors.registry import get
            >>> [sorted(get(name).parts) for name in ("se", "rauq", "inside")]
            [[], ['attention', 'logits'], ['draws']]
        """
        arrays = frozenset().union(*(INSIDE_ARRAYS[need] for need in self.needs & INSIDE))
        return frozenset(part for part, names in ARRAYS.items() if arrays & frozenset(names))

    @property
    def label(self) -> str:
        """Return what it is called for people, in figures and tables."""
        return self.short or self.title

    @property
    def explanation(self) -> str:
        """The docstring: formula, arguments, source, example."""
        return inspect.getdoc(self.function) or ""

    @property
    def option_names(self) -> list[str]:
        """The keyword-only arguments of the function."""
        parameters = inspect.signature(self.function).parameters.values()
        return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]

    def with_options(self, **options: Any) -> Detector:
        """Return the same detector with other options.

        Raises:
            ConfigError: it has no such option; names the nearest one.
        """
        if not options:
            return self
        check_names(f"option of detector {self.name!r}", options, self.option_names)
        return replace(self, options={**self.options, **options})

    def missing(self, evidence: Evidence | ClaimEvidence) -> list[str]:
        """Return what the evidence lacks, in words; empty where the detector can look at it."""
        lacking = self.needs - evidence.offers
        return [words for need, words in NEEDS.items() if need in lacking]

    def score(self, evidence: Evidence) -> float | None:
        """Return the number for one question; None where it is undefined or the evidence lacks something.

        Raises:
            ValueError: the evidence has numbers that no score can be made of.
        """
        if not self.needs <= evidence.offers:
            return None
        value = self.function(evidence, **self.options)
        return None if value is None or math.isnan(value) else float(value) + 0.0  # never -0.0

    def claim_scores(self, evidence: ClaimEvidence) -> npt.NDArray[np.float64] | None:
        """Return a detector of claims' number for each claim, NaN where it is undefined; None as for `score`."""
        if self.level != "claim" or not self.needs <= evidence.offers:
            return None
        values = np.asarray(self.function(evidence, **self.options), dtype=np.float64)
        # Without the digits that depend on the order of the draws, so that ties stay ties; never -0.0.
        return np.asarray(np.round(values, _DIGITS) + 0.0)
