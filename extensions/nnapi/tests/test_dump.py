"""Drawings of models."""

from __future__ import annotations

import io
import logging

import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import Extension, ExtensionOperandType, ExtensionOperation
from armpy.execution import RuntimeOptions
from armpy.ops import Activation
from armpy_nnapi import (
    DeviceManager,
    Model,
    ModelBuilder,
    NnapiError,
    OperandCode,
    OperandType,
    graph_dump,
)
from armpy_testing.backends.fake_backends import FakeBackend, registry_of

from .nnapi_models import BOOL_1, FLOAT_2, floats, sum_model


def test_a_model_is_drawn_operand_by_operand() -> None:
    builder = ModelBuilder()
    x = builder.input(OperandType(OperandCode.TENSOR_QUANT8_ASYMM, (1, 2), 0.5))
    y = builder.dequantize(x, outputs=OperandType(OperandCode.TENSOR_FLOAT32, (1, 2)))
    z = builder.add(y, floats(1, 2), outputs=OperandType(OperandCode.TENSOR_FLOAT32, (0, 2)))
    text = graph_dump(builder.finish(z).description, name="two\nlines")
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
    (chosen,) = builder.if_(condition, model, model, [x, x], [FLOAT_2])
    text = graph_dump(builder.finish(chosen).description)
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


def test_it_goes_to_a_stream_or_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    model, stream = sum_model(), io.StringIO()
    with caplog.at_level(logging.INFO, "armpy_nnapi"):
        text = graph_dump(model.description, stream, "sum")
        assert stream.getvalue() == text
        assert not caplog.records
        assert graph_dump(model.description, name="sum") == text
    assert [record.getMessage() for record in caplog.records] == [text]
    assert text.startswith("// sum\ndigraph {\n")


def test_what_takes_no_text_is_refused() -> None:
    with pytest.raises(
        NnapiError, match=r"graph_dump: this is not a stream\. Expected a text file"
    ):
        graph_dump(sum_model(), "name")  # type: ignore[arg-type]  # wrong on purpose


def test_what_belongs_to_an_extension_has_its_name() -> None:
    extension = Extension(
        "com.example.fibonacci",
        [ExtensionOperandType(1, "TENSOR_INT64", True, 8)],
        [ExtensionOperation(7, "FIBONACCI", lambda *_: Activation())],
    )

    class Vendor(FakeBackend):
        extensions = (extension,)

    registry = registry_of(Vendor("Vendor"), ReferenceBackend())
    with DeviceManager(RuntimeOptions(["Vendor", "CpuRef"], registry=registry)) as manager:
        model = Model(manager)
        kind = model.get_extension_operand_type("com.example.fibonacci", 1)
        x, y = (model.add_operand(OperandType(kind, (2,))) for _ in range(2))
        operation = model.get_extension_operation_type("com.example.fibonacci", 7)
        model.add_operation(operation, [x], [y])
        model.identify_inputs_and_outputs([x], [y])
        model.finish()
        text, plain = graph_dump(model), graph_dump(model.description)
    assert "\\ncom.example.fibonacci/TENSOR_INT64(2)" in text
    assert '"0: com.example.fibonacci/FIBONACCI"' in text
    assert "\\ncom.example.fibonacci/1(2)" in plain  # of which no more is known
    assert '"0: com.example.fibonacci/7"' in plain
