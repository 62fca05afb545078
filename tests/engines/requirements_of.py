"""What an installed package requires, but for some: `python requirements_of.py PACKAGE LEFT_OUT ...`."""

from __future__ import annotations

import re
import sys
from importlib.metadata import requires


def main(package: str, left_out: set[str]) -> None:
    """Print the requirements of a package, without those of its extras."""
    for line in requires(package) or ():
        name = re.match(r"[\w.-]+", line)
        if name and name.group() not in left_out and "extra ==" not in line:
            print(line)


if __name__ == "__main__":
    main(sys.argv[1], set(sys.argv[2:]))
