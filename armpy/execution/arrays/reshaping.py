"""Reshaping: the same network with inputs of other shapes, or with other outputs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from types import NoneType
from typing import TYPE_CHECKING, TypeAlias

from armpy.compiler import specialize
from armpy.core.arguments import check_instance
from armpy.errors import ArmpyError, InvalidArgumentError, ParserError, listed
from armpy.graph import Graph, Layer, Value
from armpy.ops.reshaping import Reshape
from armpy.tensor import MAX_RANK, Shape, chosen_shape, format_shape, shapes_agree

if TYPE_CHECKING:
    from armpy.compiler import OptimizedNetwork
    from armpy.graph.network import Network

AnyNetwork: TypeAlias = "Network | Graph | OptimizedNetwork"


def graph_of(network: AnyNetwork) -> Graph:
    """The graph that a model was made from."""
    if isinstance(network, Graph):
        return network
    build = getattr(network, "build", None)
    if build is not None:
        built: Graph = build()
        return built
    source: Graph = network.source  # type: ignore[union-attr]  # an optimised network's
    return source


def input_shapes(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]] | None
) -> tuple[tuple[int, ...], ...]:
    """The shape of each input: as given by name, as known, or the file's default.

    Raises InvalidArgumentError if there is no such input, a shape does not fit, or an input has
    none.
    """
    check_instance(shapes, "shapes", Mapping, NoneType, fix="Write {'name': (1, 3)}")
    by_name, names = shapes or {}, [value.name for value in graph.inputs]
    if unknown := [name for name in by_name if name not in names]:
        raise unknown_name("input", unknown[0], names)
    chosen = []
    for value, default in zip(graph.inputs, graph.default_shapes, strict=True):
        known = value.info.known_shape if value.info.is_fully_shaped else default
        shape = by_name.get(value.name, known)
        if shape is None:
            raise InvalidArgumentError(
                "an input has no shape yet",
                where=f"input '{value.name}'",
                expected=f"sizes for {format_shape(value.info.shape)}",
                fix="Give the input a shape by its name",
            )
        chosen.append(chosen_shape(value.name, value.info.shape, shape))
    return tuple(chosen)


def with_input_shapes(
    # As its file has it: of one that has been specialised, shapes are constants by now.
    graph: Graph,
    shapes: Mapping[str, Sequence[int | None]],  # by name of an input; None leaves a dimension open
) -> Graph:
    """A graph whose inputs have other shapes, from which all others follow anew.

    Raises InvalidArgumentError if there is no such input, a shape cannot be used, or a layer does
    not take what follows; the text names it.

    Where nothing but the inputs' common first dimension changes, a Reshape to a constant shape that
    begins with it, of a tensor that does so as well, follows the change: it reshapes each row by
    itself. TensorFlow Lite refuses that.

    References
    ----------
    TFLite Interpreter::ResizeInputTensor.
    """
    if not isinstance(shapes, Mapping):
        raise InvalidArgumentError(
            "the shapes are not given by name",
            where="reshape",
            expected='a mapping such as {"image": (4, 224, 224, 3)}',
            actual=type(shapes).__name__,
        )
    names = [value.name for value in graph.inputs]
    for name in shapes:
        if name not in names:
            raise unknown_name("input", name, names)
    chosen = {name: _checked(name, shape) for name, shape in shapes.items()}
    batch = _changed_batch(graph, chosen)
    freed = graph
    if batch is not None:
        shaped = {layer.id: layer for layer in specialize(graph).layers}  # which keeps ids
        layers = [_row_by_row(layer, shaped.get(layer.id), batch) for layer in graph.layers]
        freed = replace(graph, layers=tuple(layers))
    changed = _with_infos(freed, chosen)
    try:
        return specialize(changed)
    except ArmpyError as error:
        said = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
        before = {value.name: value.info.shape for value in graph.inputs}
        raise InvalidArgumentError(
            f"the model cannot be given these shapes ({said}): {error}",
            where="reshape",
            fix=_shapes_fix(before, chosen),
        ) from error


def _shapes_fix(before: Mapping[str, Shape | None], chosen: Mapping[str, Shape]) -> str:
    """Return the fix for shapes that a model cannot be given, by those that its inputs had."""
    if all(shapes_agree(before[name], shape) for name, shape in chosen.items()):
        return "Choose other shapes"
    return (
        "That layer was made for the file's own shapes: convert the model again, with the "
        "dimension open"
    )


def _changed_batch(graph: Graph, shapes: Mapping[str, Shape]) -> int | None:
    """Return the inputs' previous first dimension, if nothing else changes; None otherwise."""
    before = set()
    for value in graph.inputs:
        old, new = value.info.shape, shapes.get(value.name, ())
        if not old or not new or old[0] is None or old[1:] != new[1:]:
            return None
        before.add(old[0])
    return before.pop() if len(before) == 1 else None


def _row_by_row(layer: Layer, shaped: Layer | None, batch: int) -> Layer:
    """A layer; if it reshapes `batch` rows to as many, one that does so with any number.

    `shaped` is the layer for the shapes of the file; None if it does nothing there.
    """
    target = _constant_target(layer)
    if not target or target[0] != batch:
        return layer
    rows: Shape = target[1:]
    if shaped is not None:
        before, after = shaped.input_infos[0], shaped.output.info.shape
        if before is None or not before.shape or before.shape[0] != batch or not after:
            return layer
        rows = after[1:]
    sizes = [size for size in rows if size is not None and size > 0]
    # -1 stands for one size only, and beside a size of 0 it could be any.
    if len(sizes) < len(rows):
        return layer
    return replace(layer, operation=Reshape((-1, *sizes)), inputs=layer.inputs[:1])


