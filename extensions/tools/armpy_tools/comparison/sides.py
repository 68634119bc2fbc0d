"""The two sides of a comparison, and what both are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from armpy.compiler import Evaluator, specialize
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError, UnimplementedError
from armpy.execution import Runtime, RuntimeOptions, as_input
from armpy.graph import Graph
from armpy.model import InputShapes, Model, input_shapes
from armpy.ops.operation import Array
from armpy.plugins import BackendProxy, BackendRegistry
from armpy.tensor import TensorInfo
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_conformance.comparison.seeded_values import stored


@dataclass(frozen=True, slots=True)
class Sides:
    """The two runtimes; what one's backend refuses runs on the other's, and last on CpuRef."""

    backend_id: BackendId
    against_id: BackendId
    backend: Runtime
    against: Runtime
    evaluator: Evaluator | None

    @classmethod
    def of(cls, backend: BackendId, against: BackendId, options: RuntimeOptions) -> Sides:
        """Make both of the same registry."""
        registry = options.registry or BackendRegistry.discover(options.plugin_options())
        last = [REFERENCE_BACKEND_ID] if REFERENCE_BACKEND_ID in registry.backend_ids else []
        sides = (list(dict.fromkeys(ids)) for ids in ([backend, against, *last], [against, *last]))
        first, second = (
            Runtime(replace(options, registry=registry, backends=ids)) for ids in sides
        )
        evaluator = Evaluator(BackendProxy(registry.get(REFERENCE_BACKEND_ID))) if last else None
        return cls(backend, against, first, second, evaluator)

    def shaped(self, graph: Graph, arrays: Sequence[Array], name: str) -> tuple[Graph, list[Array]]:
        """A graph with all its shapes, whose state is given like an input; and its arrays.

        Parameters
        ----------
        graph : Graph
        arrays : sequence of ndarray
            Its inputs, in order.
        name : str
            Of the model, for errors.

        Raises
        ------
        UnimplementedError
            If shapes in the model depend on values.
        """
        graph = specialize(graph, [array.shape for array in arrays], evaluator=self.evaluator)
        if not graph.is_fully_shaped:
            raise UnimplementedError(
                "shapes in the model depend on values, so that it cannot be taken apart",
                where=name,
            )
        # What state is after one execution is compared, not kept.
        values = [*arrays, *(variable.initial for variable in graph.variables)]
        names = tuple(map(str, range(len(graph.results))))
        return Graph(graph.sources, graph.results, names, graph.layers), values


def chosen_inputs(
    model: Model, given: Mapping[str, Array], seed: int, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[list[Array], InputShapes]:
    """`input_arrays` of a model, and the shapes of all.

    Shapes that neither `given` nor `shapes` says follow from these.
    """
    of_arrays = {name: np.shape(array) for name, array in given.items()}
    chosen = input_shapes(model, {**shapes, **of_arrays})
    return input_arrays(model.graph, given, seed, chosen.by_name), chosen


def input_arrays(
    graph: Graph,
    given: Mapping[str, Array],
    seed: int,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> list[Array]:
    """One array per input: the caller's, or one made of chance, of the input's shape in `shapes`.

    Real numbers for a quantised input are stored with its scale and zero point.
    """
    names = [value.name for value in graph.inputs]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InvalidArgumentError(
            "the model has no such input",
            expected=", ".join(names),
            actual=", ".join(map(repr, unknown)),
        )
    rng = np.random.default_rng(seed)
    arrays = []
    for value, default in zip(graph.inputs, graph.default_shapes, strict=True):
        if value.name in given:
            arrays.append(as_input(value.name, value.info, given[value.name], quantize=True))
            continue
        shape = (shapes or {}).get(value.name) or default
        if shape is None:
            shape = tuple(1 if dim is None else dim for dim in value.info.shape or ())
        arrays.append(_random(value.info.with_shape(shape), rng))
    return arrays


def _random(info: TensorInfo, rng: np.random.Generator) -> Array:
    """Elements of an input as `DataType.random` makes them, but small floats are in [-1, 1)."""
    shape = info.known_shape
    if info.data_type.is_bit_pattern:
        return stored(rng.uniform(-1, 1, shape), info)
    return info.data_type.random(rng, shape)
