"""A compilation answers where memory of its inputs and outputs best begins, and how long it is."""

from __future__ import annotations

from armpy.ops import Activation
from armpy_nnapi import Compilation, Model, OperationCode
from armpy_testing.backends.vector_backend import VectorBackend

from .nnapi_models import (
    FLOAT_2,
    FLOAT_OPEN,
    add_activation,
    add_operands,
    compiled,
    devices_of,
    sum_model,
)


def preferred(compilation: Compilation) -> list[tuple[int, int]]:
    """Alignment and padding of the first two inputs and of the output."""
    finished = compilation
    return [
        *(
            (
                finished.get_preferred_memory_alignment_for_input(index),
                finished.get_preferred_memory_padding_for_input(index),
            )
            for index in range(2)
        ),
        (
            finished.get_preferred_memory_alignment_for_output(0),
            finished.get_preferred_memory_padding_for_output(0),
        ),
    ]


def test_the_answers_are_what_the_devices_factory_declares() -> None:
    with devices_of(VectorBackend(128, 32)) as manager:
        assert preferred(compiled(sum_model(manager=manager))) == [(128, 32)] * 3


def test_each_input_and_output_is_answered_for_its_users() -> None:
    with devices_of(VectorBackend(64, 16, {Activation})) as manager:
        model = Model(manager=manager)
        x, y, total, result = add_operands(model, FLOAT_2, FLOAT_2, FLOAT_2, FLOAT_2)
        none = add_activation(model)
        model.add_operation(OperationCode.ADD, [x, y, none], [total])
        model.add_operation(OperationCode.RELU, [total], [result])
        model.identify_inputs_and_outputs([x, y], [result])
        model.finish()
        assert preferred(compiled(model)) == [(4, 1), (4, 1), (64, 16)]


def test_nothing_is_known_of_open_dimensions() -> None:
    with devices_of(VectorBackend(128, 32)) as manager:
        model = sum_model(FLOAT_OPEN, FLOAT_OPEN, FLOAT_OPEN, manager)
        assert preferred(compiled(model)) == [(4, 1)] * 3
