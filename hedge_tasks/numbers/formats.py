"""How numbers are written for people. Nothing else rounds a number for display."""

from __future__ import annotations

from dataclasses import dataclass

from hedge_tasks.numbers.number import Interval, Number

UNDEFINED = "undefined"
"""Text of a number that has no value."""

MISSING = "-"
"""Text where there is no number at all."""

_SMALLEST_P = 1e-4


@dataclass(frozen=True)
class Format:
    """How a value is written.

    Attributes:
        digits: after the point; None for as few as tell the value to six digits.
        signed: whether a plus is written, as for differences.
        percent: whether a share is written in per cent.
        suffix: text behind, such as " s".

    Example:
        >>> Format(digits=1, percent=True)(0.4567), Format(signed=True)(0.25)
        ('45.7 %', '+0.250')
    """

    digits: int | None = 3
    signed: bool = False
    percent: bool = False
    suffix: str = ""

    def __call__(self, value: float) -> str:
        return self.bare(value) + (" %" if self.percent else "") + self.suffix

    def bare(self, value: float) -> str:
        """Return the value without its unit, as it stands in intervals."""
        scaled = 100 * value if self.percent else value
        how = "g" if self.digits is None else f"z.{self.digits}f"  # z: no "-0.000"
        return f"{scaled:{'+' if self.signed else ''}{how}}"


ONE_DIGIT = Format(digits=1)
THREE_DIGITS = Format()
FOUR_DIGITS = Format(digits=4)
SIGNED = Format(signed=True)
SIGNED_FOUR = Format(digits=4, signed=True)
PERCENT = Format(digits=1, percent=True)
WHOLE_PERCENT = Format(digits=0, percent=True)
SIGNED_PERCENT = Format(digits=1, signed=True, percent=True)
WHOLE = Format(digits=0)


def format_value(value: float | None, fmt: Format = THREE_DIGITS, *, missing: str = MISSING) -> str:
    """Return a value as text; `missing` where there is none."""
    return missing if value is None else fmt(value)


def count_of(n: int, unit: str) -> str:
    """Return how many there are of what, in words.

    Args:
        unit: name of one.

    Example:
        >>> count_of(1, "run"), count_of(120, "run")
        ('1 run', '120 runs')
    """
    return f"{n} {unit}" if n == 1 else f"{n} {unit}s"


def format_interval(interval: Interval | None, fmt: Format = THREE_DIGITS, *, missing: str = MISSING) -> str:
    """Return an interval as text.

    Example:
        >>> format_interval((0.5, 0.75)), format_interval((-0.1, 0.2), Format(signed=True, digits=2))
        ('[0.500, 0.750]', '[-0.10, +0.20]')
    """
    return missing if interval is None else f"[{fmt.bare(interval[0])}, {fmt.bare(interval[1])}]"


def format_number(
    number: Number | None, fmt: Format = THREE_DIGITS, *, stderr: bool = False, interval: bool = False
) -> str:
    """Return a number as text, with its standard error or interval where asked for.

    Example:
        >>> format_number(Number(0.5, stderr=0.1, interval=(0.3, 0.7)), stderr=True)
        '0.500 ± 0.100'
        >>> format_number(Number.undefined("no documents"))
        'undefined'
    """
    if number is None:
        return MISSING
    if number.value is None:
        return UNDEFINED
    behind = f" ± {fmt.bare(number.stderr).lstrip('+')}" if stderr and number.stderr is not None else ""
    behind += f" {format_interval(number.interval, fmt)}" if interval and number.interval is not None else ""
    return fmt(number.value) + behind


def format_p(p: float | None) -> str:
    """Return a p-value as text.

    Example:
        >>> format_p(0.0321), format_p(1e-9), format_p(None)
        ('0.0321', '< 0.0001', '-')
    """
    return MISSING if p is None else f"< {_SMALLEST_P:.4f}" if p < _SMALLEST_P else f"{p:.4f}"
