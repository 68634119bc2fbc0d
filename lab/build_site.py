"""Build the documentation site: `python lab/build_site.py [FOLDER]`.

Needs the extras `docs` and `test`, and the extensions in `extensions/requirements.txt`.

Warnings are errors: a link or a heading that is not there, a docstring that is not well-formed, a
page that no table of contents has. Nothing is fetched from the network. Open `index.html`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sphinx.cmd.build import main as build

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build into the folder that the command line names; return Sphinx's exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("folder", nargs="?", default=str(ROOT / "build" / "site"))
    folder = parser.parse_args(arguments).folder
    settings = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto"]
    return build([*settings, "-c", str(ROOT / "docs"), str(ROOT), folder])


if __name__ == "__main__":
    sys.exit(main())
