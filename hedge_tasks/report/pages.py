"""Pages from templates: everything inside one file, everything escaped, nothing loaded, no script but our own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from hedge_tasks.numbers import Format, Table
from hedge_tasks.report.plots.charts import Chart
from hedge_tasks.report.texts import clean, script_json

if TYPE_CHECKING:
    from markupsafe import Markup

PACKAGE = "hedge_tasks.report"

_LONGEST = 10_000_000


def render(
    template: str, *, scripts: Sequence[str], styles: Sequence[str] = (), package: str = PACKAGE, **values: Any
) -> str:
    """Render a template.

    Args:
        template: its name, in the folder `templates` of the package, else of this one.
        scripts: the code that the page runs, in this order.
        styles: further style sheets, as text.
        package: whose template it is.
        values: what the template shows. Texts are escaped; what must not be is `markupsafe.Markup`.
    """
    from markupsafe import Markup

    page: str = (
        _environment(package)
        .get_template(template)
        .render(
            policy=_policy(scripts),
            # Files of this package, not text from outside.
            style=Markup("\n".join([asset("page.css"), *styles])),
            scripts=[Markup(code) for code in scripts],
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
    environment.filters.update(
        # No line ends between a number and its unit.
        unbroken=lambda text: clean(text).replace(" %", "\N{NO-BREAK SPACE}%"),
        fixed=lambda value, digits=3: Format(digits)(value),
        html=_html_of,
        picture=_picture_of,
        data=_data_of,
        address=_address_of,
    )
    return environment


def _html_of(table: Table) -> Markup:
    """Return a table, which escapes its texts itself."""
    from markupsafe import Markup

    return Markup(clean(table.to_html(), _LONGEST))


def _picture_of(chart: Chart) -> Markup:
    """Return the address of a chart as a picture: in one of its own, no name in it can meet one of another figure."""
    from markupsafe import Markup

    from hedge_tasks.report.plots.drawing import svg_of

    return Markup(f"data:image/svg+xml;base64,{base64.b64encode(svg_of(chart, title=False).encode()).decode()}")


def _data_of(value: Any) -> Markup:
    """Return data for a script element, which nothing in it can end."""
    from markupsafe import Markup

    return Markup(script_json(value))


def _address_of(address: str) -> Markup:
    """Return the address of a small picture, however long it is."""
    from markupsafe import Markup, escape

    return Markup(escape(address))


def _policy(scripts: Sequence[str]) -> str:
    """Content-Security-Policy: only these scripts run, pictures are inside the page, nothing is fetched or sent."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" for code in scripts
    )
    sources = {"default-src": "'none'", "script-src": hashes, "style-src": "'unsafe-inline'", "img-src": "data:"}
    sources |= {"base-uri": "'none'", "form-action": "'none'"}
    return "; ".join(f"{name} {value}" for name, value in sources.items())
