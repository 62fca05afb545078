"""Controls: questions with a known answer, which tell whether whoever is asked can be believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hedge_tasks.errors import DataError
from hedge_tasks.statistics.base import wilson

LEAST_RIGHT = 0.9
"""Share of controls that a verifier has to get right."""

_FEWEST_CONTROLS = 10


def surely_below(right: int, n: int, least: float) -> bool:
    """Whether a share is surely too small: its 95 % Wilson interval lies below the bound; never without trials."""
    return n > 0 and wilson(right / n, n, 0.95)[1] < least


@dataclass(frozen=True)
class VerifierControls:
    """One kind of controls, counted in the steps of a making.

    Attributes:
        passed, failed: Steps, in front of the name of the verifier.
        complaint: What a verifier does that fails too many, with `{wrong}` and `{n}` to be filled in.
    """

    passed: str
    failed: str
    complaint: str

    def step(self, verifier: str, *, right: bool) -> str:
        """Return the step of one control."""
        return f"{self.passed if right else self.failed}{verifier}"

    def counts(self, steps: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Return by verifier the controls that it got right, and all."""
        prefixes = (self.passed, self.failed)
        names = {step.removeprefix(prefix) for step in steps for prefix in prefixes if step.startswith(prefix)}
        right_and_wrong = {name: [steps.get(prefix + name, 0) for prefix in prefixes] for name in names}
        return {name: (right, right + wrong) for name, (right, wrong) in right_and_wrong.items()}

    def check(self, steps: Mapping[str, int]) -> None:
        """Refuse verifiers that fail their controls.

        Args:
            steps: Of the making: how often each was taken.

        Raises:
            DataError: A verifier is surely below `LEAST_RIGHT`.
        """
        for name, (right, n) in sorted(self.counts(steps).items()):
            if n >= _FEWEST_CONTROLS and surely_below(right, n, LEAST_RIGHT):
                raise DataError(
                    f"verifier {name} {self.complaint.format(wrong=n - right, n=n)}: nothing that it says is worth "
                    "anything; take another --verifier"
                )


TRUTHS = VerifierControls(
    "truth supported by ",
    "truth not supported by ",
    "finds {wrong} of {n} true answers not supported by themselves",
)
"""A verifier that is shown a truth has to find it supported."""

CHANGED_QUESTIONS = VerifierControls(
    "changed question told by ",
    "changed question not told by ",
    "takes {wrong} of {n} questions with a word turned into its contrary for the same question",
)
"""A verifier that is shown a question with one word turned into its contrary must not call it the same question."""
