"""Parts of the documentation site beyond Sphinx: pictures of terminals, made by real commands.

A fence ```` ```console picture=NAME ```` has its commands run when the site is built, in a folder
with the examples, and their output stands below it as a picture. The repository has no pictures.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "build" / "pictures"
_FENCE = re.compile(r"^```console picture=(\w+)\n(.*?)^```$", re.M | re.S)
_WIDTH = 110  # columns
_FONT = re.compile(r"@font-face \{.*?\}\n?", re.S)  # from the network


def with_pictures(app: Sphinx, page: str, source: list[str]) -> None:
    """Put a picture below each fence that wants one."""
    folder = app.confdir.joinpath(os.path.relpath(app.srcdir / page, app.confdir)).parent

    def picture(match: re.Match[str]) -> str:
        """The fence, followed by its picture."""
        name, text = match.groups()
        path = PICTURES / f"{name}.svg"
        commands = [line.removeprefix("$ ") for line in text.splitlines() if line[:2] == "$ "]
        draw(commands, path)
        where = os.path.relpath(path, folder.resolve())
        return f"{match[0]}\n\n![What a terminal shows after {commands[-1]}]({where})"

    source[0] = _FENCE.sub(picture, source[0])


def draw(commands: list[str], path: Path) -> None:
    """Run commands one after the other in a folder with the examples, and draw the terminal.

    Raises
    ------
    subprocess.CalledProcessError
        If a command fails.
    """
    settings = {"COLUMNS": str(_WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    console = Console(record=True, width=_WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        place = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        for command in commands:
            printed = subprocess.run(
                ["/bin/sh", "-ec", command],
                cwd=folder,
                env={**os.environ, **settings, "PATH": place},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=True,
            ).stdout
            console.print(Text(f"$ {command}", style="bold"))
            console.print(Text.from_ansi(printed))
        drawing = console.export_svg(title="armpy")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_FONT.sub("", drawing), "utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    """Connect with Sphinx, which calls this."""
    app.connect("source-read", with_pictures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
