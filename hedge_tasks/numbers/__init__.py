"""Numbers and tables: the one type of a shown number, and the one printer of tables.

number   `Number`: a value with its uncertainty, or the reason why it is undefined
formats  how a value is written: digits, sign, per cent, interval; the only place that rounds for people
table    `Table`: columns and rows of numbers, printed as text, JSON, CSV, HTML or a data frame
"""

from hedge_tasks.numbers.formats import (
    FOUR_DIGITS,
    MISSING,
    ONE_DIGIT,
    PERCENT,
    SIGNED,
    SIGNED_FOUR,
    SIGNED_PERCENT,
    THREE_DIGITS,
    WHOLE,
    WHOLE_PERCENT,
    Format,
    count_of,
    format_interval,
    format_number,
    format_p,
    format_value,
)
from hedge_tasks.numbers.number import Interval, Number
from hedge_tasks.numbers.table import Cell, Column, Table, reason_lines

__all__ = [
    "Number",
    "Interval",
    "Format",
    "FOUR_DIGITS",
    "MISSING",
    "PERCENT",
    "SIGNED",
    "SIGNED_FOUR",
    "SIGNED_PERCENT",
    "THREE_DIGITS",
    "WHOLE",
    "ONE_DIGIT",
    "WHOLE_PERCENT",
    "format_value",
    "count_of",
    "format_interval",
    "format_number",
    "format_p",
    "Cell",
    "Column",
    "Table",
    "reason_lines",
]
