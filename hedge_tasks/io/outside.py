"""Checks of all input from outside: answer files, stores, run files, submissions, label files, replies.

What passes is sound, so that no other module has to ask again:

- **Texts** can be encoded: a lone surrogate (half of a character, which a JSON escape can name and no file can hold)
  and NUL become U+FFFD. Other control characters stay, for they are what somebody wrote; where they are shown, they are
  made harmless (`hedge_tasks.io.commands.say`, `hedge_tasks.io.tables`, the report's pages).
- **Numbers** have at most `MOST_DIGITS` digits and fit a float; what overflows one is refused, and not infinity.
- **JSON** names no key of an object twice and is nested at most `DEEPEST` levels deep.
- **Files** and their lines are bounded, and so is what a compressed file unpacks to: not more is ever read.

Everything else is a `DataError` that names the file, the line and the place.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from hedge_tasks.errors import DataError

DEEPEST = 40
"""Levels of nesting; a run file has nine."""

MOST_DIGITS = 40
"""Of an integer. Seeds, the longest of ours, have 19."""

LARGEST_FILE = 4 << 30
"""Bytes of a file of lines."""

LARGEST_TEXT = 1 << 30
"""Bytes of a file that is read as one text."""

LONGEST_LINE = 64 << 20
"""Bytes of a line."""

_UNPACKED, _MOST_TIMES = 256 << 20, 100
"""Most that a compressed file may unpack to: so many bytes, or so many times its own size where that is more. Real
logs, books and tables unpack to ten times their size, seldom to fifty; what is made to hurt, to a thousand times."""

_UNSOUND = re.compile("[\x00\ud800-\udfff]")
_MAYBE_UNSOUND = re.compile(r"[\x00\ud800-\udfff]|\\u(?:0000|[dD][89a-fA-F])")
_SHOWN = 60
_ROUNDING = 1e-4  # a certain token may come out a little above 0

# Three signs beyond ASCII in a row are in no word of a language that Windows-1252 is for, nor are others than these.
_UNLIKE_WORDS = re.compile("[\x80-\u2fff]{3}|[^\x00-\x7fÀ-ÖØ-öø-ÿŒœŠšŽžŸ€°µ²³±·×÷§«»¿¡“”„‘’‚–—…ªº\xa0]")


def clean(text: str) -> str:
    """A text that every file can hold: lone surrogates and NUL become U+FFFD.

    Example:
        >>> clean("left \\ud83d"), clean("a\\x00b"), clean("ok")
        ('left \ufffd', 'a\ufffdb', 'ok')
    """
    return text if text.isprintable() else _UNSOUND.sub("\ufffd", text)


def shown(value: object) -> str:
    """A value from outside as an error may quote it: short, whatever it is."""
    if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        return f"an integer of more than {MOST_DIGITS} digits"
    text = repr(value) if isinstance(value, (str, int, float, type(None))) else type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def number(value: object, where: str) -> float:
    """A finite number.

    Raises:
        DataError: it is none, or too large for a float; names the place.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)
    raise DataError(f"{where}: expected a {'finite ' * isinstance(value, float)}number, got {shown(value)}")


def log_probability(value: object, where: str) -> float:
    """The log-probability of what was written, in nats: a finite number of at most 0, whichever way it comes in.

    Raises:
        DataError: it is none; names the place.
    """
    result = number(value, where)
    if result > _ROUNDING:
        raise DataError(f"{where}: {result} is no log-probability, which is at most 0")
    return min(result, 0.0)


def parse_json(text: str | bytes, where: str, *, constants: bool = True) -> Any:
    """A JSON value that is sound, as this module has it.

    Args:
        text: UTF-8 where it is bytes; a byte order mark is passed over.
        where: put in front of every error, such as a file name and line number.
        constants: whether NaN and Infinity, which Python writes and JSON does not know, are accepted.

    Raises:
        DataError: it is no JSON, or not sound.
    """
    text = decode(text, where) if isinstance(text, bytes) else text
    decoder = _DECODER if constants else _STRICT_DECODER
    try:
        value = decoder.decode(text)
        # Brackets in texts count here, too: it only decides whether a closer look is needed.
        if text.count("[") + text.count("{") > DEEPEST and _deeper(value):
            raise RecursionError
    except RecursionError:
        raise DataError(f"{where}: not valid JSON (nested deeper than {DEEPEST} levels)") from None
    except ValueError as error:
        raise DataError(f"{where}: not valid JSON ({error})") from None
    return cleaned(value) if _MAYBE_UNSOUND.search(text) else value


