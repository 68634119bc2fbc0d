"""What takes the place of a graph in a compiled PyTorch program."""

from __future__ import annotations

import logging
import warnings
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch._dynamo.convert_frame import compile_lock

from armpy.compiler import Placement
from armpy.core.dataclass import dataclass
from armpy.errors import BackendCapabilityError, UnimplementedError
from armpy_torch.capture import Argument, CapturedGraph
from armpy_torch.graph_program import GraphProgram, RefusedElementsError
from armpy_torch.options import ProgramOptions
from armpy_torch.partitioned_program import PartitionedProgram, refusal_of_all
from armpy_torch.preparation import PreparedProgram, draws_random_numbers, first_lines
from armpy_torch.verification import difference, differing_operators

_log = logging.getLogger(__name__)

_MOST_PROGRAMS = 8
"""Programs of one graph, after which other sizes run in PyTorch."""

_VERIFIED_SIZES = 2
"""For how many sizes the results of a program are compared with PyTorch's, each at its first call.
"""

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
    options : ProgramOptions
        Of its runtime, ``on_fallback`` says what to do about operators that armpy refuses.
    whole : CompiledGraph, optional
        The graph that this one is a part of; first results are compared of that alone.

    Notes
    -----
    The lock is the one under which Dynamo compiles: exporting a graph and compiling another one
    use the same state of PyTorch.
    """

    def __init__(
        self, graph: CapturedGraph, options: ProgramOptions, whole: CompiledGraph | None = None
    ) -> None:
        self.number: int = next(_numbers) if whole is None else whole.number
        self._title = f"graph {self.number}" if whole is None else f"a part of graph {self.number}"
        self._graph = graph
        self._options = options
        self._runtime = options.runtime
        self._is_fixed = graph.is_fixed
        self._programs: dict[Key, Program] = {}
        self._parts: list[CompiledGraph] = []
        self._refusal: Exception | None = None
        self._is_refused = False  # wholly
        self._rebuilds = 0
        self._verifies = options.verify and whole is None
        self._unverified: dict[Key, int] = {}  # ids of programs
        self._verified_sizes: Counter[int] = Counter()  # by program's id
        if whole is not None:  # its views are not seen outside of the whole graph
            return
        _graphs.add(self)
        if (aliased := graph.aliased_output) is not None:
            self._is_refused = True
            self._refusal = UnimplementedError(
                "an output shares memory with an input or another output",
                where=f"output {aliased[0]}, {aliased[1]}",
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
            with compile_lock:
                program = self._find(key, arguments)
        if program is not None and not (
            program.written and self._graph.overlaps(arguments, program.written)
        ):
            try:
                if self._unverified and self._unverified.get(key) == id(program):
                    return self._verified(key, program, arguments)
                return program.run(arguments)
            except RefusedElementsError as error:  # most are PyTorch's as well, which it raises
                _log.info("%s: PyTorch runs a call: %s", self._title, _text(error))
        results: Sequence[object] = self._graph.module(*arguments)
        return results

    def _verified(
        self, key: Key, program: Program, arguments: Sequence[Argument]
    ) -> Sequence[object]:
        """PyTorch's results of a call; a program with other results is not used again.

        Random numbers are the same for both, as parts draw them in PyTorch's order. Until a call
        has passed, those of other threads are compared as well.
        """
        trial = [*arguments]
        for number in program.written:
            trial[number] = arguments[number].clone()
        before = [*trial]
        for number in program.written:
            before[number] = arguments[number].clone()
        # Setting the generator back would repeat numbers that another thread draws meanwhile.
        is_random = any(draws_random_numbers(node) for node in program.prepared.refusals)
        with torch.random.fork_rng(devices=[], enabled=is_random):
            actual = program.run(trial)
        expected: Sequence[object] = self._graph.module(*arguments)
        written = program.written
        text = difference(
            [*actual, *(trial[number] for number in written)],
            [*expected, *(arguments[number] for number in written)],
        )
        with compile_lock:
            if self._programs.get(key) is program:  # another thread may have rejected it
                if text:
                    self._reject(text, before)
                else:
                    self._unverified.pop(key, None)
        return expected

    def _reject(self, text: str, arguments: Sequence[Argument]) -> None:
        """Let PyTorch run the graph from now on, as a program of it has wrong results."""
        operators: list[str] = []
        try:
            prepared = PreparedProgram.of(self._graph.export(arguments, opens_axes=False))
            tensors = self._graph.tensors_of(arguments)
            operators = differing_operators(prepared.program, tensors, self._runtime)
        except Exception as error:  # noqa: BLE001  # as in `_find`; the graph is refused anyway
            _log.info("%s: no operator was found: %s", self._title, _text(error))
        blamed = ", ".join(operators) or "no single operator: roundings add up"
        self._is_refused = True
        self._refusal = UnimplementedError(
            "armpy's results differ from PyTorch's", where=blamed, actual=text
        )
        # Not `_unverified`: another thread may have looked up a program, but not run it yet.
        self._programs.clear()
        self._parts.clear()
        warnings.warn(
            f"{self._title} runs in PyTorch: {_text(self._refusal)}", RuntimeWarning, stacklevel=2
        )

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
        made = self._programs.get(key)  # by another thread, perhaps, that had the lock before
        if made is not None and made.has_weights_of(arguments):
            return made
        for other_key, program in [*self._programs.items()]:
            if not program.has_weights_of(arguments):
                del self._programs[other_key]
                self._rebuilds += other_key == key
            elif other_key[1] == key[1] and program.prepared.takes(
                self._graph.tensors_of(arguments)
            ):
                self._keep(key, program)
                return program
        if not self._is_refused:
            try:
                program = self._new_program(arguments)
            except Exception as error:  # noqa: BLE001  # PyTorch's exporters may raise anything
                self._is_refused = True
                self._refuse(error, "runs in PyTorch")
            else:
                self._verified_sizes[id(program)] = 0
                self._keep(key, program)
                return program
        self._check_fallback()
        return None

    def _keep(self, key: Key, program: Program) -> None:
        """Keep a size's program, whose first call is compared if those of few sizes were."""
        if self._verifies and self._verified_sizes[id(program)] < _VERIFIED_SIZES:
            self._verified_sizes[id(program)] += 1
            self._unverified[key] = id(program)
        self._programs[key] = program  # last: other threads read it without the lock

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
        prepared = PreparedProgram.of(self._graph.export(arguments, opens_axes=opens_axes))
        if not prepared.refusals:
            name = f"graph_{self.number}"
            return GraphProgram.of(self._graph, arguments, prepared, self._runtime, name)
        refusal = refusal_of_all(prepared.refusals)
        if self._runtime.options.on_fallback == "error":
            raise refusal
        parts = PartitionedProgram.of(self._graph, prepared, self._new_part)
        self._refuse(refusal, "runs in PyTorch in part")
        return parts

    def _new_part(self, graph: CapturedGraph) -> CompiledGraph:
        """Run a part of the graph on armpy."""
        part = CompiledGraph(graph, self._options, self)
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
