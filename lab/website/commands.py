"""Outputs of commands, and pages that they write, made by real commands when the site is built.

A fence has its commands run in a folder with the project's examples and the model of digits on real
numbers. Its settings say what stands below it on the site; the repository has none of it:

- ```` ```console shown=NAME ````: the output, as a block of text
- ```` ```console page=FILE.html ````: a page that the commands wrote, live
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "build" / "site_results"
"""What the commands made: outputs by their names, pages for the site's folder."""

PAGES = "pages"
"""Folder of the pages, in `RESULTS` and in the site."""

_FENCE = re.compile(
    r"^```\w+(?P<settings>(?: (?:shown|page)=[\w.]+)+)\n(?P<text>.*?)^```$", re.M | re.S
)
_WIDTH = 110  # columns
_MOST_LINES = 40  # of a failed command's output


def connect(app: Sphinx) -> None:
    """Connect with Sphinx."""
    app.connect("env-before-read-docs", run_all)
    app.connect("source-read", add_results)
    app.connect("build-finished", copy_pages)


def run_all(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Run the commands of all pages that are read, one after the other, so that times are true."""
    for docname in docnames:
        text = env.doc2path(docname).read_text("utf-8")
        for match in _FENCE.finditer(text):
            _make(_settings(match), _commands(match["text"]))


def add_results(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the results of commands below their fences."""

    def results(match: re.Match[str]) -> str:
        """The fence, followed by its results."""
        command = _commands(match["text"])[-1]
        parts = [match[0]]
        for kind, name in _settings(match).items():
            if kind == "shown":
                text = (RESULTS / f"{name}.txt").read_text("utf-8")
                parts.append(f"````text\n{text.rstrip()}\n````")
            else:
                site = Path(app.outdir)
                where = os.path.relpath(site / PAGES / name, (site / page).parent)
                parts.append(_raw(_live_page(where, command)))
        return "\n\n".join(parts)

    source[0] = _FENCE.sub(results, source[0])


def copy_pages(app: Sphinx, exception: Exception | None) -> None:
    """Put the pages that commands wrote into the site."""
    if exception is None and (RESULTS / PAGES).is_dir():
        shutil.copytree(RESULTS / PAGES, app.outdir / PAGES, dirs_exist_ok=True)


def run(commands: list[str], folder: Path) -> str:
    """Run commands one after the other in a folder, and return all their output.

    Raises
    ------
    ExtensionError
        If a command fails; it has the end of the command's output.
    """
    programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    outputs = []
    for command in commands:
        done = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=folder,
            env={**os.environ, "COLUMNS": str(_WIDTH), "PATH": programs},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            end = "\n".join(done.stdout.splitlines()[-_MOST_LINES:])
            raise ExtensionError(f"exit code {done.returncode} of: {command}\n{end}")
        outputs.append(done.stdout)
    return "".join(outputs)


def _make(settings: dict[str, str], commands: list[str]) -> None:
    """Run the commands of a fence, and keep what it wants of them."""
    (RESULTS / PAGES).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "examples", folder / "examples")
        writer = [sys.executable, str(ROOT / "lab" / "float_digits.py")]
        subprocess.run([*writer, str(folder / "digits_float.tflite")], check=True)
        text = run(commands, folder)
        if shown := settings.get("shown"):
            (RESULTS / f"{shown}.txt").write_text(text, "utf-8")
        if page := settings.get("page"):
            shutil.copy(folder / page, RESULTS / PAGES)


def _commands(text: str) -> list[str]:
    """Commands of a fence, without the prompt."""
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def _settings(fence: re.Match[str]) -> dict[str, str]:
    """Kinds of results that a fence wants, and their names."""
    return dict(word.split("=") for word in fence["settings"].split())


def _live_page(where: str, command: str) -> str:
    """A page within the page, and a link that opens it."""
    return (
        f'<iframe class="live" src="{where}" loading="lazy"'
        f' title="Page that {escape(command)} wrote"></iframe>\n'
        f'<p class="live-link"><a href="{where}">Open this page in the whole window</a></p>'
    )


def _raw(html: str) -> str:
    """HTML as a part of a Markdown page."""
    return f"```{{raw}} html\n{html}\n```"
