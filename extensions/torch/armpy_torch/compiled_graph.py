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
from armpy_torch.partitioned_program import PartitionedProgram

_log = logging.getLogger(__name__)

_MOST_PROGRAMS = 8
"""Programs of one graph, after which other sizes run in PyTorch."""

Key: TypeAlias = "tuple[tuple[int, ...], tuple[Argument, ...]]"
"""Sizes and numbers of a call."""

_NO_KEY: Key = ((), ())

Program: TypeAlias = "GraphProgram | PartitionedProgram"

_graphs: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()
_numbers = iter(range(1, 1 << 62))


@dataclass(frozen=True, slots=True)
class GraphReport:
    """How one graph of the process's PyTorch programs runs."""

    number: int
    """Number in the order of capture, from 1 on."""
    operators: int
    """Calls of PyTorch's functions in the graph."""
    reason: str
    """Why it, or an operator of it, runs in PyTorch, at least for some sizes; empty if none does.
    """
    placements: tuple[Placement, ...]
    """Placement of each network that armpy has made of the graph or of a part."""
    rebuilds: int
    """Number of programs made again because weights had changed."""


def reports() -> tuple[GraphReport, ...]:
    """Reports of all graphs that Dynamo has given to armpy and that are still in use."""
    return tuple(graph.report() for graph in sorted(_graphs, key=lambda graph: graph.number))


class CompiledGraph:
    """Runs a captured graph on armpy, and what armpy refuses of it in PyTorch.

    Parameters
    ----------
    graph : CapturedGraph
    runtime : Runtime
        Its option ``on_fallback`` says what to do about operators that armpy refuses.
    whole : CompiledGraph, optional
        The graph that this one is a part of.
    """

    def __init__(
        self, graph: CapturedGraph, runtime: Runtime, whole: CompiledGraph | None = None
    ) -> None:
        self.number: int = next(_numbers) if whole is None else whole.number
        self._title = f"graph {self.number}" if whole is None else f"a part of graph {self.number}"
        self._graph = graph
        self._runtime = runtime
        self._is_fixed = graph.is_fixed
        self._programs: dict[Key, Program] = {}
        self._parts: list[CompiledGraph] = []
        self._refusal: Exception | None = None
        self._is_refused = False  # wholly
        self._rebuilds = 0
        self._lock = threading.Lock()
        if whole is not None:  # its views are not seen outside of the whole graph
            return
        _graphs.add(self)
        if (aliased := graph.aliased_output) is not None:
            self._is_refused = True
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
        parts = [part.report() for part in self._parts]
        programs = {id(program): program for program in self._programs.values()}
        models = [item.model for item in programs.values() if isinstance(item, GraphProgram)]
        placements = [model.placement for model in models]
        reasons = [_text(self._refusal), *(part.reason for part in parts)]
        return GraphReport(
            self.number,
            sum(node.op.startswith("call_") for node in self._graph.module.graph.nodes),
            "; ".join(reason for reason in reasons if reason),
            (
                *(placement for placement in placements if placement is not None),
                *(placement for part in parts for placement in part.placements),
            ),
            self._rebuilds + sum(part.rebuilds for part in parts),
        )

    def _find(self, key: Key, arguments: Sequence[Argument]) -> Program | None:
        """The program for a call's sizes and weights; None if the call is for PyTorch."""
        for other_key, program in [*self._programs.items()]:
            if not program.has_weights_of(arguments):
                del self._programs[other_key]
                self._rebuilds += other_key == key
            elif other_key[1] == key[1] and program.takes(arguments):
                self._programs[key] = program
                return program
        if not self._is_refused:
            try:
                program = self._new_program(arguments)
            except Exception as error:  # noqa: BLE001  # PyTorch's exporters may raise anything
                self._is_refused = True
                self._refuse(error, "runs in PyTorch")
            else:
                self._programs[key] = program
                return program
        self._check_fallback()
        return None

    def _new_program(self, arguments: Sequence[Argument]) -> Program:
        """Make a program, with sizes that stay open if armpy takes the graph like that."""
        count = len({id(program) for program in self._programs.values()})
        if count >= _MOST_PROGRAMS:
            raise UnimplementedError(
                "the graph needs a program for each of its sizes",
                expected=f"at most {_MOST_PROGRAMS} sizes",
                fix="Pad the inputs to few sizes",
            )
        if not self._is_fixed:
            try:
                return self._program(arguments, opens_axes=True)
            except Exception as error:  # noqa: BLE001  # as in `_find`; the next one is kept
                _log.info("%s with open sizes: %s", self._title, _text(error))
        return self._program(arguments, opens_axes=False)

    def _program(self, arguments: Sequence[Argument], *, opens_axes: bool) -> Program:
        """Make a program of the whole graph, or of the parts of it that armpy takes."""
        name = f"graph_{self.number}"
        try:
            return GraphProgram.of(
                self._graph, arguments, self._runtime, name, opens_axes=opens_axes
            )
        except Exception:  # as in `_find`; raised again if there are no parts
            parts = PartitionedProgram.of(
                self._graph, arguments, self._new_part, opens_axes=opens_axes
            )
            if parts is None:
                raise
        if self._runtime.options.on_fallback == "error":
            raise parts.refusal
        self._refuse(parts.refusal, "runs in PyTorch in part")
        return parts

    def _new_part(self, graph: CapturedGraph) -> CompiledGraph:
        """Run a part of the graph on armpy."""
        part = CompiledGraph(graph, self._runtime, self)
        self._parts.append(part)
        return part

    def _refuse(self, error: Exception, what: str) -> None:
        """Keep the reason why operators run in PyTorch."""
        self._refusal = error
        if self._runtime.options.on_fallback == "warn":
            _log.warning("%s %s: %s", self._title, what, _text(error))

    def _check_fallback(self) -> None:
        """Check that what armpy refuses may run in PyTorch."""
        if self._runtime.options.on_fallback == "error":
            raise BackendCapabilityError(
                "a graph does not run on armpy",
                where=f"torch.compile, graph {self.number}",
                actual=_text(self._refusal),
                fix="Set options={'on_fallback': 'allow'} to run it in PyTorch",
            ) from self._refusal


def _text(error: Exception | None) -> str:
    """Text of a reason; empty for none."""
    return "" if error is None else first_lines(error)
