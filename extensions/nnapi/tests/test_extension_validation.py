"""Declarations of vendor extensions in models, and in models inside other models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.execution import RuntimeOptions
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Model,
    ModelBuilder,
    OperandCode,
    OperandType,
    OperationCode,
    ResultCode,
)
from armpy_nnapi.description.model_description import (
    ExtensionTypeInformation,
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.model.references import References
from armpy_nnapi.validation.validate_model import validate_model
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.backends.vendor_extension import NAME, REVERSE, TENSOR_RECORD, RecordsBackend

from .nnapi_models import fails

RECORD = ExtensionTypeInformation(TENSOR_RECORD, True, 3)
ROWS = np.array([[1, 2, 3], [4, 5, 6]], np.uint8)
REVERSED = [[4, 5, 6], [1, 2, 3]]
OTHER = "com.example.other"


def described(
    prefix: int = 7,
    extensions: Mapping[int, str] | None = None,
    *,
    extension_type: ExtensionTypeInformation = RECORD,
    operation: int | None = None,
) -> ModelDescription:
    """One REVERSE of two records, with prefixes of its own."""
    operand = Operand(prefix << 16 | TENSOR_RECORD, (2,), extension_type=extension_type)
    operands = (
        replace(operand, lifetime=Lifetime.SUBGRAPH_INPUT),
        replace(operand, lifetime=Lifetime.SUBGRAPH_OUTPUT),
    )
    node = OperationNode(prefix << 16 | REVERSE if operation is None else operation, (0,), (1,))
    main = Subgraph(operands, (node,), (0,), (1,))
    return ModelDescription(main, extensions={prefix: NAME} if extensions is None else extensions)


@pytest.mark.parametrize(
    ("description", "problem"),
    [
        (described(extensions={7: NAME, 8: NAME}), f"'{NAME}': an extension has two prefixes"),
        (described(extensions={7: "records"}), "'records': not a valid extension name"),
        (described(extensions={7: NAME, 8: ""}), "'': not a valid extension name"),
        (described(extensions={7: NAME, 0: OTHER}), f"'{OTHER}': this cannot be the prefix.*got 0"),
        (described(extensions={7: NAME, -1: OTHER}), "this cannot be the prefix.*got -1"),
        (described(extensions={7: NAME, 0x8000: OTHER}), "cannot be the prefix.*got 32768"),
        (described(extensions={7: NAME, True: OTHER}), "cannot be the prefix.*got True"),
        (
            described(extensions={}),
            "operand 0: the prefix of its code has no name.*got 7 of 0x7000",
        ),
        (described(operation=9 << 16), "operation 0: the prefix of its code has no name.*got 9"),
        (
            described(extension_type=ExtensionTypeInformation(TENSOR_RECORD + 1, True, 3)),
            "operand 0: the number of its type contradicts its code.*1 of 0x70001; got 2",
        ),
    ],
)
def test_what_contradicts_itself_is_bad_data(description: ModelDescription, problem: str) -> None:
    with fails(ResultCode.BAD_DATA, problem):
        validate_model(description)


def test_a_type_is_the_same_in_all_of_a_model() -> None:
    description = described()
    first, second = description.main.operands
    second = replace(second, extension_type=ExtensionTypeInformation(TENSOR_RECORD, True, 4))
    main = replace(description.main, operands=(first, second))
    with fails(ResultCode.BAD_DATA, "operand 1: its type is something else elsewhere"):
        validate_model(replace(description, main=main))
    with fails(ResultCode.BAD_DATA, "referenced model 0 / operand 1: its type is something else"):
        validate_model(replace(description, referenced=(main,)))


def test_plain_types_and_operations_belong_to_no_extension() -> None:
    description = described()
    plain = Operand(OperandCode.TENSOR_FLOAT32, (2,), extension_type=RECORD)
    main = replace(description.main, operands=(*description.main.operands, plain))
    with fails(ResultCode.BAD_DATA, "operand 2: it is said of which extension's type it is"):
        validate_model(replace(description, main=main))


def manager_that_knows_another_first() -> DeviceManager:
    """The devices Records and CpuRef; prefix 1 is another extension's than Records'."""
    backends = [RecordsBackend(), ReferenceBackend()]
    options = RuntimeOptions(
        backends=[backend.get_id() for backend in backends], registry=registry_of(*backends)
    )
    manager = DeviceManager(options)
    manager.extensions.get_operation_type(OTHER, 0)
    return manager


def if_around(inner: Model, manager: DeviceManager) -> Model:
    """IF of a model, whichever the condition."""
    builder = ModelBuilder(manager)
    code = builder.model.get_extension_operand_type(NAME, TENSOR_RECORD)
    record = OperandType(code, (2,))
    condition = builder.input(OperandType(OperandCode.TENSOR_BOOL8, (1,)))
    operand = builder.input(record)
    return builder.finish(*builder.if_(condition, inner, inner, [operand], [record]))


@pytest.mark.parametrize(
    "inner",
    [lambda: Model.from_description(described()), lambda: nested(described())],
    ids=["described", "described, and in a described one"],
)
def test_the_prefixes_of_a_model_inside_another_become_the_other_s(
    inner: Callable[[], Model],
) -> None:
    with manager_that_knows_another_first() as manager:
        model = if_around(inner(), manager)
        assert model.description.extensions == {2: NAME}
        with Compilation(model) as compilation:
            compilation.finish()
            (output,) = compilation(np.array([True]), ROWS)
            assert output.tolist() == REVERSED


def nested(inner: ModelDescription) -> Model:
    """A described model whose IF runs another one, both with the same prefix."""
    source, target = inner.main.operands
    condition = Operand(
        OperandCode.TENSOR_BOOL8, (1,), lifetime=Lifetime.CONSTANT_COPY, data=bytes([True])
    )
    other = Operand(OperandCode.MODEL, lifetime=Lifetime.SUBGRAPH, subgraph=0)
    node = OperationNode(OperationCode.IF, (2, 1, 1, 0), (3,))
    main = Subgraph((source, other, condition, target), (node,), (0,), (3,))
    return Model.from_description(replace(inner, main=main, referenced=(inner.main,)))


def test_prefixes_that_change_places_do_not_run_into_each_other() -> None:
    own = described(2, {2: OTHER, 1: NAME})
    plain = Operand(OperandCode.TENSOR_FLOAT32, (2,))
    ends = Lifetime.SUBGRAPH_INPUT, Lifetime.SUBGRAPH_OUTPUT
    main = Subgraph(
        (*own.main.operands, *(replace(plain, lifetime=lifetime) for lifetime in ends)),
        (*own.main.operations, OperationNode(1 << 16 | 5, (2,), (3,))),
        (0, 2),
        (1, 3),
    )
    here = {OTHER: 1, NAME: 2}
    references = References()
    references.add(replace(own, main=main), here.__getitem__)
    (graph,) = references.graphs
    assert [node.type for node in graph.operations] == [1 << 16 | REVERSE, 2 << 16 | 5]
    assert [operand.type for operand in graph.operands] == [1 << 16 | TENSOR_RECORD] * 2 + [3, 3]
