"""Makes up valid NNAPI models, the same ones for the same seed."""

from __future__ import annotations

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy_nnapi.conformance.random_graphs.call import Source
from armpy_nnapi.conformance.random_graphs.control_flow import CONTROL_FLOW, control_flow_model
from armpy_nnapi.conformance.random_graphs.making import MadeCall, assemble, random_call, results_of
from armpy_nnapi.conformance.random_graphs.recipes import recipes
from armpy_nnapi.conformance.random_graphs.zero_sized import ZERO_SIZED, zero_sized_model
from armpy_nnapi.description.model_description import ModelDescription
from armpy_nnapi.operations import definitions

_SIZES = ((1, 0.4), (3, 0.3), (8, 0.2), (20, 0.1))
"""Numbers of operations, and how likely each is."""


@dataclass(frozen=True, slots=True)
class RandomModel:
    """A model and what to run it with."""

    seed: int
    description: ModelDescription
    inputs: tuple[Array, ...]


def random_model(seed: int, size: int | None = None) -> RandomModel:
    """Make up a model.

    Parameters
    ----------
    seed : int
        0 or more.
    size : int, optional
        Number of operations of the main graph; drawn if left out.

    Notes
    -----
    Operations are drawn from all signatures of all definitions that have a recipe, each
    operation equally often. Whether a parameter goes is asked of the lowering: what it
    refuses is drawn again.
    """
    return drawn_model(np.random.default_rng(seed), seed, size)


def drawn_model(random: np.random.Generator, seed: int, size: int | None = None) -> RandomModel:
    """Make up a model by what a generator draws; `seed` only goes along."""
    if size is None:
        size = int(random.choice([s for s, _ in _SIZES], p=[p for _, p in _SIZES]))
    kind = random.random()
    if kind < CONTROL_FLOW:
        return RandomModel(seed, *control_flow_model(random))
    if kind < CONTROL_FLOW + ZERO_SIZED:
        return RandomModel(seed, *zero_sized_model(random))
    model = _Maker(random)
    while len(model.calls) < size:
        model.add_operation()
    return RandomModel(seed, *assemble(random, model.calls))


class _Maker:
    """Collects operations until the model is large enough."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self.calls: list[MadeCall] = []
        self._pool: list[Source] = []

    def add_operation(self) -> None:
        """Add an operation of a random kind; none if its operands could not be made up."""
        codes = list(recipes())
        definition = definitions()[int(self._random.choice(codes))]
        signatures = list(definition.signatures())
        form, row = signatures[int(self._random.integers(len(signatures)))]
        call_made = random_call(self._random, definition, form, row, self._pool)
        if call_made is None:
            return
        call, operands = call_made
        outputs = results_of(call, operands)
        self.calls.append((call, outputs))
        self._pool += [
            output
            for output, argument in zip(outputs, call.output_arguments(), strict=True)
            if output.operand.dimensions
            and 0 not in output.shape
            and argument.name not in call.private
        ]
