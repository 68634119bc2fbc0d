"""Makes valid models invalid, each in one way, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from armpy_nnapi.conformance.random_graphs.control_flow import control_flow_model
from armpy_nnapi.conformance.random_graphs.generator import random_model
from armpy_nnapi.description.model_description import ModelDescription

from . import graphs, operands, references
from .editor import Editor

Mutate: TypeAlias = Callable[[Editor], bool]
"""Makes a graph invalid; False, and no change, if it has nothing to do that to."""

_FOR_ALL: tuple[Mutate, ...] = (
    operands.bad_scale,
    operands.bad_zero_point,
    operands.scale_without_quantisation,
    operands.scalar_with_dimensions,
    operands.unknown_type,
    operands.bad_dimension,
    operands.wrong_length,
    operands.constant_of_unknown_size,
    operands.never_written,
    operands.no_channel_scales,
    operands.wrong_number_of_scales,
    operands.wrong_channel_dimension,
    operands.bad_channel_scale,
    operands.scales_on_another_type,
    graphs.input_out_of_range,
    graphs.output_out_of_range,
    graphs.reads_what_nothing_writes,
    graphs.reads_itself,
    graphs.reads_in_a_circle,
    graphs.two_writers,
    graphs.writes_twice,
    graphs.writes_what_has_a_value,
    graphs.unknown_operation,
    graphs.wrong_number_of_inputs,
    graphs.no_outputs,
    graphs.too_many_outputs,
    graphs.type_that_nothing_takes,
    graphs.scalar_for_a_tensor,
    graphs.tensor_for_a_scalar,
    graphs.wrong_rank,
    graphs.no_operations,
    graphs.listed_twice,
    graphs.listed_as_both,
    graphs.constant_listed,
    graphs.listed_out_of_range,
    graphs.input_not_listed,
)
_OF_CONTROL_FLOW: tuple[Mutate, ...] = (
    references.tensor_for_a_model,
    references.model_for_a_tensor,
    references.bad_condition,
    references.exchanged_models,
    references.missing_value,
    references.surplus_value,
    references.surplus_output,
    references.value_of_another_type,
    references.value_of_other_dimensions,
    references.output_of_another_type,
    references.model_that_is_invalid,
)
_OF_DESCRIPTIONS: tuple[Mutate, ...] = (
    operands.elements_without_constant,
    operands.constant_without_elements,
)
_OF_DESCRIBED_CONTROL_FLOW: tuple[Mutate, ...] = (
    references.model_that_is_not_there,
    references.model_that_is_a_constant,
    references.model_that_refers_to_itself,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to make a model invalid."""

    mutate: Mutate
    has_control_flow: bool = False  # whether it needs a model with IF or WHILE
    is_buildable: bool = True
    """Whether an application can try it with the methods of `armpy_nnapi.Model`; otherwise it takes
    a description.
    """


KINDS: Mapping[str, Kind] = MappingProxyType(
    {mutate.__name__: Kind(mutate) for mutate in _FOR_ALL}
    | {mutate.__name__: Kind(mutate, True) for mutate in _OF_CONTROL_FLOW}
    | {mutate.__name__: Kind(mutate, is_buildable=False) for mutate in _OF_DESCRIPTIONS}
    | {mutate.__name__: Kind(mutate, True, False) for mutate in _OF_DESCRIBED_CONTROL_FLOW}
)
"""All kinds by name."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """An invalid model."""

    seed: int
    kind: str  # one of `KINDS`
    description: ModelDescription

    @property
    def is_buildable(self) -> bool:
        """Whether an application can try it with the methods of `armpy_nnapi.Model`."""
        return KINDS[self.kind].is_buildable


def random_mutation(seed: int) -> Mutation:
    """Make up a valid model and make it invalid.

    `seed`: 0 or more. Kinds take turns.
    """
    name = list(KINDS)[seed % len(KINDS)]
    kind = KINDS[name]
    random = np.random.default_rng((seed, 1))
    while True:
        if kind.has_control_flow:
            description, _ = control_flow_model(random)
        else:
            description = random_model(int(random.integers(1 << 40)), 3).description
        editor = Editor(description, random)
        if kind.mutate(editor):
            return Mutation(seed, name, editor.finish())
