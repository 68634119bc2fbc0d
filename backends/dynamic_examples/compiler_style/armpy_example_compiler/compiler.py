"""Divides the subgraphs that the backend is offered, and compiles the parts."""

from __future__ import annotations

from armpy.backend import OptimizationViews, Substitution
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import Activation, Convolution2d, FullyConnected, PreCompiled
from armpy_example_compiler.program import Program, make_program

DEVICE_MEMORY_BYTES = 4 << 20
"""Most that the packed weights of a program may take, as on a device with little memory."""


def compile_view(view: SubgraphView) -> OptimizationViews:
    """Decide which layers of a subgraph are compiled, and return the views.

    Notes
    -----
    A weighted layer and the activation after it become one program (`substitutions`). A
    program that the device has no room for is found out only now: its layers go to the next
    backend (`failed`). An activation with nothing to fuse with is run alone (`untouched`).
    Every layer is in exactly one part, and each part is convex: nothing outside a pair stands
    between its two layers, because the first one's output is read by the second alone.
    """
    views = OptimizationViews()
    fused: set[Layer] = set()
    for layer in view.layers:
        if not isinstance(layer.operation, Convolution2d | FullyConnected):
            continue
        activation = _only_reader(view, layer.outputs[0])
        layers = [layer] if activation is None else [layer, activation]
        fused.update(layers)
        part = view.part(layers)
        program = make_program(layer, activation)
        if program.size_bytes > DEVICE_MEMORY_BYTES:
            reason = (
                f"its program has {program.size_bytes} bytes; "
                f"the device has room for {DEVICE_MEMORY_BYTES}"
            )
            views.fail(part, reason)
        else:
            views.substitutions.append(_substitution(part, program))
    alone = [layer for layer in view.layers if layer not in fused]
    if alone:
        views.untouched.append(view.part(alone))
    return views


def _only_reader(view: SubgraphView, value: Value) -> Layer | None:
    """The activation that alone reads a value; None if others do, or there is none."""
    readers = [layer for layer in view.layers if value in layer.inputs]
    if value in view.outputs or len(readers) != 1:
        return None
    return readers[0] if isinstance(readers[0].operation, Activation) else None


def _substitution(part: SubgraphView, program: Program) -> Substitution:
    """One layer that carries a program in the place of a part."""
    shapes = tuple(value.info.known_shape for value in part.outputs)
    return Substitution.by_operation(part, PreCompiled(program, shapes))
