"""Pages of documentation that are followed from top to bottom: what they show is what runs."""

from __future__ import annotations

import os
import re
import site
import subprocess
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(?P<kind>\w+)(?P<settings>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One fenced block of the page."""

    kind: str
    settings: dict[str, str]
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """A page's blocks in order."""
    text = page.read_text("utf-8")
    found = []
    for match in _FENCE.finditer(text):
        settings = dict(word.split("=", 1) for word in match["settings"].split())
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(match["kind"], settings, match["text"], line))
    return found


class Reader:
    """Somebody who does what a page says, in an environment and a folder of their own.

    Parameters
    ----------
    page : Path
    home : Path
        An empty folder.
    """

    def __init__(self, page: Path, home: Path) -> None:
        self.page = page
        self.environment = home / "environment"
        self.folder = home / "folder"
        self.folder.mkdir()
        self._make_environment()

    def read(self) -> None:
        """Do all that the page says."""
        actions = {"console": self.follow, "diff": self.change}
        actions |= {"python": self.write, "toml": self.write}
        for block in blocks(self.page):
            if block.kind in actions:
                actions[block.kind](block)

    def _make_environment(self) -> None:
        """An environment with what is installed here, in which more can be installed."""
        venv.create(self.environment, with_pip=False, symlinks=True)
        (packages,) = self.environment.glob("lib/python*/site-packages")
        here = [path for path in site.getsitepackages() if Path(path).is_dir()]
        lines = [f"import site; site.addsitedir({path!r})" for path in here]
        (packages / "surroundings.pth").write_text("\n".join(lines))
        for name in ("armpy", "pip", "pytest"):
            script = self.environment / "bin" / name
            script.write_text(f'#!/bin/sh\nexec "{self.environment}/bin/python" -m {name} "$@"\n')
            script.chmod(0o755)

    def run(self, command: str) -> tuple[int, str]:
        """Type one command; exit code and everything that it prints."""
        if command.startswith("cd "):
            self.folder = (self.folder / command.removeprefix("cd ")).resolve(strict=True)
            return 0, ""
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("ARMPY_", "PYTHON"))}
        variables |= {
            "PATH": f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "ARMPY_CACHE_DIR": str(self.environment / "cache"),
            # What is needed is there already; nothing comes from the network.
            "PIP_NO_INDEX": "1",
            "PIP_NO_CACHE_DIR": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it the wrong way round: this turns it off
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def write(self, block: Block) -> None:
        """Write a file as it stands on the page."""
        (self.folder / block.settings["title"]).write_text(block.text, "utf-8")

    def change(self, block: Block) -> None:
        """Change a file as a diff on the page says."""
        path = self.folder / block.settings["title"]
        lines = [(line[:1], line[1:]) for line in block.text.splitlines(keepends=True)]
        old = "".join(text for sign, text in lines if sign != "+")
        new = "".join(text for sign, text in lines if sign != "-")
        before = path.read_text("utf-8")
        assert before.count(old) == 1, f"{self.page}:{block.line}: the file does not have this text"
        path.write_text(before.replace(old, new), "utf-8")

    def follow(self, block: Block) -> None:
        """Type the commands of a block and compare what they print with the page."""
        commands = list(commands_of(block.text))
        for number, (command, expected) in enumerate(commands):
            is_last = number == len(commands) - 1
            wanted = int(block.settings.get("exit", "0")) if is_last else 0
            code, output = self.run(command)
            where = f"{self.page}:{block.line}: $ {command}\n{output}"
            assert code == wanted, where
            missing = first_missing(expected, output)
            assert missing is None, f"{where}\nThe page shows: {missing}"


def commands_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it is to print."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, *expected = part.splitlines()
        yield command, expected


def first_missing(expected: list[str], output: str) -> str | None:
    """The first line that is not in an output, in order; ``...`` stands for anything.

    Notes
    -----
    White space does not count. An output may have more lines than the page, and more around them.
    """
    printed = iter([" ".join(line.split()) for line in output.splitlines()])
    for line in expected:
        parts = [re.escape(" ".join(part.split())) for part in line.split("...")]
        pattern = re.compile(r"\s?.*\s?".join(parts))
        if not any(pattern.search(text) for text in printed):
            return line
    return None