def decode(data: bytes, where: str, encoding: str = "UTF-8-sig") -> str:
    """The text of a file, which is UTF-8 where nothing else is known.

    Raises:
        DataError: it is not.
    """
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig")
        raise DataError(f"{where}: not {name} ({error.reason} at byte {error.start})") from None


def read_text(path: Path, *, largest: int = LARGEST_TEXT) -> str:
    """A text file.

    Raises:
        DataError: it cannot be read, is larger than `largest` bytes, or no UTF-8.
    """
    return clean(decode(read_bytes(path, largest), str(path)))


def table_text(data: bytes, name: str) -> tuple[str, str | None]:
    """The text of a table as spreadsheets write it, and how it was read where it is not UTF-8.

    UTF-16 is told by its byte order mark. Windows-1252 has no mark: a text counts as it only where all its letters
    beyond ASCII stand as they do in words of the languages that use it.

    Raises:
        DataError: it is in neither encoding.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return clean(decode(data, name, "UTF-16")), "UTF-16"
    try:
        return clean(decode(data, name)), None
    except DataError as error:
        text = data.decode("cp1252", errors="replace")
        if "\ufffd" in text or _UNLIKE_WORDS.search(text):
            raise DataError(f"{error}; save it as UTF-8") from None
        return clean(text), "Windows-1252"


def read_bytes(path: Path, largest: int = LARGEST_TEXT) -> bytes:
    """A whole file.

    Raises:
        DataError: it cannot be read, or is larger than `largest` bytes.
    """
    with _readable(path), path.open("rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise DataError(f"{path}: larger than {largest >> 20} MiB")
    return data


def most_unpacked(path: Path) -> int:
    """Bytes that a compressed file may unpack to, all of its parts together."""
    return max(_UNPACKED, _MOST_TIMES * path.stat().st_size)


def check_unpacked(path: Path, size: int) -> None:
    """Refuse what a compressed file unpacks to: one budget for the sum of its parts.

    Args:
        size: bytes so far, or as its parts declare them.

    Raises:
        DataError: that is more than a real file of its size holds.
    """
    if size > (most := most_unpacked(path)):
        raise DataError(
            f"{path}: it unpacks to more than {most >> 20} MiB, {size // path.stat().st_size} times its size"
        )


def check_archive(path: Path) -> None:
    """As `check_unpacked`, of a ZIP archive; no reader unpacks more of a part than it declares.

    Raises:
        DataError: it holds too much.
        zipfile.BadZipFile, OSError: it is none, or cannot be read.
    """
    with zipfile.ZipFile(path) as archive:
        check_unpacked(path, sum(part.file_size for part in archive.infolist()))


def read_json(path: Path, *, largest: int = LARGEST_TEXT, constants: bool = True) -> Any:
    """The JSON value of a file.

    Raises:
        DataError: it cannot be read, is too large, or not sound.
    """
    return parse_json(read_text(path, largest=largest), str(path), constants=constants)


def read_raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers from 1, each with its line end; empty ones are passed over.

    Raises:
        DataError: the file cannot be read, or is or has a line larger than the bounds of this module.
    """
    with _readable(path), path.open("rb") as file:
        yield from raw_lines(file, str(path))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except (OSError, EOFError, zlib.error, ValueError) as error:  # the last of a NUL in the name
        raise DataError(f"cannot read {clean(str(path))}: {getattr(error, 'strerror', None) or error}") from None


def raw_lines(file: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """As `read_raw_lines`, from an open file such as the standard input."""
    size = 0
    for line_number, line in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), b""), start=1):
        size += len(line)
        if len(line) > LONGEST_LINE:
            raise DataError(f"{name}:{line_number}: a line of more than {LONGEST_LINE >> 20} MiB")
        if size > LARGEST_FILE:
            raise DataError(f"{name}: larger than {LARGEST_FILE >> 20} MiB")
        if line != b"\n":
            yield line_number, line


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits, {digits[:20]}...")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(clean(twice))} is given twice")
    return members


_decoder = partial(json.JSONDecoder, object_pairs_hook=_object, parse_int=_integer, parse_float=_float)
_DECODER, _STRICT_DECODER = _decoder(), _decoder(parse_constant=_no_constant)


def _deeper(value: Any) -> bool:
    """Whether something is nested deeper than allowed, found without recursion."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer)]
        level = [item for item in inner if isinstance(item, (dict, list))]
        if not level:
            return False
    return True


def cleaned(value: Any) -> Any:
    """A JSON value with all its texts as `clean` makes them."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        # Two keys may become one by that; the later one counts then, as in any JSON reader.
        return {clean(key): cleaned(item) for key, item in value.items()}
    return value
