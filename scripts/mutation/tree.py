"""A copy of a source tree, in which files are changed and tests are run."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_NOT_COPIED = (".git", ".venv", ".*cache", "__pycache__", ".hypothesis", "build", "dist")
_KERNELS = Path(".cache", "armpy-tests")
"""Where a tree keeps the kernels that its tests have compiled."""

_MEMORY_LIMIT_BYTES = 12 << 30
_PYTEST = ("-q", "-p", "no:cacheprovider", "--rootdir=.", "--hypothesis-seed=0", "--tb=no")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run of tests ended.

    Parameters
    ----------
    status : int or None
        pytest's exit status; None if it ran out of time.
    output : str
    """

    status: int | None
    output: str


class TreeCopy:
    """A copy of a tree; the tree itself is never changed.

    Parameters
    ----------
    tree : Path
    folder : Path
        Becomes the copy; not there yet.
    python : str
        Interpreter of the environment that the tree's tests need.
    """

    def __init__(self, tree: Path, folder: Path, python: str) -> None:
        self.folder = folder
        self._python = python
        shutil.copytree(tree, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED), symlinks=True)
        if (tree / _KERNELS).is_dir():
            shutil.copytree(tree / _KERNELS, folder / _KERNELS)

    @contextmanager
    def changed(self, path: str, text: str) -> Iterator[None]:
        """Give a file another text for a while."""
        file = self.folder / path
        before = file.read_bytes()
        file.write_text(text, encoding="utf-8")
        _forget_compiled(file)
        try:
            yield
        finally:
            file.write_bytes(before)
            _forget_compiled(file)

    def pytest(self, arguments: Sequence[str], limit_s: float) -> Outcome:
        """Run pytest on the copy and end all processes that it started.

        Parameters
        ----------
        arguments : sequence of str
        limit_s : float
            Seconds that it may take.
        """
        scratch = self.folder.with_name("scratch")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        process = subprocess.Popen(
            [self._python, "-m", "pytest", *_PYTEST, *arguments],
            cwd=self.folder,
            env=self._environment(scratch),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_limit_memory,  # noqa: PLW1509 - this process has no other thread
        )
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return Outcome(None, "")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for left in (self.folder / ".cache").glob("run-*"):
                shutil.rmtree(left, ignore_errors=True)
        return Outcome(process.returncode, output)

    def _environment(self, scratch: Path) -> dict[str, str]:
        """Environment of a process that imports the copy."""
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("ARMPY_", "PYT", "COV"))
        }
        projects = (
            self.folder,
            *self.folder.glob("extensions/*"),
            *self.folder.glob("backends/*"),
            self.folder / "testing",
        )
        path = os.pathsep.join(map(str, projects))
        return environment | {"PYTHONPATH": path, "TMPDIR": str(scratch)}


def _forget_compiled(file: Path) -> None:
    """Delete a file's bytecode: two texts may have one size and come within one second."""
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def _limit_memory() -> None:
    """Let a mutation that takes all memory fail."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))
