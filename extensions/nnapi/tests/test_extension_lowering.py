"""Extensions' operands and operations in the core's graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armpy.backend import Extension, ExtensionOperandType, ExtensionOperation
from armpy.errors import ArmpyError, BackendError
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import (
    ExtensionTypeInformation,
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.extensions.extensions import TypeManager
from armpy_nnapi.lowering.lower_model import lower_model
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.vendor_extension import (
    COUNT,
    EXTENSION,
    NAME,
    REVERSE,
    TENSOR_RECORD,
    RecordsBackend,
    Reverse,
    create_reverse,
)

from .nnapi_models import bad_data

PREFIX = 5
"""Any will do: a description says which name it stands for."""


def code(number: int, prefix: int = PREFIX) -> int:
    return prefix << 16 | number


def record(*dimensions: int, **fields: object) -> Operand:
    """An operand of the type TENSOR_RECORD."""
    information = ExtensionTypeInformation(TENSOR_RECORD, True, 3)
    operand = Operand(code(TENSOR_RECORD), dimensions, extension_type=information)
    return replace(operand, **fields)  # type: ignore[arg-type]  # checked at run time


def model(number: int, inputs: list[Operand], outputs: list[Operand]) -> ModelDescription:
    """One operation of the extension; inputs and outputs that are temporary are the model's."""
    ins = [
        replace(o, lifetime=Lifetime.SUBGRAPH_INPUT)
        if o.lifetime is Lifetime.TEMPORARY_VARIABLE
        else o
        for o in inputs
    ]
    outs = [replace(o, lifetime=Lifetime.SUBGRAPH_OUTPUT) for o in outputs]
    input_indexes = tuple(i for i, o in enumerate(ins) if o.lifetime is Lifetime.SUBGRAPH_INPUT)
    output_indexes = tuple(range(len(ins), len(ins) + len(outs)))
    node = OperationNode(code(number), tuple(range(len(ins))), output_indexes)
    main = Subgraph((*ins, *outs), (node,), input_indexes, output_indexes)
    return ModelDescription(main, extensions={PREFIX: NAME})


BACKEND = RecordsBackend()
LOOKUP = TypeManager([BACKEND]).lookup()


def run(description: ModelDescription, *arrays: np.ndarray) -> list[np.ndarray]:
    graph = lower_model(description, extensions=LOOKUP)
    runtime = runtime_of(BACKEND)
    network = runtime.get_network(runtime.load_network(graph))
    return network.run(arrays)


@pytest.mark.parametrize(
    ("size", "carrier", "element"),
    [
        (1, DataType.UNSIGNED8, ()),
        (2, DataType.UNSIGNED16, ()),
        (3, DataType.UNSIGNED8, (3,)),
        (4, DataType.UNSIGNED32, ()),
        (8, DataType.UNSIGNED64, ()),
        (16, DataType.UNSIGNED8, (16,)),
    ],
)
def test_elements_are_carried_as_unsigned_integers_or_byte_by_byte(
    size: int, carrier: DataType, element: tuple[int, ...]
) -> None:
    tensor = Operand(
        code(0), (2, 0), extension_type=ExtensionTypeInformation(0, True, size), data=None
    )
    assert tensor.info == TensorInfo((2, None, *element), carrier)
    assert replace(tensor, dimensions=()).info == TensorInfo(None, carrier)
    constant = replace(tensor, dimensions=(2, 1), data=bytes(range(2 * size)))
    assert constant.elements is not None
    assert constant.elements.shape == (2, 1, *element)
    assert constant.elements.tobytes() == bytes(range(2 * size))
    scalar = Operand(code(0), extension_type=ExtensionTypeInformation(0, False, size))
    assert scalar.info == TensorInfo(element, carrier)


def test_attached_data_and_types_reach_the_extension() -> None:
    seen = []

    def create(inputs, outputs):  # type: ignore[no-untyped-def]
        seen.extend([*inputs, *outputs])
        return create_reverse(inputs, outputs)

    other = Extension(NAME, EXTENSION.operand_types, [ExtensionOperation(REVERSE, "R", create)])
    lookup = TypeManager([RecordsBackend(extensions=[other])]).lookup()
    scalar = Operand(OperandCode.INT32, lifetime=Lifetime.NO_VALUE)
    description = model(REVERSE, [record(2, extension_data=b"tag"), scalar], [record(2)])
    graph = lower_model(description, extensions=lookup)
    assert graph.layers[0].operation == Reverse(b"tag")
    assert [(o.extension, o.type_id, o.data, o.is_omitted) for o in seen] == [
        (NAME, TENSOR_RECORD, b"tag", False),
        ("", None, None, True),
        (NAME, TENSOR_RECORD, None, False),
    ]
    assert seen[1].info == TensorInfo((), DataType.SIGNED32)


