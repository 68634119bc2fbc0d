"""Single mutations of a module's source: where they can be made, and the text with one made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .changes import Change, changes

_UNTOUCHED = (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert)
"""Statements without a result; messages of errors are not judged."""


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
    kind : str
        What is done, for people.
    before, after : str
        Text of the node.
    """

    module: str
    node: int
    choice: int
    line: int
    kind: str
    before: str
    after: str

    @property
    def text(self) -> str:
        """Where and what, whatever line it is on."""
        return f"{self.module}: {self.kind}: {self.before} -> {self.after}"

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.kind}: {self.before} -> {self.after}"


def sites(module: str, source: str) -> Iterator[Site]:
    """All mutations of a module, in the order of its tree.

    Parameters
    ----------
    module : str
    source : str

    Notes
    -----
    Annotations, decorators, docstrings, imports and what raises errors stay as they are.
    """
    tree = ast.parse(source)
    left_out = {id(node) for node in _untouched(tree)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in left_out:
            continue
        for choice, change in enumerate(changes(node)):
            line = getattr(node, "lineno", 0)
            before, after = _shown(node), _shown(change.node)
            yield Site(module, number, choice, line, change.kind, before, after)


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
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
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


def _shown(node: ast.AST) -> str:
    """The first line of a node's text."""
    if isinstance(node, ast.Pass):
        return "nothing"
    return ast.unparse(node).partition("\n")[0]
