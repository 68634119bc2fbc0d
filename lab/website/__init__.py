"""Parts of the documentation site beyond Sphinx and its theme.

- `commands`: outputs and pages that commands of the project make when the site is built
- `navigation`: the list of pages at the side, and the pages that a search finds
- `reference`: pages of the reference that follow from definitions
- `tables`: marks wide tables
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import commands, navigation, reference, tables

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, object]:
    """Connect with Sphinx, which calls this."""
    for part in (commands, navigation, reference, tables):
        part.connect(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
