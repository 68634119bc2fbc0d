"""Sides of a comparison: a source tree, and what it runs on."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from .trees import Store, Tree, TreeError


@dataclass(frozen=True)
class Side:
    """A source tree, and what it runs on.

    Parameters
    ----------
    name : str
        The user's name for it.
    tree : Tree
    backend : str
        Empty for each of those that are compared.
    isa : str
        Instruction set of NumbaAcc; the processor's best if empty.
    threads : int
        Of NumbaAcc.
    relaxed : bool
        Whether NumbaAcc may round products of float32 to bfloat16.
    python : tuple of str
        Command that starts the Python.
    root : str
        What that Python writes ahead of this system's absolute paths, as ``Z:`` under Wine.
    """

    name: str
    tree: Tree
    backend: str = ""
    isa: str = ""
    threads: int = 1
    relaxed: bool = False
    python: tuple[str, ...] = (sys.executable,)
    root: str = ""

    @classmethod
    def named(cls, text: str, store: Store, repository: Path) -> Side:
        """A side as the command line names it: ``TREE[,KEY=VALUE...]``.

        Raises
        ------
        TreeError
            If there is no such tree or key.
        """
        tree, *settings = text.split(",")
        side = cls(text, Tree.named(tree, store, repository))
        for setting in settings:
            key, _, value = setting.partition("=")
            match key:
                case "backend":
                    side = replace(side, backend=value)
                case "isa":
                    side = replace(side, isa=value)
                case "root":
                    side = replace(side, root=value)
                case "threads":
                    side = replace(side, threads=int(value))
                case "relaxed":
                    side = replace(side, relaxed=True)
                case "python":
                    side = replace(side, python=tuple(shlex.split(value)))
                case _:
                    raise TreeError(
                        f"unknown key '{key}' of {text}. Expected one of backend, isa, threads, "
                        "relaxed, python, root"
                    )
        return side

    def on(self, backend: str) -> Side:
        """The same on a backend, unless it names one."""
        return replace(self, backend=self.backend or backend)

    def is_like(self, other: Side) -> bool:
        """Whether the other side has to give the same bits and placements."""
        mine, others = (
            (side.backend, side.isa, side.relaxed, side.python) for side in (self, other)
        )
        return mine == others

    @property
    def conditions(self) -> str:
        """What answers depend on besides the tree and the subjects."""
        return repr((self.backend, self.isa, self.threads, self.relaxed, self.python))

    def __str__(self) -> str:
        return f"{self.backend} in {self.name}"
