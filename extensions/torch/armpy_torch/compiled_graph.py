# SPDX-License-Identifier: Apache-2.0
"""What takes the place of a graph in a compiled PyTorch program."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Sequence
from typing import TypeAlias

from armpy.compiler import Placement
from armpy.core.dataclass import dataclass
from armpy.errors import BackendCapabilityError, UnimplementedError
from armpy.execution import Runtime
from armpy_torch.capture import Argument, CapturedGraph
from armpy_torch.conversion import first_lines
from armpy_torch.graph_program import GraphProgram

_log = logging.getLogger(__name__)

_MOST_PROGRAMS = 8
"""Programs of one graph, after which other sizes run in PyTorch."""

Key: TypeAlias = "tuple[tuple[int, ...], tuple[Argument, ...]]"
"""Sizes and numbers of a call."""

_NO_KEY: Key = ((), ())

_graphs: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()
_numbers = iter(range(1, 1 << 62))


@dataclass(frozen=True, slots=True)
class GraphReport:
    """How one graph of the process's PyTorch programs runs."""

    number: int
    """In the order in which graphs were captured, from 1 on."""
    operators: int
    """Calls of PyTorch's functions in the graph."""
    reason: str
    """Why it runs in PyTorch, at least for some sizes; empty if armpy runs it."""
    placements: tuple[Placement, ...]
    """Where its layers run; one for each program that armpy has made of it."""
    rebuilds: int
    """How often a program was made again because weights had changed."""


def reports() -> tuple[GraphReport, ...]:
    """Reports of all graphs that Dynamo has given to armpy and that are still in use."""
    return tuple(graph.report() for graph in sorted(_graphs, key=lambda graph: graph.number))


class CompiledGraph:
    """Runs a captured graph on armpy, or in PyTorch if armpy refuses it.

    Parameters
    ----------
    graph : CapturedGraph
    runtime : Runtime
        Its option ``on_fallback`` says what to do about a graph that armpy refuses.
    """

    def __init__(self, graph: CapturedGraph, runtime: Runtime) -> None:
        self.number = next(_numbers)
        self._graph = graph
        self._runtime = runtime
        self._is_fixed = graph.is_fixed
        self._programs: dict[Key, GraphProgram] = {}
        self._refusal: Exception | None = None
        self._rebuilds = 0
        self._lock = threading.Lock()
        _graphs.add(self)
        if (aliased := graph.aliased_output) is not None:
            self._refusal = UnimplementedError(
                "an output shares memory with an input",
                where=f"output {aliased[0]}, input '{aliased[1]}'",
            )

    def __call__(self, *arguments: Argument) -> Sequence[object]:
        """Compute the graph's outputs.

        Raises
        ------
        BackendCapabilityError
            If armpy refuses the graph, and the option ``on_fallback`` is "error".
        """
        key = _NO_KEY
        if not self._is_fixed:
            key = self._graph.sizes_of(arguments), self._graph.numbers_of(arguments)
        program = self._programs.get(key)
        if program is None or not program.has_weights_of(arguments):
            with self._lock:
                program = self._find(key, arguments)
        if program is not None:
            return program.run(arguments)
        results: Sequence[object] = self._graph.module(*arguments)
        return results

    def report(self) -> GraphReport:
        """Describe how it runs."""
        programs = {id(program): program for program in self._programs.values()}
        placements = [program.model.placement for program in programs.values()]
        return GraphReport(
            self.number,
            sum(node.op.startswith("call_") for node in self._graph.module.graph.nodes),
            _text(self._refusal),
            tuple(placement for placement in placements if placement is not None),
            self._rebuilds,
        )

    def _find(self, key: Key, arguments: Sequence[Argument]) -> GraphProgram | None:
        """The program for a call's sizes and weights; None if the call is for PyTorch."""
        for other_key, program in [*self._programs.items()]:
            if not program.has_weights_of(arguments):
                del self._programs[other_key]
                self._rebuilds += other_key == key
            elif other_key[1] == key[1] and program.takes(arguments):
                self._programs[key] = program
                return program
        if self._refusal is None:
            try:
                self._programs[key] = program = self._new_program(arguments)
            except Exception as error:  # noqa: BLE001  # PyTorch's exporters may raise anything
                self._refusal = error
                if self._runtime.options.on_fallback == "warn":
                    _log.warning("graph %d runs in PyTorch: %s", self.number, _text(error))
            else:
                return program
        if self._runtime.options.on_fallback == "error":
            raise BackendCapabilityError(
                "a graph does not run on armpy",
                where=f"torch.compile, graph {self.number}",
                actual=_text(self._refusal),
                fix="Set options={'on_fallback': 'allow'} to run it in PyTorch",
            ) from self._refusal
        return None

    def _new_program(self, arguments: Sequence[Argument]) -> GraphProgram:
        """Make a program, with sizes that stay open if armpy takes the graph like that."""
        count = len({id(program) for program in self._programs.values()})
        if count >= _MOST_PROGRAMS:
            raise UnimplementedError(
                "the graph needs a program for each of its sizes",
                expected=f"at most {_MOST_PROGRAMS} sizes",
                fix="Pad the inputs to few sizes",
            )
        name = f"graph_{self.number}"
        if not self._is_fixed:
            try:
                return GraphProgram.of(self._graph, arguments, self._runtime, name, opens_axes=True)
            except Exception as error:  # noqa: BLE001  # as in `_find`; the next one is kept
                _log.info("graph %d with open sizes: %s", self.number, _text(error))
        return GraphProgram.of(self._graph, arguments, self._runtime, name, opens_axes=False)


def _text(error: Exception | None) -> str:
    """Text of a reason; empty for none."""
    return "" if error is None else first_lines(error)
