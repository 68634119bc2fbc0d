"""Single mutations of a module's source: where they can be made, and the text with one made."""

from __future__ import annotations

import argparse
import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .changes import Change, changes

_UNTOUCHED = (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert)
"""Statements without a result; messages of errors are not judged."""

_LOGS = ("log", "_log", "logger", "vlog")
_TYPES = ("NDArray", "Callable", "TypeVar", "ParamSpec", "NewType")


@dataclass(frozen=True, slots=True)
class Site:
    """One mutation of one module.

    Parameters
    ----------
    module : str
        Its name in the package, ``"workloads.resize"``.
    node : int
        Number of the changed node among those of the module's tree.
    choice : int
        Which of that node's changes.
    line : int
    lines : tuple of int
        The changed line, and those before it of its statement; empty outside functions, where
        code runs at import.
    kind : str
        The action, for people.
    before, after : str
        Text of the node.
    """

    module: str
    node: int
    choice: int
    line: int
    lines: tuple[int, ...]
    kind: str
    before: str
    after: str

    @property
    def text(self) -> str:
        """Where and what, whatever line it is on."""
        return f"{self.module}: {self.kind}: {self.before} -> {self.after}"

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.kind}: {self.before} -> {self.after}"


def sampled(everything: Sequence[Site], options: argparse.Namespace) -> list[Site]:
    """The mutations to try: those that the command line names, or some by its seed.

    Parameters
    ----------
    everything : sequence of Site
    options : argparse.Namespace
        With ``choose``, ``seed``, ``skip`` and ``count``.
    """
    if options.choose:
        return [site for site in everything if site.text in options.choose]
    order = random.Random(options.seed).sample(everything, len(everything))
    return order[options.skip : options.skip + options.count]


def sites(module: str, source: str) -> Iterator[Site]:
    """All mutations of a module, in the order of its tree.

    Parameters
    ----------
    module : str
    source : str

    Notes
    -----
    Annotations and other code for type checkers, decorators, docstrings, imports, what raises
    errors, logs, and `__repr__` stay as they are.
    """
    tree = ast.parse(source)
    left_out = {id(node) for node in _untouched(tree)}
    starts = dict(_statement_starts(tree))
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in left_out:
            continue
        for choice, change in enumerate(changes(node)):
            line = getattr(node, "lineno", 0)
            lines = tuple(range(line, starts[id(node)] - 1, -1)) if id(node) in starts else ()
            before, after = _shown(node), _shown(change.node)
            yield Site(module, number, choice, line, lines, change.kind, before, after)


def mutated(source: str, site: Site) -> str:
    """A module's text with one mutation made; comments are lost.

    Parameters
    ----------
    source : str
        What `site` was found in.
    site : Site
    """
    tree = ast.parse(source)
    target = next(node for number, node in enumerate(ast.walk(tree)) if number == site.node)
    change = list(changes(target))[site.choice]
    return ast.unparse(ast.fix_missing_locations(_Replacing(target, change).visit(tree)))


class _Replacing(ast.NodeTransformer):
    """Puts a change in the place of one node."""

    def __init__(self, target: ast.AST, change: Change) -> None:
        self._target = target
        self._change = change

    def visit(self, node: ast.AST) -> ast.AST:
        """The node, or what stands for it."""
        if node is self._target:
            return ast.copy_location(self._change.node, node)
        return super().generic_visit(node)


def _untouched(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node that is no part of what a module computes."""
    for node in ast.walk(tree):
        for part in _parts_left_out(node):
            yield from ast.walk(part)


def _parts_left_out(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node that are left as they are, with all that is below them."""
    if isinstance(node, _UNTOUCHED):
        yield node
    if isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _is_log(node.value)):
        yield node
    if _is_for_type_checkers(node) or (
        isinstance(node, ast.FunctionDef) and node.name == "__repr__"
    ):
        yield node
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield from node.decorator_list
    for name in ("annotation", "returns"):
        part = getattr(node, name, None)
        if part is not None:
            yield part
    if isinstance(node, ast.ClassDef):
        yield from node.bases
    if isinstance(node, ast.JoinedStr):
        yield node


def _is_log(node: ast.expr) -> bool:
    """Whether an expression writes a line into a log, as ``_log.info("...")`` does."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in _LOGS


def _is_for_type_checkers(node: ast.AST) -> bool:
    """Return whether code is for type checkers only, or changes nothing when run."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value).rpartition(".")[2] in _TYPES
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _TYPES
    return isinstance(node, ast.keyword) and node.arg == "strict"  # of `zip`: a check alone


def _statement_starts(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Each node inside a function, by its identity, and where its innermost statement begins."""

    def below(node: ast.AST, start: int | None) -> Iterator[tuple[int, int]]:
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    inner = start
                    if isinstance(node, ast.FunctionDef) and name == "body":
                        inner = getattr(child, "lineno", None)
                    elif start is not None and isinstance(child, ast.stmt):
                        inner = child.lineno
                    if inner is not None:
                        yield id(child), inner
                    yield from below(child, inner)

    yield from below(tree, None)


def _shown(node: ast.AST) -> str:
    """The first line of a node's text."""
    if isinstance(node, ast.Pass):
        return "nothing"
    return ast.unparse(node).partition("\n")[0]
