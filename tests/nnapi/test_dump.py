"""Drawings of models."""

from __future__ import annotations

from armpy.nnapi import ModelBuilder, OperandCode, OperandType, graph_dump
from tests.support.nnapi_models import BOOL_1, FLOAT_2, floats, sum_model


def test_a_model_is_drawn_operand_by_operand() -> None:
    builder = ModelBuilder()
    x = builder.input(OperandType(OperandCode.TENSOR_QUANT8_ASYMM, (1, 2), 0.5))
    y = builder.dequantize(x, outputs=OperandType(OperandCode.TENSOR_FLOAT32, (1, 2)))
    z = builder.add(y, floats(1, 2), outputs=OperandType(OperandCode.TENSOR_FLOAT32, (0, 2)))
    text = graph_dump(builder.finish(z).description, "two\nlines")
    assert text == (
        "// two lines\n"
        "digraph {\n"
        '    d0 [style=filled fillcolor=black fontcolor=white label="input[0]\\nTQ8A(1x2)"]\n'
        '    d1 [label="1\\nTF32(1x2)"]\n'
        '    d2 [label="2: COPY\\nTF32(2)"]\n'
        '    d3 [label="3: COPY\\nI32 = 0"]\n'
        '    d4 [style=filled fillcolor=black fontcolor=white label="output[0]\\nTF32(0x2)"]\n'
        '    n0 [shape=box label="0: DEQUANTIZE"]\n'
        "    d0 -> n0\n"
        "    n0 -> d1\n"
        '    n1 [shape=box ordering=in label="1: ADD"]\n'
        "    d1 -> n1 [label=0]\n"
        "    d2 -> n1 [label=1]\n"
        "    d3 -> n1 [label=2]\n"
        "    n1 -> d4\n"
        "}\n"
    )


def test_more_outputs_than_inputs_keep_their_order() -> None:
    builder = ModelBuilder()
    x = builder.input(OperandType(OperandCode.TENSOR_FLOAT32, (4,)))
    parts = builder.split(x, axis=0, num_splits=4)
    text = graph_dump(builder.finish(*parts).description)
    assert '[shape=box ordering=out label="0: SPLIT"]' in text
    assert "n0 -> d6 [label=3]" in text


def test_referenced_models_are_clusters() -> None:
    builder = ModelBuilder()
    x, condition = builder.input(FLOAT_2), builder.input(BOOL_1)
    model = sum_model()
    (made,) = builder.if_(condition, model, model, [x, x], [FLOAT_2])
    text = graph_dump(builder.finish(made).description)
    assert '[label="2: SUBGRAPH 0\\nMODEL"]' in text
    assert 'subgraph cluster_0 {\n        label="referenced 0"\n' in text
    assert "        m0_d0 -> m0_n0 [label=0]\n" in text
    assert text.count("subgraph") == 1


def test_types_without_a_short_name_have_their_full_one_and_constants_their_kind() -> None:
    builder = ModelBuilder()
    x = builder.input(OperandType(OperandCode.TENSOR_FLOAT16))
    large = builder.constant([0.0] * 100, type=OperandCode.TENSOR_FLOAT16)
    text = graph_dump(builder.finish(builder.mul(x, large)).description)
    assert 'label="input[0]\\nTENSOR_FLOAT16"' in text
    assert '"1: REF\\nTENSOR_FLOAT16(100)"' in text
