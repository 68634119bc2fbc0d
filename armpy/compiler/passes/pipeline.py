"""Runs optimiser passes in their order, and checks what each makes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import MappingProxyType

from armpy.backend import IBackendInternal
from armpy.compiler.graph_dumps import dump
from armpy.compiler.options import BUILT_IN_PASSES, OptimizerOptions
from armpy.compiler.pass_selection import worthwhile
from armpy.compiler.passes.context import OptimizerPass, PassContext
from armpy.errors import GraphValidationError
from armpy.graph import Graph, verify_graph
from armpy.profiling import phase

_log = logging.getLogger("armpy.compiler")

_MODULES = MappingProxyType(
    {
        "join_attention": "attention",
        "merge_casts": "conversions",
        "merge_equal_siblings": "movement",
        "cancel_transposes": "transposes",
        "reshape_transposes": "movement",
        "merge_reshapes": "movement",
        "remove_broadcasts": "movement",
        "cancel_conversions": "conversions",
        "fold_pad": "padding",
        "move_conversions": "conversions",
        "join_written_out": "fuse_decomposed",
        "fold_batch_norm": "batch_norm",
        "fall_back_to_float32": "reduction",
        "reduce_fp32_to_fp16": "reduction",
        "reduce_fp32_to_bf16": "reduction",
    }
)
"""Where the function of each pass is, which has its name."""

# After the reductions, which make the float16 layers that it looks at.
_LAST = "fall_back_to_float32"


def run_passes(
    graph: Graph, backends: Sequence[IBackendInternal], options: OptimizerOptions
) -> Graph:
    """A graph after the passes of options; see `armpy.compiler.optimize.simplified`."""
    context = PassContext(options, backends)
    worthwhile_names = worthwhile(graph)
    for name, own in _chosen(options):
        # The selection knows passes that are on by default; others have been asked for, and run.
        is_idle = own is None and BUILT_IN_PASSES.get(name, False) and name not in worthwhile_names
        if is_idle:
            continue
        run = own or built_in(name)
        with phase("pass", about=name):
            rewritten = run(graph, context)
        if rewritten is not graph:
            if own is not None:  # the optimiser verifies what there is in the end
                _check_made(name, graph, rewritten)
            _log.info("%s: %d layers of %d", name, len(rewritten.layers), len(graph.layers))
            # A pass can make work for later ones, and take it away.
            graph, worthwhile_names = rewritten, worthwhile(rewritten)
            dump(options, f"pass {name}", graph)
    return graph


def _chosen(options: OptimizerOptions) -> Iterator[tuple[str, OptimizerPass | None]]:
    """Names of passes to run, in order, each with the application's own function if it is that."""
    passes = options.passes
    for name, is_on in BUILT_IN_PASSES.items():
        if name != _LAST:
            yield from _one(name, passes.get(name, is_on))
    for name, choice in passes.items():
        if name not in BUILT_IN_PASSES:
            yield from _one(name, choice)
    # After the application's own passes, which see the types of the model.
    for name in ("reduce_fp32_to_fp16", "reduce_fp32_to_bf16"):
        yield from _one(name, getattr(options, name))
    yield from _one(_LAST, passes.get(_LAST, BUILT_IN_PASSES[_LAST]))


def _one(name: str, choice: bool | OptimizerPass) -> Iterator[tuple[str, OptimizerPass | None]]:
    """A pass that is switched, or the application's own."""
    if choice is True:
        yield name, None
    elif choice is not False:
        yield name, choice


def built_in(name: str) -> OptimizerPass:
    """The function of a built-in pass."""
    # By name, so that a load imports only passes with work to do.
    module = import_module(f"{__package__}.{_MODULES[name]}")
    function: OptimizerPass = getattr(module, name)
    return function


def _check_made(name: str, graph: Graph, rewritten: object) -> None:
    """Check that a pass has made a graph that can stand for another one.

    Raises GraphValidationError if it has not; the text names the pass.
    """
    where = f"pass '{name}'"
    if not isinstance(rewritten, Graph):
        raise GraphValidationError(
            "the pass has made no graph", where=where, expected="a Graph", actual=repr(rewritten)
        )
    try:
        verify_graph(rewritten)
    except GraphValidationError as error:
        error.where = f"{where} / {error.where}"
        raise
    for part, before, after in zip(
        ("inputs", "outputs", "variables"), _edge(graph), _edge(rewritten), strict=True
    ):
        if before != after:
            raise GraphValidationError(
                f"the pass has changed the graph's {part}",
                where=where,
                expected=", ".join(map(str, before)),
                actual=", ".join(map(str, after)),
            )


def _edge(graph: Graph) -> tuple[Sequence[object], ...]:
    """Return the interface of a graph: names, shapes and types."""
    inputs = [(value.name, str(value.info)) for value in graph.inputs]
    outputs = [
        (name, str(value.info))
        for name, value in zip(graph.output_names, graph.outputs, strict=True)
    ]
    variables = [
        (state.value.name, str(state.value.info), str(state.next_value.info.shape), state.key)
        for state in graph.variables
    ]
    return inputs, outputs, variables
