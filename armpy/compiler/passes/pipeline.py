"""Runs optimiser passes in their order, and checks what each makes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

from armpy.backend import IBackendInternal
from armpy.compiler.graph_dumps import dump
from armpy.compiler.options import OptimizerOptions
from armpy.compiler.pass_selection import worthwhile
from armpy.compiler.passes.context import OptimizerPass, PassContext
from armpy.errors import GraphValidationError, InvalidArgumentError
from armpy.graph import Graph, verify_graph
from armpy.profiling import phase

_log = logging.getLogger("armpy.compiler")

BUILT_IN_PASSES: Mapping[str, bool] = MappingProxyType(
    {
        "join_attention": True,
        "merge_casts": True,
        "merge_equal_siblings": True,
        "cancel_transposes": True,
        "reshape_transposes": True,
        "merge_reshapes": True,
        "remove_broadcasts": True,
        "cancel_conversions": True,
        "fold_pad": True,
        "join_written_out": True,
        "move_conversions": False,
        "fold_batch_norm": False,
        "fall_back_to_float32": False,
    }
)
"""Whether each pass runs if options say nothing, in the order in which they run.

Those that do leave layers out and leave the others on their backends. They change no bit of a
result, but `join_attention` and `join_written_out`, which round less often.
"""

_MODULES = MappingProxyType(
    {
        "join_attention": "attention",
        "merge_casts": "conversions",
        "merge_equal_siblings": "common_subexpressions",
        "cancel_transposes": "transposes",
        "reshape_transposes": "reshapes",
        "merge_reshapes": "reshapes",
        "remove_broadcasts": "broadcasts",
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

_LAST = "fall_back_to_float32"


def check_passes(passes: Mapping[str, bool | OptimizerPass]) -> None:
    """Check what options say of passes.

    Raises
    ------
    InvalidArgumentError
        If a name that stands for no pass is switched, or something else is in the place of one.
    """
    for name, given in passes.items():
        if isinstance(given, bool):
            if name not in BUILT_IN_PASSES:
                raise InvalidArgumentError(
                    f"there is no pass '{name}' to be switched",
                    where="passes",
                    expected=", ".join(BUILT_IN_PASSES),
                    fix="Give a function for a pass of your own",
                )
        elif not callable(given):
            raise InvalidArgumentError(
                "a pass cannot be called",
                where=f"passes['{name}']",
                expected="True, False, or a function of a graph and a PassContext",
                actual=repr(given),
            )


def run_passes(
    graph: Graph, backends: Sequence[IBackendInternal], options: OptimizerOptions
) -> Graph:
    """A graph after the passes of options; see `armpy.compiler.pass_selection.simplified`."""
    context = PassContext(options, backends)
    found = worthwhile(graph)
    for name, own in _chosen(options):
        is_idle = own is None and BUILT_IN_PASSES.get(name, False) and name not in found
        if is_idle:
            continue
        run = own or _built_in(name)
        with phase("pass", about=name):
            made = run(graph, context)
        if made is not graph:
            if own is not None:  # the optimiser verifies what there is in the end
                _check_made(name, graph, made)
            _log.info("%s: %d layers of %d", name, len(made.layers), len(graph.layers))
            graph, found = made, worthwhile(made)
            dump(options, f"pass {name}", graph)
    return graph


def _chosen(options: OptimizerOptions) -> Iterator[tuple[str, OptimizerPass | None]]:
    """Names of passes to run, in order, each with the application's own function if it is that."""
    passes = options.passes
    for name, is_on in BUILT_IN_PASSES.items():
        if name != _LAST:
            yield from _one(name, passes.get(name, is_on))
    for name, given in passes.items():
        if name not in BUILT_IN_PASSES:
            yield from _one(name, given)
    for name in ("reduce_fp32_to_fp16", "reduce_fp32_to_bf16"):
        yield from _one(name, getattr(options, name))
    yield from _one(_LAST, passes.get(_LAST, BUILT_IN_PASSES[_LAST]))


def _one(name: str, given: bool | OptimizerPass) -> Iterator[tuple[str, OptimizerPass | None]]:
    """A pass that is switched, or the application's own."""
    if given is True:
        yield name, None
    elif given is not False:
        yield name, given


def _built_in(name: str) -> OptimizerPass:
    """The function of a built-in pass."""
    module = import_module(f"{__package__}.{_MODULES[name]}")
    function: OptimizerPass = getattr(module, name)
    return function


def _check_made(name: str, graph: Graph, made: object) -> None:
    """Check that a pass has made a graph that can stand for another one.

    Raises
    ------
    GraphValidationError
        If it has not; the text names the pass.
    """
    where = f"pass '{name}'"
    if not isinstance(made, Graph):
        raise GraphValidationError(
            "the pass has made no graph", where=where, expected="a Graph", actual=repr(made)
        )
    try:
        verify_graph(made)
    except GraphValidationError as error:
        error.where = f"{where} / {error.where}"
        raise
    for what, before, after in zip(
        ("inputs", "outputs", "variables"), _edge(graph), _edge(made), strict=True
    ):
        if before != after:
            raise GraphValidationError(
                f"the pass has changed the graph's {what}",
                where=where,
                expected=", ".join(map(str, before)),
                actual=", ".join(map(str, after)),
            )


def _edge(graph: Graph) -> tuple[Sequence[object], ...]:
    """What callers see of a graph: names, shapes and types."""
    inputs = [(value.name, str(value.info)) for value in graph.inputs]
    outputs = [
        (name, str(value.info))
        for name, value in zip(graph.output_names, graph.outputs, strict=True)
    ]
    variables = [
        (one.value.name, str(one.value.info), str(one.next_value.info.shape), one.key)
        for one in graph.variables
    ]
    return inputs, outputs, variables
