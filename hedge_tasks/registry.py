"""Things that are chosen by name: our own, and those that other packages bring through an entry-point group.

A registry holds a name and what it stands for, given as text (`"module:attribute"`) so that choosing one imports none
of the others. Entry points are read on first use. A package that cannot be loaded is named where its own name is asked
for, and warned about where all are gone through; it never stands in the way of the others.

Example:
    >>> shapes = Registry("shape", "hedge_tasks.shapes", {"list": "builtins:list", "range": "builtins:range"})
    >>> shapes.names()
    ['list', 'range']
    >>> shapes.build("list")
    []
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from loguru import logger

from hedge_tasks.errors import ConfigError, check_names, first_line, lookup

Product = TypeVar("Product")

OWN = "hedge_tasks"


@dataclass(frozen=True)
class Registration:
    """Target of a name.

    Attributes:
        target: the thing itself, or `"module:attribute"` to be imported on first use.
        source: which package brings it, for messages.
    """

    target: Any
    source: str = OWN

    def load(self) -> Any:
        if not isinstance(self.target, str):
            return self.target
        module, _, attribute = self.target.partition(":")
        target = importlib.import_module(module)
        for name in filter(None, attribute.split(".")):
            target = getattr(target, name)
        return target

    def checked(self, about: str, load: Callable[[], Any] | None = None) -> Any:
        """Return it.

        Args:
            about: what it is, for the error.
            load: what loads more than it.

        Raises:
            ConfigError: another package's cannot be loaded. What is wrong with our own is raised as it is.
        """
        try:
            return (load or self.load)()
        except Exception as error:  # whatever somebody else's package does as it is imported
            if self.source == OWN:
                raise
            raise ConfigError(f"{about} of {self.source} cannot be loaded: {first_line(error)}") from error

    def tried(self, about: str, load: Callable[[], Any] | None = None) -> Any:
        """Return as `checked`, or None with a warning where another package's cannot be loaded."""
        try:
            return self.checked(about, load)
        except ConfigError as error:
            if self.source == OWN:
                raise
            logger.warning("{}; it is left out", error)
            return None


class Registry(Generic[Product]):
    """Named things of one kind.

    Args:
        kind: what they are called in messages, such as "judge".
        group: entry-point group through which other packages add theirs. A name that is taken stays what it was.
        own: this package's, in the order that users see.
        also: further entries from elsewhere, read together with the entry points: (name, entry) pairs.
    """

    def __init__(
        self, kind: str, group: str, own: Mapping[str, Any], *, also: Callable[[], Iterable[Any]] = tuple
    ) -> None:
        self.kind = kind
        self.group = group
        self._entries = {name: Registration(target) for name, target in own.items()}
        self._also = also
        self._complete = False
        self._broken: set[str] = set()

    def register(self, name: str, target: Any) -> None:
        """Make a thing known by name for this process; an entry point does so for all.

        Args:
            target: the thing, or `"module:attribute"`.

        Raises:
            ValueError: the name is taken by something else.
        """
        if self._all().get(name, Registration(target)).target != target:
            raise ValueError(f"a {self.kind} named {name!r} is already registered")
        self._entries[name] = Registration(target)

    def names(self) -> list[str]:
        """Every name: our own, then those of other packages."""
        return list(self._all())

    def get(self, name: str) -> Any:
        """Return what a name stands for.

        Raises:
            ConfigError: nothing has this name (names the nearest one), or the package that brings it is broken.
        """
        return lookup(self.kind, name, self._all()).checked(f"{self.kind} {name!r}")

    def each(self) -> Iterator[tuple[str, Any]]:
        """Name and thing of all; what cannot be loaded is left out with one warning."""
        for name in self.names():
            thing = None if name in self._broken else self._entries[name].tried(f"{self.kind} {name!r}")
            if thing is None:
                self._broken.add(name)
            else:
                yield name, thing

    def build(self, name: str, /, **options: Any) -> Product:
        """Call what a name stands for.

        Raises:
            ConfigError: the name or an option is unknown (names the nearest one), or an option is missing.
        """
        factory = self.get(name)
        signature = inspect.signature(factory)
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
            check_names(f"option of {self.kind} {name!r}", options, signature.parameters)
        try:
            signature.bind(**options)
        except TypeError as error:
            raise ConfigError(f"{self.kind} {name!r}: {error}") from None
        product: Product = factory(**options)
        return product

    def _all(self) -> dict[str, Registration]:
        if not self._complete:
            self._complete = True  # first of all: what is read below may ask for a name itself
            for name, entry in [*read_entry_points(self.group), *self._also()]:
                taken = self._entries.setdefault(name, entry)
                if taken != entry:
                    line = f"{self.kind} {name!r} of {entry.source} is not used: {taken.source} has one of this name"
                    logger.warning("{}", line)
        return self._entries


def read_entry_points(group: str) -> list[tuple[str, Registration]]:
    """Names and targets of a group, ours first, without importing any."""
    entries = [(point.name, Registration(point.value, _source(point))) for point in entry_points(group=group)]
    return sorted(entries, key=lambda entry: (entry[1].source != OWN, entry[0]))


def _source(point: Any) -> str:
    # An entry point of ours is our own as much as an entry of a dictionary is.
    package = point.dist.name if point.dist is not None else "an unknown package"
    return OWN if package.replace("_", "-") == "hedge-tasks" else package
