"""Which judge: from a task's YAML, the command line or the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io import options
from hedge_tasks.io.outside import parse_json
from hedge_tasks.judging.base import Case, Judge, Verdict, build_judge, judge_names

ENVIRONMENT = "HEDGE_JUDGE"
"""Names a judge that replaces the one in the task's YAML."""

LABELS = "hedge_labels"
"""Folder of stored labels in lmms-eval's output folder."""

_SECRETS = ("key", "token", "secret", "password")

AnyJudge = TypeVar("AnyJudge", bound=Judge)

Spec = str | Mapping[str, Any] | Sequence[Any]
"""A name, `name:key=value,...`, JSON text, a mapping with `name` and options, or a list of these (a panel)."""


def configured_judge(spec: Spec) -> Judge:
    """The judge that the environment names, or else the one that is given.

    Raises:
        ConfigError: as `judge_from`.
    """
    from_environment = os.environ.get(ENVIRONMENT, "").strip()
    if not from_environment:
        return judge_from(spec)
    try:
        return judge_from(from_environment)
    except ConfigError as error:
        raise ConfigError(f"{ENVIRONMENT}: {error}") from None


def judge_from(spec: Spec) -> Judge:
    """Build a judge; a list of several becomes a panel that votes.

    Raises:
        ConfigError: a name or option is unknown (named with the nearest valid one) or a value makes no sense.

    Example:
        >>> judge_from("none").settings()
        {'judge': 'none', 'version': '1'}
    """
    settings = parse_spec(spec)
    if len(settings) > 1:
        return build_judge("panel", judges=settings)
    chosen = dict(settings[0])
    return build_judge(chosen.pop("name"), **chosen)


def required_judge(spec: Spec, kind: type[AnyJudge], task: str) -> AnyJudge:
    """The judge of a task whose replies only one judge can read, whatever the environment names for other tasks.

    Args:
        spec: of the task's YAML.
        kind: class that the judge must be of, which has `name`.
        task: its name, for the error.

    Raises:
        ConfigError: the specification names another judge, or an option makes no sense.
    """
    judge = judge_from(spec)
    if not isinstance(judge, kind):
        raise ConfigError(f"{task}: the judge must be {getattr(kind, 'name', kind.__name__)!r}, got {judge.name!r}")
    return judge


def parse_spec(spec: Spec) -> list[dict[str, Any]]:
    """The settings of the judges that a specification names: mappings with `name`, at least one.

    Raises:
        ConfigError: it is none; says what was expected.
    """
    if isinstance(spec, str):
        return _from_text(spec.strip())
    if isinstance(spec, Mapping):
        return [_checked(spec)]
    if isinstance(spec, Sequence) and not isinstance(spec, bytes) and spec:
        return [settings for part in spec for settings in parse_spec(part)]
    raise ConfigError(f"judge: expected a name, a mapping with 'name' or a list of these, got {spec!r}")


def _from_text(text: str) -> list[dict[str, Any]]:
    if text.startswith(("{", "[")):
        try:
            spec = parse_json(text, "judge")
        except DataError as error:
            raise ConfigError(str(error)) from None
        return parse_spec(spec)
    return [_checked(options.named("judge", text) if text else {})]


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    name = settings.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError("judge: 'name' is missing; there are " + ", ".join(judge_names()))
    if name not in judge_names():
        raise unknown("judge", name, judge_names())
    for key in settings:
        if any(part in _SECRETS for part in str(key).lower().split("_")):
            raise ConfigError(f"judge {name!r}: {key!r} does not belong here, put it into the environment")
    return dict(settings)


def parts_of(judge: Judge) -> Iterator[Judge]:
    """A judge, and the judges that it rests on (its attribute `parts`): a panel's, a fallback's, a report's."""
    yield judge
    for part in getattr(judge, "parts", ()):
        yield from parts_of(part)


def keep_labels(judge: Judge, folder: Path | None) -> None:
    """Have a judge keep what it is told by a model in a folder, and ask nothing that is there. None keeps nothing.

    Judges that ask no model (`rule`, `labels`) have nothing to keep.
    """
    for part in parts_of(judge):
        if (keep := getattr(part, "keep_labels", None)) is not None:
            keep(folder)


def check_judge(judge: Judge, cases_have_images: bool = True) -> None:
    """Fail now, not after hours of sampling, where it can be known that a judge will not work.

    Raises:
        ConfigError, DataError: what is missing.
    """
    for part in parts_of(judge):
        if (check := getattr(part, "check", None)) is not None:
            check(cases_have_images)


def verdict_record(case: Case, verdict: Verdict) -> dict[str, Any]:
    """A verdict for a run file, with what judging it once more needs and the answer set does not hold.

    Its `judge` names the version as well: two versions of a judge are two judges wherever runs are compared.
    """
    extra = {"description": case.description, "image_key": case.image_key}
    named = {**verdict.to_dict(), "judge": f"{verdict.judge} {verdict.version}"}
    return named | {key: value for key, value in extra.items() if value is not None}
