"""Steps of a translation that take the place of slower ones of Numba's."""

from __future__ import annotations

from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from numba.core import cgutils, ir
from numba.core.bytecode import ByteCode, FunctionIdentity
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.interpreter import Interpreter
from numba.core.ir_utils import build_definitions, simplify_CFG
from numba.core.lowering import Lower
from numba.core.postproc import PostProcessor
from numba.core.typed_passes import NativeLowering, PreLowerStripPhis

from armpy_numba_acc.llvm.primitives import InlinedFunction

_Numba: TypeAlias = Any  # Any: Numba has no types

_BLOCKS: WeakKeyDictionary[_Numba, dict[int, _Numba]] = WeakKeyDictionary()
"""Numba's representation of functions that are inlined."""


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineCalls(FunctionPass):  # type: ignore[misc]  # Numba has no types
    """Puts functions in the place of their calls.

    Numba's own step reads a function's bytecode anew for each call, and copies all of its
    variables for each of its blocks, twice.
    """

    _name = "armpy_inlining"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: _Numba) -> bool:
        """Inline calls, and those within inlined functions."""
        function = state.func_ir
        waiting = [*function.blocks]
        while waiting:
            waiting += _inline_first(function, waiting.pop())
        function.blocks = simplify_CFG(function.blocks)
        return True


def _inline_first(function: _Numba, label: int) -> list[int]:
    """Inline the first call in a block; returns the labels of new blocks."""
    for index, statement in enumerate(function.blocks[label].body):
        call = getattr(statement, "value", None)
        if isinstance(call, ir.Expr) and call.op == "call":
            called = function.get_definition(call.func)
            if isinstance(called, ir.Global | ir.FreeVar) and isinstance(
                called.value, InlinedFunction
            ):
                return _inline(function, label, index, called.value.function)
    return []


def _inline(function: _Numba, label: int, index: int, called: _Numba) -> list[int]:
    """Replace a statement, which assigns a call's result, by the called function."""
    if called not in _BLOCKS:
        identity = FunctionIdentity.from_function(called)
        _BLOCKS[called] = simplify_CFG(Interpreter(identity).interpret(ByteCode(identity)).blocks)
    block, blocks = function.blocks[label], _BLOCKS[called]
    target, call, scope = block.body[index].target, block.body[index].value, block.scope
    names = called.__code__.co_varnames[len(call.args) : called.__code__.co_argcount]
    arguments = [*call.args, *map(dict(call.kws).__getitem__, names)]
    offset = max(function.blocks) + 1
    end = offset + max(blocks) + 1
    variables: dict[str, _Numba] = {}

    def copied(value: _Numba) -> _Numba:
        if isinstance(value, ir.Var):
            if value.name not in variables:
                name = f"{called.__name__}.{value.name}"
                variables[value.name] = scope.redefine(name, value.loc)
            return variables[value.name]
        if isinstance(value, ir.Arg):
            return arguments[value.index]
        if isinstance(value, ir.Expr):
            if value.op == "cast":  # to the type of the function's result
                return copied(value.value)
            fields = {name: copied(field) for name, field in value._kws.items()}
            return ir.Expr(value.op, value.loc, **fields)
        return type(value)(map(copied, value)) if type(value) in (list, tuple) else value

    for number, source in blocks.items():
        body = []
        for statement in source.body:
            if isinstance(statement, ir.Jump):
                body.append(ir.Jump(offset + statement.target, statement.loc))
            elif isinstance(statement, ir.Branch):
                labels = offset + statement.truebr, offset + statement.falsebr
                body.append(ir.Branch(copied(statement.cond), *labels, statement.loc))
            else:
                is_result = isinstance(statement, ir.Return)
                place = target if is_result else copied(statement.target)
                body.append(ir.Assign(copied(statement.value), place, statement.loc))
                function._definitions[place.name].append(body[-1].value)
                if is_result:
                    body.append(ir.Jump(end, statement.loc))
        function.blocks[offset + number] = ir.Block(scope, source.loc)
        function.blocks[offset + number].body = body
    function.blocks[end] = ir.Block(scope, block.loc)
    function.blocks[end].body = block.body[index + 1 :]
    block.body[index:] = [ir.Jump(offset + min(blocks), call.loc)]
    function._definitions[target.name].remove(call)
    return [end, *(offset + number for number in blocks)]


class _Lower(Lower):  # type: ignore[misc]  # Numba has no types
    """Lowers variables, which need neither reference counts nor debug information."""

    def alloca_lltype(self, name: str, lltype: _Numba, datamodel: _Numba = None) -> _Numba:
        """Reserve a variable's memory."""
        return cgutils.alloca_once(self.builder, lltype, name=name)

    def storevar(self, value: _Numba, name: str, argidx: int | None = None) -> None:
        """Set a variable."""
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Leave a variable as it is: it is not read again."""
        if name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)
            self._alloca_var(name, self.typeof(name))


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerFunction(NativeLowering):  # type: ignore[misc]  # Numba has no types
    """Writes LLVM's instructions."""

    _name = "armpy_lowering"

    def run_pass(self, state: _Numba) -> bool:
        """Turn choices between variables into assignments, and lower the function."""
        state.func_ir = PreLowerStripPhis()._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        PostProcessor(state.func_ir).run(emit_dels=True)
        return bool(super().run_pass(state))

    @property
    def lowering_class(self) -> type[_Lower]:
        """The class that lowers a function."""
        return _Lower
