"""Derived models: a model's network for other shapes or with other outputs, on its runtime."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence

from armpy.errors import InvalidArgumentError
from armpy.execution.arrays import reshaping
from armpy.graph import Graph
from armpy.model.network_handle import NetworkHandle
from armpy.model.pickling import derived_recipe, waiting
from armpy.model.provenance import Derivation, Provenance
from armpy.model.related_models import ModelT, OutputSubsets


def reshaped(model: ModelT, shapes: Mapping[str, Sequence[int | None]]) -> ModelT:
    """Make the model for inputs of other shapes; see `Model.reshape`."""
    graph = reshaping.with_input_shapes(model.handle.source, shapes)
    return _derived(model, graph, Derivation(model, "reshape", dict(shapes)))


def with_outputs(model: ModelT, names: Sequence[str]) -> ModelT:
    """Find or make the model with some tensors as outputs; see `Model.with_outputs`."""
    chosen = reshaping.checked_names(names)
    model.handle.check_open()
    subsets: OutputSubsets[ModelT] = model.output_subsets
    return subsets.get(chosen, lambda: _with_outputs(model, chosen))


def _with_outputs(model: ModelT, names: tuple[str, ...]) -> ModelT:
    """Make the model with some tensors as outputs."""
    graph = reshaping.with_outputs(model.handle.source, names)
    if any(variable.key is None for variable in graph.variables):
        raise InvalidArgumentError(
            "the model has variables that another network cannot share",
            where="outputs",
            fix="Give them keys: Network.variable(..., key=...)",
        )
    derivation = Derivation(model, "with_outputs", names)
    return _derived(model, graph, derivation, shares_state=bool(graph.variables))


def _derived(
    model: ModelT, graph: Graph, derivation: Derivation, *, shares_state: bool = False
) -> ModelT:
    """Make a model of another network on the same runtime."""
    handle = NetworkHandle.load(
        graph,
        model.runtime,
        model.handle.properties,
        shares_state_with=model.handle if shares_state else None,
        again=again(derivation),
    )
    derived: ModelT = type(model)(
        handle,
        quantize_inputs=model.quantize_inputs,
        dequantize_outputs=model.dequantize_outputs,
        provenance=Provenance(derivation=derivation, read_metadata=model.provenance.read_metadata),
    )
    return derived


def again(derivation: Derivation) -> Callable[[], object] | None:
    """Return a function that derives the model again in another process that compiles it."""
    model, method, arguments = derivation
    if not model.handle.in_background:
        return None
    # Weak: the network has it, and would keep the runtime, whose end is the network's.
    reference = weakref.ref(model)

    def recipe() -> object:
        model = reference()
        if model is None:
            raise InvalidArgumentError("the model that this one was made of is gone")
        return waiting(derived_recipe(Derivation(model, method, arguments)))

    return recipe
