"""How Sphinx builds the documentation site: `python lab/build_site.py`.

The source folder is the project's, so that links between pages are the same here and in the files.
"""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT)]

project = "armpy"
author = "the authors of armpy"
project_copyright = "the authors of armpy"
version = release = version_of("armpy")
language = "en"

root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/**/*.md",
    "docs/reference/api/*.rst",
    "backends/**/README.md",
    "extensions/*/README.md",
    "examples/**/README.md",
    "lab/README.md",
]
exclude_patterns = ["**/.*", "build", "dist", "tests", "**/*.egg-info"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "website",
]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say them, with shapes
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"
default_role = "py:obj"
suppress_warnings = ["ref.python"]  # `size_bytes` in a docstring may be any of several
strip_signature_backslash = True

html_theme = "furo"
html_title = "armpy"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_extra_path = ["_root"]
html_copy_source = False
html_show_sphinx = False
html_show_sourcelink = False
html_theme_options = {
    "top_of_page_buttons": [],
    "navigation_with_keys": True,
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