def _constant_target(layer: Layer) -> tuple[int, ...] | None:
    """The shape that a Reshape gives whatever it is given; None for every other layer."""
    if not isinstance(layer.operation, Reshape):
        return None
    if layer.operation.target_shape is not None or len(layer.inputs) == 1:
        return layer.operation.target_shape
    operand = layer.constant("shape")
    return None if operand is None else tuple(operand.tolist())


def _with_infos(graph: Graph, shapes: Mapping[str, Shape]) -> Graph:
    """A graph whose inputs have other shapes, and all else is said as before."""
    renewed = {
        value: replace(value, info=value.info.with_shape(shapes[value.name]))
        for value in graph.inputs
        if value.name in shapes
    }
    defaults = zip(graph.inputs, graph.default_shapes, strict=True)
    is_declared = all(shapes_agree(v.info.shape, new.info.shape) for v, new in renewed.items())
    return replace(
        _with_inputs(graph, renewed),
        # A file's default is for the shape that the input had.
        default_shapes=tuple([None if v in renewed else shape for v, shape in defaults]),
        # What a file declares of its outputs can be for the fixed sizes that its inputs had.
        output_shapes=graph.output_shapes if is_declared else (),
    )


def with_names(graph: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> Graph:
    """The same graph with other names for its inputs and outputs, in its order.

    Raises ParserError if a file does not have as many names.
    """
    expected, actual = [
        f"{len(ins)} inputs and {len(outs)} outputs"
        for ins, outs in ((graph.inputs, graph.outputs), (inputs, outputs))
    ]
    if actual != expected:
        raise ParserError(
            "the names of a signature do not fit the network", expected=expected, actual=actual
        )
    renewed = {
        value: replace(value, name=name) for value, name in zip(graph.inputs, inputs, strict=True)
    }
    return replace(_with_inputs(graph, renewed), output_names=tuple(outputs))


def _with_inputs(graph: Graph, renewed: Mapping[Value, Value]) -> Graph:
    """A graph with other values in the place of inputs."""

    def mapped(values: Iterable[Value]) -> tuple[Value, ...]:
        return tuple([renewed.get(value, value) for value in values])

    layers = []
    for layer in graph.layers:
        inputs = tuple([None if v is None else renewed.get(v, v) for v in layer.inputs])
        layers.append(replace(layer, inputs=inputs))
    return replace(
        graph,
        inputs=mapped(graph.inputs),
        outputs=mapped(graph.outputs),
        layers=tuple(layers),
        variables=tuple(
            replace(variable, next_value=mapped([variable.next_value])[0])
            for variable in graph.variables
        ),
    )


def _checked(name: str, shape: object) -> Shape:
    """A shape whose dimensions may be open."""
    try:
        if isinstance(shape, (str, bytes)):
            raise TypeError("it is a text")
        # NumPy's integers are sizes, too; floats and texts are none.
        dims = tuple(None if d is None else operator.index(d) for d in shape)  # type: ignore[attr-defined]  # a TypeError is waited for
        if len(dims) > MAX_RANK or any(dim is not None and dim < 0 for dim in dims):
            raise ValueError("there are too many dimensions, or a negative one")
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"the shape cannot be used: {error}",
            where=f"input '{name}'",
            expected=f"at most {MAX_RANK} sizes, None for one that is left open",
            actual=repr(shape),
        ) from error
    return dims


def checked_names(given: object) -> tuple[str, ...]:
    """Names of tensors that are asked for, each once.

    Raises InvalidArgumentError if they are not a sequence of names, or none.
    """
    is_some = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
    names = list(given) if is_some else []  # type: ignore[call-overload]  # it is asked
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(
            "the outputs are not given by name",
            where="outputs",
            expected='names of tensors such as ["scores"], or a mapping of names to arrays',
            actual=repr(given) if isinstance(given, str) else type(given).__name__,
        )
    return tuple(dict.fromkeys(names))


def with_outputs(
    graph: Graph,
    # Of outputs, tensors, or layers, which stand for their first output; each once.
    names: Sequence[str],
) -> Graph:
    """A graph whose outputs are any of its tensors.

    Raises InvalidArgumentError if there is no such tensor.
    """
    tensors = tensors_by_name(graph)
    for name in names:
        if name not in tensors:
            raise unknown_name("tensor", name, [*tensors])
    outputs = tuple(tensors[name] for name in names)
    declared = dict(zip(graph.outputs, graph.output_shapes, strict=True))
    shapes = tuple(map(declared.get, outputs))
    return replace(graph, outputs=outputs, output_names=tuple(names), output_shapes=shapes)


def tensors_by_name(graph: Graph) -> dict[str, Value]:
    """A graph's tensors by every name that they go by: outputs first, then tensors, then layers."""
    tensors = dict(zip(graph.output_names, graph.outputs, strict=True))
    for value in graph.values():
        if value.name:
            tensors.setdefault(value.name, value)
    for layer in graph.layers:
        if layer.outputs:
            tensors.setdefault(layer.name, layer.output)
    return tensors


def unknown_name(kind: str, name: object, known: Sequence[str]) -> InvalidArgumentError:
    """The error for a name that a model does not have, with the nearest that it has."""
    near = get_close_matches(str(name), known, n=3, cutoff=0.5)
    command = "armpy inspect MODEL --layers" if kind == "tensor" else "armpy inspect MODEL"
    return InvalidArgumentError(
        f"the model has no such {kind}",
        where=f"{kind} {name!r}",
        expected="" if near else listed(known),
        actual=repr(name),
        fix=f"Did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"List all names with '{command}'",
    )
