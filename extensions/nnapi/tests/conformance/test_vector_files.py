from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from armpy.errors import ParserError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.vectors.example import Example, Json, read_examples, read_file
from armpy_nnapi.conformance.vectors.writer import write_examples
from armpy_nnapi.description.model_description import (
    ChannelQuant,
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)


def operand_item(kind: str, dimensions: list[int], lifetime: str, data: str) -> Json:
    item: Json = {"type": kind, "dimensions": dimensions, "scale": 0.0, "zeroPoint": 0}
    return {**item, "lifetime": lifetime, "data": data}


def example_item(**changes: object) -> Json:
    """1.0, 2.0 (an input) plus itself, with the activation RELU6."""
    main = {
        "operands": [
            operand_item("TENSOR_FLOAT32", [2], "SUBGRAPH_INPUT", "AACAPwAAAEA="),
            operand_item("INT32", [], "CONSTANT_COPY", "AwAAAA=="),
            operand_item("TENSOR_FLOAT32", [2], "SUBGRAPH_OUTPUT", "AAAAQAAAgEA="),
        ],
        "operations": [{"type": "ADD", "inputs": [0, 0, 1], "outputs": [2]}],
        "inputs": [0],
        "outputs": [2],
    }
    item: Json = {
        "name": "add",
        "relaxed": True,
        "expectFailure": False,
        "multinomialTolerance": 0.0,
    }
    return {**item, "minVersion": "V1_0", "main": main, "referenced": [], **changes}


def write(path: Path, *items: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        json.dump(items, file)


def test_an_example_has_the_file_s_model_and_elements(tmp_path: Path) -> None:
    write(tmp_path / "V1_0" / "add.json.gz", example_item())
    (example,) = read_examples(tmp_path)
    assert (example.name, example.file) == ("add", "add.json.gz")
    assert example.model.relaxed
    assert example.operations == ("ADD",)
    assert example.model.main.operations == (OperationNode(OperationCode.ADD, (0, 0, 1), (2,)),)
    activation = example.model.main.operands[1]
    assert activation.elements == 3
    assert example.inputs[0] is not None
    assert example.outputs[0] is not None
    np.testing.assert_array_equal(example.inputs[0], np.asarray([1, 2], np.float32))
    np.testing.assert_array_equal(example.outputs[0], np.asarray([2, 4], np.float32))
    assert example.model.main.operands[0].data is None


def test_an_input_without_elements_is_left_out(tmp_path: Path) -> None:
    item = example_item()
    item["main"]["operands"][0] = operand_item("TENSOR_FLOAT32", [0], "SUBGRAPH_INPUT", "")
    write(tmp_path / "a.json.gz", item)
    assert next(read_examples(tmp_path)).inputs == (None,)


def test_an_ignored_output_is_not_compared(tmp_path: Path) -> None:
    item = example_item()
    item["main"]["operands"][2]["isIgnored"] = True
    write(tmp_path / "a.json.gz", item)
    assert next(read_examples(tmp_path)).outputs == (None,)


def test_unknown_outputs_keep_their_rank(tmp_path: Path) -> None:
    write(tmp_path / "a.json.gz", example_item())
    example = next(read_examples(tmp_path))
    unknown = example.with_unknown_outputs()
    assert unknown.output_operand(0).dimensions == (0,)
    assert unknown.output_shape(0) is None
    assert example.output_shape(0) == (2,)


@pytest.mark.parametrize(
    "damage",
    [
        {"main": {}},
        {"main": 3},
        {"referenced": None},
        {"minVersion": "V1_0", "relaxed": True, "main": {"operands": [{"type": "NONE"}]}},
    ],
)
def test_what_is_no_example_is_a_parser_error_that_names_the_file(
    tmp_path: Path, damage: Json
) -> None:
    write(tmp_path / "odd.json.gz", example_item(**damage))
    with pytest.raises(ParserError, match=r"odd\.json\.gz"):
        list(read_examples(tmp_path))


def test_a_file_that_is_not_compressed_is_a_parser_error(tmp_path: Path) -> None:
    (tmp_path / "plain.json.gz").write_text("[]")
    with pytest.raises(ParserError, match=r"plain\.json\.gz.*test vectors"):
        read_file(tmp_path / "plain.json.gz")


def test_a_file_that_is_damaged_is_a_parser_error(tmp_path: Path) -> None:
    path = tmp_path / "damaged.json.gz"
    write(path, example_item())
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes(byte ^ 0x5A for byte in whole[40:-8]) + whole[-8:])
    with pytest.raises(ParserError, match=r"damaged\.json\.gz.*test vectors"):
        read_file(path)


def test_a_file_that_nests_without_end_is_a_parser_error(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "deep.json.gz", "wt") as file:
        file.write("[" * 100_000)
    with pytest.raises(ParserError, match=r"deep\.json\.gz.*test vectors"):
        read_file(tmp_path / "deep.json.gz")


def test_written_examples_are_read_again_as_they_were(tmp_path: Path) -> None:
    weights = np.arange(-4, 4, dtype=np.int8).reshape(2, 2, 2)
    operands = (
        Operand(OperandCode.TENSOR_QUANT8_ASYMM, (3,), 0.5, 7, Lifetime.SUBGRAPH_INPUT),
        Operand(
            OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL,
            (2, 2, 2),
            lifetime=Lifetime.CONSTANT_COPY,
            data=weights.tobytes(),
            channel_quant=ChannelQuant((0.25, 0.5), 1),
        ),
        Operand(OperandCode.MODEL, lifetime=Lifetime.SUBGRAPH, subgraph=0),
        Operand(OperandCode.TENSOR_FLOAT32, (), lifetime=Lifetime.NO_VALUE),
        Operand(OperandCode.TENSOR_BOOL8, (2,), lifetime=Lifetime.SUBGRAPH_OUTPUT),
        Operand(OperandCode.TENSOR_INT32, (0, 2), lifetime=Lifetime.SUBGRAPH_OUTPUT),
    )
    graph = Subgraph(
        operands, (OperationNode(OperationCode.IF, (0, 1, 2, 3), (4, 5)),), (0,), (4, 5)
    )
    inner = Subgraph(operands[:1], (), (0,), ())
    example = Example(
        "odd one",
        "kept.json.gz",
        ModelDescription(graph, (inner,), relaxed=True),
        (np.asarray([1, 2, 3], np.uint8),),
        (np.array([True, False]), None),
        expects_failure=True,
        multinomial_tolerance=0.05,
        feature_level=29,
    )
    path = tmp_path / "deep" / "kept.json.gz"
    write_examples(path, [example])
    (again,) = read_file(path)
    assert again.model == example.model
    assert (again.name, again.feature_level) == ("odd one", 29)
    assert (again.expects_failure, again.multinomial_tolerance) == (True, 0.05)
    assert again.inputs[0] is not None
    assert again.outputs[0] is not None
    np.testing.assert_array_equal(again.inputs[0], example.inputs[0])
    np.testing.assert_array_equal(again.outputs[0], example.outputs[0])
    assert again.outputs[1] is None
