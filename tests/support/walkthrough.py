"""Pages of documentation that are followed from top to bottom, exactly as they are."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import page_files, page_session
from tests.support.pages import ROOT, Block, blocks

__all__ = ["INSTALLS", "Reader", "blocks", "commands_of", "first_missing"]

INSTALLS = "installs from a package index"
"""Reason of blocks that are run in nightly tests, in an environment without any package."""


def _venv() -> ModuleType:
    """Python's module `venv`; Windows' embeddable package has none."""
    module: ModuleType = pytest.importorskip("venv", reason="this Python makes no environments")
    return module


class Reader:
    """A reader who follows a page, in an environment and a folder of their own.

    Files that the page takes for granted are put into the folder beforehand, see `page_files`.
    The page's Python runs in one process, from top to bottom, as in a notebook; its commands run
    in one shell, whose folder and variables stay from block to block.

    `home`: an empty folder. `nightly`: whether blocks that only nightly tests run are run as well.
    If one of them installs from the package index, the environment has pip alone, and the folder
    is a copy of the checkout (or lies beside it, if the page says so): what the page installs is
    all that there is.
    """

    def __init__(self, page: Path, home: Path, *, nightly: bool = False) -> None:
        self.page = page
        self.nightly = nightly
        self.environment = home / "environment"
        self.folder = home / "folder"
        self.folder.mkdir()
        self.output = ""  # of the last block
        self._session: subprocess.Popen[str] | None = None
        self._shell_state = home / "shell"
        self.installs = nightly and any(block.nightly == INSTALLS for block in blocks(page))
        if self.installs:
            _venv().create(self.environment, with_pip=True, symlinks=True)
            self._copy_checkout(home)
        else:
            self._make_environment()
        self.variables = self._variables(home)
        if "dynamic_examples" in page.parent.parts:  # read where it lies
            page_files.copy(page.parent, self.folder)
        page_files.put(page.read_text("utf-8"), self.folder)

    def read(self) -> None:
        """Do all that the page says."""
        try:
            for block in blocks(self.page):
                if self.is_followed(block):
                    self.do(block)
        finally:
            if self._session:
                self._session.communicate()

    def finds_packages(self) -> bool:
        """Whether pip reaches the package index."""
        code, _ = self.run("pip download --quiet --no-deps --dest downloaded pluggy")
        return code == 0

    def is_followed(self, block: Block) -> bool:
        """Whether a block is run by this reader."""
        if block.not_run or (block.nightly and not self.nightly):
            return False
        return all(map(find_spec, block.needs))

    def do(self, block: Block) -> None:
        """Do what one block says; fail where it does not work or shows something else."""
        if "title" in block.settings and block.kind != "diff":
            self.write(block)
            return
        actions: dict[str, Callable[[Block], object]] = {
            "console": self.follow,
            "diff": self.change,
            "json": lambda block: json.loads(block.text),
            "python": self.execute,
            "sh": self.type,
            "text": self.compare,
            "toml": lambda block: tomllib.loads(block.text),
        }
        if block.kind.startswith("{"):
            return  # of the site, whose build tries it
        assert block.kind in actions, f"{self.where(block)}: unknown kind of block {block.kind!r}"
        actions[block.kind](block)

    def where(self, block: Block) -> str:
        """Where a block is, for messages."""
        return f"{self.page}:{block.line}"

    def _copy_checkout(self, home: Path) -> None:
        """Copy the checkout's files into the folder, or beside it if the page takes them there."""
        checkout = home / "armpy" if "../armpy" in self.page.read_text("utf-8") else self.folder
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, checkout / name)
        subprocess.run(["git", "init", "--quiet"], cwd=checkout, check=True)

    def _make_environment(self) -> None:
        """An environment with the packages installed here, in which more can be installed."""
        _venv().create(self.environment, with_pip=False, symlinks=True)
        (packages,) = self.environment.glob("lib/python*/site-packages")
        here = [path for path in site.getsitepackages() if Path(path).is_dir()]
        lines = [f"import site; site.addsitedir({path!r})" for path in here]
        (packages / "surroundings.pth").write_text("\n".join(lines))
        scripts = {
            "armpy": "armpy",
            "pip": "pip",
            "pytest": "pytest",
        }
        for name, module in scripts.items():
            script = self.environment / "bin" / name
            python = self.environment / "bin" / "python"
            script.write_text(f'#!/bin/sh\nexec "{python}" -m {module} "$@"\n')
            script.chmod(0o755)

    def _variables(self, home: Path) -> dict[str, str]:
        """Environment variables: none that says how this run of the tests is to go."""
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("ARMPY_", "PYTHON"))}
        own = home / "cache"
        is_cleared = any("cache clear" in block.text for block in blocks(self.page))
        variables |= {
            "PATH": f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
            # Compiled once for all pages.
            "ARMPY_CACHE_DIR": str(own if is_cleared else os.environ.get("ARMPY_CACHE_DIR", own)),
            "ARMPY_NUMBA_MACHINE": "typical",
            "BROWSER": "true",  # the program of that name, which ignores the page to open
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        if self.installs:
            return variables
        # All dependencies are there already; nothing comes from the network.
        return variables | {
            "PIP_NO_INDEX": "1",
            "PIP_NO_CACHE_DIR": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it the wrong way round: this turns it off
        }

    def run(self, command: str) -> tuple[int, str]:
        """Type one command; exit code and everything that it prints."""
        record = """trap 'env -0 > "$0.variables"; pwd -P > "$0.folder"' EXIT\n"""
        done = subprocess.run(
            # Each variable that a command sets is exported, so that the next shell has it, too.
            ["/bin/sh", "-aec", record + command, str(self._shell_state)],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        variables = self._shell_state.with_suffix(".variables").read_text("utf-8")
        pairs = (line.partition("=") for line in variables.split("\0") if line)
        self.variables = {name: value for name, _, value in pairs}
        self.folder = Path(self._shell_state.with_suffix(".folder").read_text("utf-8").rstrip("\n"))
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
        assert before.count(old) == 1, f"{self.where(block)}: the file does not have this text"
        # Python takes a text of equal size, changed in the same second, for the compiled one.
        later_s = path.stat().st_mtime + 1
        path.write_text(before.replace(old, new), "utf-8")
        os.utime(path, (later_s, later_s))

    def follow(self, block: Block) -> None:
        """Type the commands of a block and compare their output with the page."""
        commands = list(commands_of(block.text))
        for number, (command, expected) in enumerate(commands):
            is_last = number == len(commands) - 1
            wanted = int(block.settings.get("exit", "0")) if is_last else 0
            code, self.output = self.run(command)
            where = f"{self.where(block)}: $ {command}\n{self.output}"
            assert code == wanted, where
            missing = first_missing(expected, self.output)
            assert missing is None, f"{where}\nThe page shows: {missing}"

    def type(self, block: Block) -> None:
        """Type all commands of a block at once; each has to succeed, or the last end as stated."""
        code, self.output = self.run(block.text)
        wanted = int(block.settings.get("exit", "0"))
        assert code == wanted, f"{self.where(block)}: exit code {code}\n{self.output}"

    def execute(self, block: Block) -> None:
        """Run Python after all the Python before it."""
        if self._session is None:
            self._session = subprocess.Popen(
                ["python", page_session.__file__],  # of the environment that the commands activated
                cwd=self.folder,
                env=self.variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._session.stdin is not None
        assert self._session.stdout is not None
        request = {"file": str(self.page), "line": block.line + 1, "text": block.text}
        print(json.dumps(request), file=self._session.stdin, flush=True)
        line = self._session.stdout.readline()
        assert line, f"{self.where(block)}: the process ended with code {self._session.wait()}"
        answer = json.loads(line)
        self.output = answer["output"]
        assert not answer["error"], f"{self.where(block)}\n{answer['error']}"

    def compare(self, block: Block) -> None:
        """Compare a block of output with the output of the block before it."""
        if "output" not in block.settings:
            return  # a drawing, a message from another machine
        missing = first_missing(block.text.splitlines(), self.output)
        assert missing is None, f"{self.where(block)} shows: {missing}\nPrinted:\n{self.output}"


def commands_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it is to print."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, *expected = part.splitlines()
        yield command, expected


_MEASURED = re.compile(
    r"\d[\d.,]*(?= (?:us|ms|s|min|pictures/s)\b)|\d+(?= (?:programs?|kernels?)\b)"
    r"|\d+(?= (?:passed, |answered elsewhere, |unsupported in ))|\d+(?=; of its claims)"
)
"""Numbers that differ from run to run: durations, rates, what caches had; sums of cases of the
conformance kit, which grows."""


def first_missing(expected: list[str], output: str) -> str | None:
    """The first line that is not in an output, in order; ``...`` stands for anything.

    Notes
    -----
    White space does not count, nor does the value of a measured number. An output may have more
    lines than the page, and more around them. A line of the output may be wrapped on the page: a
    line that goes on where the one before has ended belongs to the same line of the output.
    """
    printed = iter([_comparable(line) for line in output.splitlines()])
    rest = ""  # of the line of the output that has the line before
    for line in expected:
        parts = [re.escape(part.strip()) for part in _comparable(line).split("...")]
        pattern = re.compile(r"\s?.*\s?".join(parts))
        match = pattern.match(rest) if rest else None
        if match is None:
            match = next(filter(None, map(pattern.search, printed)), None)
        if match is None:
            return line
        rest = match.string[match.end() :].lstrip()
    return None


def _comparable(line: str) -> str:
    """A line with single blanks, and 0 for each measured number."""
    return _MEASURED.sub("0", " ".join(line.split()))
