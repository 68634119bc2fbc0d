"""What a single mutation can make of a node of a syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """A node's replacement, and the action, for people."""

    kind: str
    node: ast.AST


_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
"""Operators whose operands cannot change places."""

_NAMES = {
    "minimum": ("maximum",),
    "maximum": ("minimum",),
    "min": ("max",),
    "max": ("min",),
    "argmin": ("argmax",),
    "argmax": ("argmin",),
    "any": ("all",),
    "all": ("any",),
    "floor": ("ceil", "rint"),
    "ceil": ("floor",),
    "rint": ("floor", "trunc"),
    "trunc": ("floor", "rint"),
    "round_half_away": ("rint", "floor"),
    "add": ("subtract",),
    "subtract": ("add",),
    "multiply": ("add",),
    "divide": ("multiply",),
    "left_shift": ("right_shift",),
    "right_shift": ("left_shift",),
    "zeros": ("ones",),
    "ones": ("zeros",),
    "zeros_like": ("ones_like",),
    "ones_like": ("zeros_like",),
    "float64": ("float32",),
    "float32": ("float16",),
    "int64": ("int32",),
    "int32": ("int16",),
    "uint64": ("uint32",),
    "uint32": ("uint16",),
    "SAME": ("VALID",),
}
"""Functions and data types, and those they are confused with."""

_IN_NUMPY = ("round_half_away",)
"""Functions whose counterparts are NumPy's."""

_PASSING_THROUGH = ("clip", "maximum", "minimum", "abs", "rint", "round_half_away", "where")
"""Functions that may be left out: their first argument stands for them (`where`: the second)."""


def changes(node: ast.AST) -> Iterator[Change]:
    """Everything that can be made of a node, in a fixed order."""
    if isinstance(node, ast.Compare):
        yield from _comparison(node)
    elif isinstance(node, ast.BinOp):
        yield from _arithmetic(node)
    elif isinstance(node, ast.UnaryOp):
        if not isinstance(node.op, ast.UAdd):
            yield Change("operator left out", node.operand)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield Change("and/or", ast.BoolOp(other, node.values))
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, ast.Attribute | ast.Name):
        yield from _name(node)
    elif isinstance(node, ast.Slice):
        yield from _slice(node)
    elif isinstance(node, ast.stmt | ast.IfExp):
        yield from _statement(node)


def _comparison(node: ast.Compare) -> Iterator[Change]:
    """The next and the opposite comparison."""
    for position, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            changed = copy.copy(node)
            changed.ops = [*node.ops[:position], other(), *node.ops[position + 1 :]]
            yield Change("comparison", changed)


def _arithmetic(node: ast.BinOp) -> Iterator[Change]:
    """Another operator; the operands in the other order."""
    other = _ARITHMETIC.get(type(node.op))
    if other is not None:
        yield Change("operator", ast.BinOp(node.left, other(), node.right))
    if isinstance(node.op, _ORDERED):
        yield Change("operands", ast.BinOp(node.right, node.op, node.left))


def _constant(node: ast.Constant) -> Iterator[Change]:
    """The other truth value; the next numbers."""
    value = node.value
    if isinstance(value, bool):
        yield Change("constant", ast.Constant(not value))
    elif isinstance(value, int | float):
        yield Change("constant", ast.Constant(value + 1))
        less = value - 1
        number = ast.Constant(abs(less))
        yield Change("constant", number if less >= 0 else ast.UnaryOp(ast.USub(), number))


def _call(node: ast.Call) -> Iterator[Change]:
    """The first two arguments in the other order; a clamp or a rounding left out."""
    arguments = node.args
    if any(isinstance(argument, ast.Starred) for argument in arguments):
        return
    if len(arguments) >= 2:
        changed = copy.copy(node)
        changed.args = [arguments[1], arguments[0], *arguments[2:]]
        yield Change("arguments", changed)
    name = _called(node.func)
    if name in _PASSING_THROUGH and arguments:
        yield Change("left out", arguments[1 if name == "where" and len(arguments) > 1 else 0])
    if name == "astype" and isinstance(node.func, ast.Attribute):
        yield Change("left out", node.func.value)


def _called(function: ast.expr) -> str:
    """Last part of a function's name."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _name(node: ast.Attribute | ast.Name) -> Iterator[Change]:
    """A function or a type that it is confused with."""
    if not isinstance(node.ctx, ast.Load):
        return
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    for other in _NAMES.get(name, ()):
        if name in _IN_NUMPY:
            yield Change("name", ast.Attribute(ast.Name("np", ast.Load()), other, ast.Load()))
        elif isinstance(node, ast.Attribute):
            yield Change("name", ast.Attribute(node.value, other, ast.Load()))
        elif name in ("min", "max", "any", "all"):
            yield Change("name", ast.Name(other, ast.Load()))


def _slice(node: ast.Slice) -> Iterator[Change]:
    """One bound or the step left out."""
    for part in ("lower", "upper", "step"):
        if getattr(node, part) is not None:
            changed = copy.copy(node)
            setattr(changed, part, None)
            yield Change("slice", changed)


def _statement(node: ast.stmt | ast.IfExp) -> Iterator[Change]:
    """A condition turned round, another operator, or the statement left out."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        yield Change("condition", changed)
    elif isinstance(node, ast.AugAssign):
        other = _ARITHMETIC.get(type(node.op))
        if other is not None:
            yield Change("operator", ast.AugAssign(node.target, other(), node.value))
        yield Change("statement", ast.Pass())
    elif _has_effect(node):
        yield Change("statement", ast.Pass())


def _has_effect(node: ast.AST) -> bool:
    """Whether a statement writes into an array, or calls something for what that does."""
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Subscript)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
