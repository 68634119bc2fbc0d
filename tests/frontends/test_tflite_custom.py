"""Custom operators: those of LiteRT, and those that a plugin brings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from flatbuffers import flexbuffers

import armpy
from armpy.core.flatbuffers.flexbuffers import read_options
from armpy.errors import InvalidArgumentError, ParserError
from armpy.graph import Value
from armpy.ops import ElementwiseBinary
from armpy.plugins.hooks import CustomOperator, OperatorParts, hookimpl
from armpy_testing.models.tflite_writer import TfliteModel, model_with_input
from tests.support.walkthrough import blocks

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "write_a_plugin.md"


def custom_file(code: str, options: bytes = b"\x03") -> bytes:
    """A file of one custom operator of a vector."""
    model, graph, x = model_with_input((4,), shape_signature=(-1,))
    y = graph.tensor("y", (4,))
    graph.operator("CUSTOM", [x], [y], custom_code=code, custom_options=options)
    graph.outputs(y)
    return model.to_bytes()


def scaled(parts: OperatorParts) -> Value:
    """The input plus as many as the first byte of the options says."""
    count = parts.constant(np.array(parts.options[0], np.float32))
    return parts.layer(ElementwiseBinary(), parts.value(0), count)


def failing(parts: OperatorParts) -> Value:
    """Make a mistake."""
    raise IndexError("mistake")


class Plugin:
    """Brings operators."""

    @hookimpl
    def armpy_register_custom_operators(self) -> list[CustomOperator]:
        return [CustomOperator("VendorScale", scaled), CustomOperator("VendorMistake", failing)]


@pytest.fixture
def runtime() -> Iterator[armpy.Runtime]:
    """One with the plugin."""
    with armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"])) as vendor_runtime:
        vendor_runtime.registry.plugins.register("vendor", Plugin())
        yield vendor_runtime


@pytest.mark.parametrize("count", [4, 7])
def test_a_plugin_converts_its_operators_by_name(runtime: armpy.Runtime, count: int) -> None:
    with armpy.load(custom_file("VendorScale"), runtime=runtime) as model:
        numbers = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(model(numbers), numbers + 3)


def test_the_custom_operator_of_the_page_about_plugins_adds_its_option(
    runtime: armpy.Runtime,
) -> None:
    (source,) = (b.text for b in blocks(PAGE) if b.settings.get("title") == "vendor_shift.py")
    plugin = ModuleType("vendor_shift")
    exec(compile(source, "vendor_shift.py", "exec"), vars(plugin))
    runtime.registry.plugins.register("shift", plugin)
    with armpy.load(custom_file("VendorShift", b"\x05"), runtime=runtime) as model:
        numbers = np.array([-1, 0, 2, 40], np.float32)
        np.testing.assert_array_equal(model(numbers), np.array([4, 5, 7, 45], np.float32))


def test_a_mistake_of_a_converter_names_plugin_and_operator(runtime: armpy.Runtime) -> None:
    file = custom_file("VendorMistake")
    with pytest.raises(armpy.ArmpyError, match=r"'vendor' cannot convert 'VendorMistake'"):
        armpy.load(file, runtime=runtime)(np.zeros(4, np.float32))


@pytest.mark.parametrize("fields", [("", scaled), (3, scaled), ("Name", None)])
def test_a_custom_operator_needs_a_name_and_a_converter(fields: tuple[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be used"):
        CustomOperator(*fields)  # type: ignore[arg-type]  # as mistakes are


def flexible(**options: object) -> bytes:
    """A map as FlexBuffers stores it."""
    builder = flexbuffers.Builder()
    builder.MapFromElements(options)
    return bytes(builder.Finish())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"a": 1},
        {"a": -1, "b": 3.5, "flag": True, "other": False},
        {"wide": 1 << 40, "narrow": -3, "tiny": 1e-40, "long_name_of_an_option": 70_000},
        {f"option_{i}": i * 0.25 for i in range(100)},
    ],
)
def test_numbers_of_a_map_are_read(options: dict[str, float]) -> None:
    numbers = read_options(flexible(**options))
    assert numbers == pytest.approx(options)
    assert [type(numbers[name]) for name in options] == [type(options[name]) for name in options]


def test_damaged_maps_are_refused_and_nothing_else_happens() -> None:
    file = flexible(a=1, b=3.5, flag=True, other=1 << 40)
    rng = np.random.default_rng(5)
    for _ in range(2000):
        damaged = bytearray(file[: rng.integers(0, len(file) + 1)])
        for _ in range(min(3, len(damaged))):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        try:
            read_options(bytes(damaged))
        except ParserError:
            continue


def test_detection_without_its_options_is_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    shapes = ((1, 3, 4), (1, 3, 2), (3, 4))
    inputs = [graph.tensor(f"x{i}", shape) for i, shape in enumerate(shapes)]
    outputs = [graph.tensor(f"y{i}", None) for i in range(4)]
    code = "TFLite_Detection_PostProcess"
    options = flexible(max_detections=3)
    graph.operator("CUSTOM", inputs, outputs, custom_code=code, custom_options=options)
    graph.inputs(*inputs)
    graph.outputs(*outputs)
    with pytest.raises(ParserError, match="custom options are missing"):
        armpy.load(model.to_bytes(), backends=["CpuRef"])
