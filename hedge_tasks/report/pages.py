"""Pages from templates: everything inside one file, everything escaped, nothing loaded, no script but our own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from hedge_tasks.numbers import Format
from hedge_tasks.report.figures import caption_of, numbers_of
from hedge_tasks.report.glossary import explain, explain_beside, explain_name, used_terms
from hedge_tasks.report.texts import clean

PACKAGE = "hedge_tasks.report"

_STYLES = ("page.css", "figures.css")
"""Style sheets of every page."""

WITH_FIGURES = ("page.js", "terms.js", "figures.js")
"""Scripts of a page with figures and terms."""


@dataclass(frozen=True)
class View:
    """A page about the same run, as the others link to it.

    Attributes:
        name: for people.
        address: where it is; "" for the page itself.
    """

    name: str
    address: str = ""


def render(
    template: str,
    *,
    scripts: Sequence[str],
    styles: Sequence[str] = (),
    views: Sequence[View] = (),
    package: str = PACKAGE,
    asks: str = "",
    **values: Any,
) -> str:
    """Render a template.

    Args:
        template: its name, in the folder `templates` of the package, else of this one.
        scripts: the code that the page runs, in this order.
        styles: further style sheets, as text.
        views: pages about the same run, this one among them.
        package: whose template it is.
        asks: what the scripts may connect to, as a Content-Security-Policy names it; `'self'` is the page's own server.
        values: what the template shows. Texts are escaped; what must not be is `markupsafe.Markup`.
    """
    from markupsafe import Markup

    page: str = (
        _environment(package)
        .get_template(template)
        .render(
            policy=_policy(scripts, asks),
            # Files of this package, not text from outside.
            style=Markup("\n".join([*map(asset, _STYLES), *styles])),
            scripts=[Markup(code) for code in scripts],
            views=views,
            **values,
        )
    )
    return page


@cache
def asset(name: str, package: str = PACKAGE) -> str:
    """Return a style sheet or script of a package, from its folder `assets`."""
    return (resources.files(package) / "assets" / name).read_text("utf-8")


@cache
def _environment(package: str) -> Any:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, PACKAGE))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Whatever a template shows went through here: numbers as they are, texts without control characters.
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    # No line ends between a number and its unit.
    environment.filters["unbroken"] = lambda text: clean(text).replace(" %", "\N{NO-BREAK SPACE}%")
    environment.filters["fixed"] = lambda value, digits=3: Format(digits)(value)
    for filter_ in (explain, explain_beside, explain_name, used_terms, caption_of, numbers_of):
        environment.filters[filter_.__name__] = filter_
    return environment


def _policy(scripts: Sequence[str], asks: str = "") -> str:
    """Content-Security-Policy: only these scripts run, pictures are inside the page, nothing is fetched or sent.

    A live page connects to its own server alone.
    """
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" for code in scripts
    )
    sources = {"default-src": "'none'", "script-src": hashes, "style-src": "'unsafe-inline'", "img-src": "data:"}
    if asks:
        sources["connect-src"] = asks
    return "; ".join(
        f"{name} {value}" for name, value in {**sources, "base-uri": "'none'", "form-action": "'none'"}.items()
    )