def test_an_input_that_an_execution_leaves_out_is_left_out_for_the_extension() -> None:
    seen = []

    def create(inputs, outputs):  # type: ignore[no-untyped-def]
        seen.append([operand.is_omitted for operand in inputs])
        return create_reverse(inputs, outputs)

    other = Extension(NAME, EXTENSION.operand_types, [ExtensionOperation(REVERSE, "R", create)])
    lookup = TypeManager([RecordsBackend(extensions=[other])]).lookup()
    description = model(REVERSE, [record(2), Operand(OperandCode.INT32)], [record(2)])
    for omitted in ([], [1]):
        graph = lower_model(description, omitted, extensions=lookup)
        assert len(graph.layers[0].inputs) == len(graph.inputs) == 2 - len(omitted)
    assert seen == [[False, False], [False, True]]


def test_operands_that_the_extension_does_not_take_are_bad_data() -> None:
    with bad_data(rf"{NAME} / COUNT: COUNT takes a number. Expected WIDE"):
        lower_model(model(COUNT, [record(2)], [record(2)]), extensions=LOOKUP)


def test_another_number_of_outputs_is_bad_data() -> None:
    with bad_data(rf"{NAME} / REVERSE: the number of outputs is wrong. Expected 1; got 2"):
        lower_model(model(REVERSE, [record(2)], [record(2), record(2)]), extensions=LOOKUP)


def test_an_operation_that_the_extension_does_not_have_is_bad_data() -> None:
    with bad_data(rf"{NAME}: .*no such operation. Expected 0 \(COUNT\), 1 \(REVERSE\); got 9"):
        lower_model(model(9, [record(2)], [record(2)]), extensions=LOOKUP)


def test_a_prefix_without_a_name_is_bad_data() -> None:
    description = replace(model(REVERSE, [record(2)], [record(2)]), extensions={})
    with bad_data("the model has no extension with this prefix. Got 0x50001"):
        lower_model(description, extensions=LOOKUP)


class Foreign(Reverse):
    """Of another extension."""

    __slots__ = ()
    extension = "com.example.other"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (Foreign(b""), rf"does not belong to it. Expected Foreign.extension = '{NAME}'"),
        (
            "Reverse",
            "it creates an object that is not an operation. Expected an instance of a .*; got str",
        ),
    ],
    ids=["foreign", "nothing"],
)
def test_a_wrong_creation_is_an_error_of_the_backend(made: object, reason: str) -> None:
    def create(inputs: object, outputs: object) -> Operation:
        return made  # type: ignore[return-value]  # wrong on purpose

    bad = Extension(NAME, EXTENSION.operand_types, [ExtensionOperation(REVERSE, "R", create)])
    lookup = TypeManager([RecordsBackend(extensions=[bad])]).lookup()
    with pytest.raises(BackendError, match=reason):
        lower_model(model(REVERSE, [record(2)], [record(2)]), extensions=lookup)


def test_types_of_another_extension_must_be_required() -> None:
    other = "com.example.other"
    types = (ExtensionOperandType(0, "OTHER", True, 3),)
    foreign = Operand(code(0, 6), (2,), extension_type=ExtensionTypeInformation(0, True, 3))
    description = replace(
        model(REVERSE, [foreign], [record(2)]), extensions={PREFIX: NAME, 6: other}
    )
    with pytest.raises(BackendError, match=rf"does not require. Expected {other} in its required"):
        lower_model(description, extensions=LOOKUP)

    class Requiring(Reverse):
        __slots__ = ()

        @property
        def required_extensions(self) -> tuple[str, ...]:
            return (NAME, other)

    def create(inputs: object, outputs: object) -> Operation:
        return Requiring(b"")

    operations = [ExtensionOperation(REVERSE, "REVERSE", create)]
    both = Extension(NAME, EXTENSION.operand_types, operations), Extension(other, types)
    for extensions, is_enough in ((both, True), (both[:1], False)):
        backend = RecordsBackend(extensions=extensions)
        graph = lower_model(description, extensions=TypeManager([backend]).lookup())
        runtime = runtime_of(backend)
        if is_enough:
            runtime.load_network(graph)
            continue
        with pytest.raises(ArmpyError, match=rf"Records: it does not have the .* {other}; "):
            runtime.load_network(graph)


def test_nnapi_s_own_operations_go_beside_the_extension_s() -> None:
    first = model(REVERSE, [record(2)], [record(2)])
    tensor = Operand(OperandCode.TENSOR_FLOAT32, (2,), lifetime=Lifetime.SUBGRAPH_INPUT)
    result = replace(tensor, lifetime=Lifetime.SUBGRAPH_OUTPUT)
    main = first.main
    floor = OperationNode(OperationCode.FLOOR, (2,), (3,))
    both = Subgraph((*main.operands, tensor, result), (*main.operations, floor), (0, 2), (1, 3))
    description = replace(first, main=both)
    records = np.arange(6, dtype=np.uint8).reshape(2, 3)
    reversed_records, floored = run(description, records, np.array([1.5, -1.5], np.float32))
    np.testing.assert_array_equal(reversed_records[0], [3, 4, 5])
    np.testing.assert_array_equal(floored, [1, -2])
