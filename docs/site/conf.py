"""Sphinx configuration. What is built is a folder that `build.py` has put together, never the repository itself."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from hedge_tasks import __version__

project = "hedge-tasks"
author = "hedge-tasks"
project_copyright = "Apache-2.0"
version = release = __version__

extensions = ["mathml", "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a README may begin where it likes

nb_execution_mode = "off"  # they have been run, see notebooks.py
exclude_patterns = ["downloads"]

default_role = "code"  # as in docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"hedge-tasks {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"footer_icons": []}
