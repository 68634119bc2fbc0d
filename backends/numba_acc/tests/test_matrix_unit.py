"""Products of bytes by a matrix unit (AMX), or by what emulates one, are CpuRef's."""

from __future__ import annotations

import signal
import sys

import numpy as np
import pytest
from armpy_numba_acc import options
from armpy_numba_acc.kernels import convolution_u8_matrix
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.lowering import matrix_unit as lowering
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.machine.processors.matrix_unit import configuration
from armpy_numba_acc.options import ISA_VARIABLE, ResolvedOptions, matrix_unit_state
from armpy_numba_acc.passes.region import lower_region

from armpy import Network
from armpy.errors import InvalidArgumentError
from armpy.graph import SubgraphView
from armpy.ops import Convolution2d
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .support import (
    PRODUCT_ISAS,
    check_against_reference,
    run_apart,
    run_compiled,
    run_reference,
)
from .test_weighted_u8 import BOTH_U8, RELU6, SAME, Case, convolution

UNITS = tuple(isa for isa in PRODUCT_ISAS if isa.has_matrix_unit)
needs_unit = pytest.mark.skipif(not UNITS, reason="the processor can do without no vectors")

needs_amx = pytest.mark.skipif(
    "amx" not in [isa.matrix_unit for isa in UNITS],
    reason="this processor has no matrix unit, or the system keeps it from us",
)

PIXELS = {
    f"{height} by {width} pixels of {depth} channels, {filters} filters": Case(
        (1, height, width, depth), filters
    )
    for height, width, depth, filters in [
        (1, 2, 1, 1),
        (1, 3, 4, 2),
        (7, 7, 5, 16),
        (1, 31, 61, 17),
        (4, 8, 64, 31),
        (3, 11, 65, 32),
        (5, 13, 66, 33),
        (1, 97, 67, 48),
        (8, 16, 128, 49),
        (2, 17, 130, 70),
        (1, 2, 127, 5),
    ]
}
WINDOWS = {
    "line by line": Case((1, 9, 9, 16), 18, (3, 3), padding=SAME),
    "images that lie apart": Case((3, 6, 5, 20), 33, (3, 3), padding=SAME),
    "one row of output": Case((1, 3, 40, 8), 9, (3, 3)),
    "one column of output": Case((1, 40, 3, 8), 9, (3, 3)),
    "strides": Case((2, 11, 13, 12), 21, (3, 3), (2, 2), padding=SAME),
    "strides of 3": Case((1, 17, 19, 7), 40, (2, 2), (3, 3)),
    "images that end before a stride does": Case((3, 1, 18, 7), 4, (1, 3), (2, 2)),
    "images of several such lines": Case((2, 5, 18, 16), 20, (1, 2), (2, 2)),
    "dilated": Case((1, 12, 10, 9), 24, (3, 3), dilation=(2, 3), padding=SAME),
    "three channels": Case((1, 21, 19, 3), 16, (3, 3), (2, 2), padding=SAME, activation=RELU6),
    "rows that are multiplied with a correction": Case(
        (2, 9, 8, 24), 40, (3, 3), padding=SAME, types=BOTH_U8, weights_zero_point=20
    ),
    "few rows that are gathered, with a correction": Case(
        (3, 1, 1, 330), 3, types=BOTH_U8, weights_zero_point=20
    ),
}
CASES = PIXELS | WINDOWS


@pytest.fixture(autouse=True)
def slow_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is small would be theirs."""
    monkeypatch.setattr(lowering, "fastest_ns", lambda *_: float("inf"))


@needs_unit
@pytest.mark.parametrize("name", CASES)
def test_convolutions_are_the_references(name: str) -> None:
    net, inputs = convolution(CASES[name])
    expected = run_reference(net, inputs)
    for isa in UNITS:
        assert "convolution_u8_matrix" in kernels_of(CASES[name], isa)
        check_against_reference(net, inputs, isa, expected, EXACT)


def kernels_of(case: Case, isa: Isa) -> set[str]:
    """Names of the kernels that a convolution is compiled to."""
    graph = convolution(case)[0].build()
    program = lower_region(SubgraphView.of(graph, graph.layers), isa, 1)
    return {kernel.name for kernel in program.kernels}


@needs_amx
def test_a_product_is_the_vectors_where_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    isa = next(isa for isa in UNITS if isa.matrix_unit == "amx")
    monkeypatch.setattr(lowering, "fastest_ns", lambda *_: 0.0)
    assert "convolution_u8_matrix" not in kernels_of(Case((1, 8, 8, 64), 32), isa)


@needs_unit
def test_a_product_of_one_pixel_is_the_vectors() -> None:
    assert "convolution_u8_matrix" not in kernels_of(Case((1, 1, 1, 64), 32), UNITS[0])


REAL = {
    "a block of depth": ((1, 9, 13, 32), (40, 1, 1, 32), (1, 1)),
    "odd depth, images": ((2, 7, 6, 33), (70, 3, 3, 33), (1, 1)),
    "three channels, strides": ((1, 23, 21, 3), (16, 7, 7, 3), (2, 2)),
    "even rest of depth": ((1, 5, 31, 70), (17, 1, 1, 70), (1, 1)),
}


@needs_unit
@pytest.mark.parametrize("name", REAL)
def test_bfloat16_is_added_up_in_float32(name: str) -> None:
    shape, filters, stride = REAL[name]
    random, net = np.random.default_rng(3), Network()
    weights, bias = random.normal(size=filters), random.normal(size=filters[0])
    source = net.input("x", TensorInfo(shape, DataType.FLOAT32))
    constants = (net.constant(array.astype(np.float32)) for array in (weights, bias))
    net.output("y", net.add(Convolution2d(stride, padding=SAME), source, *constants))
    image = random.normal(size=shape).astype(np.float32)
    rounded, outputs = Network(), {}
    source = rounded.input("x", TensorInfo(shape, DataType.FLOAT32))
    constants = (
        rounded.constant(array) for array in (to_bfloat16(weights), bias.astype(np.float32))
    )
    rounded.output("y", rounded.add(Convolution2d(stride, padding=SAME), source, *constants))
    expected = run_reference(rounded, {"x": to_bfloat16(image)})["y"]
    for isa in (isa.relaxed() for isa in UNITS if isa.has_unit_bfloat16):
        graph = net.build()
        kernels = lower_region(SubgraphView.of(graph, graph.layers), isa).kernels
        assert "convolution_bf16_matrix" in {kernel.name for kernel in kernels}
        outputs[isa.name] = run_compiled(net, {"x": image}, isa)["y"]
        np.testing.assert_allclose(outputs[isa.name], expected, rtol=0, atol=2e-5 * expected.max())
    first, *others = outputs.values()
    for other in others:  # the emulated unit and the real one add up alike
        np.testing.assert_array_equal(first, other)


def to_bfloat16(values: Array) -> Array:
    """The nearest bfloat16, ties to even, as float32."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (rounded & 0xFFFF0000).astype(np.uint32).view(np.float32)


@pytest.mark.slow
def test_code_has_the_unit_s_instructions_wherever_it_is_compiled() -> None:
    amx = make_isa("avx512amx", "x86_64-unknown-linux-gnu", "sapphirerapids", frozenset())
    function = convolution_u8_matrix.make(amx, 32, 2, 0, 1, 0, 0, 0, 0)
    text = compile_assembly(function, "kernel", amx)
    for instruction in ("ldtilecfg", "tileloadd", "tdpbusd", "tilestored", "tilerelease"):
        assert instruction in text


BROKEN = """
import sys
import numpy as np
from armpy_numba_acc.llvm.arithmetic.matrix_emulation import Emulation
from armpy_numba_acc.lowering import matrix_unit as lowering
from armpy_numba_acc.tiles.products.matrix_unit import MatrixProduct
from .support import PRODUCT_ISAS, run_compiled
from .test_weighted_u8 import Case, convolution

{change}
(isa,) = (isa for isa in PRODUCT_ISAS if isa.matrix_unit == "emulated")
run_compiled(*convolution(Case((1, 7, 7, 20), 24)), isa)
print("went through")
"""
CHANGES = {
    "right": "",
    "too many rows": """
given = lowering.configuration
lowering.configuration = lambda first, second, size: given(first, second + 1, size + 4)
def halved(*args):
    made = bytearray(given(*args))
    made[48 + 4] -= 1
    return bytes(made)
lowering.configuration = halved
""",
    "never configured": """
Emulation.configure = lambda self, place: None
""",
    "released before it is stored": """
given = MatrixProduct._keep
def keep(self, code, args, state, kept, panel):
    self._end(code, state)
    given(self, code, args, state, kept, panel)
MatrixProduct._keep = keep
""",
}


@pytest.mark.skipif(
    not any(isa.matrix_unit == "emulated" for isa in UNITS) or sys.platform == "win32",
    reason="nothing emulates a unit here, or processes do not say how they end",
)
@pytest.mark.sampled(3)  # the right one, and a wrong one
@pytest.mark.parametrize("change", CHANGES)
def test_emulation_stops_a_process_where_the_unit_would(change: str) -> None:
    """A kernel of its own cache: the store does not know that the code has changed."""
    script = "import os\nos.environ['ARMPY_NUMBA_CACHE'] = 'off'\n" + BROKEN.format(
        change=CHANGES[change]
    )
    ended = run_apart(script)
    if change == "right":
        assert (ended.returncode, ended.stdout) == (0, "went through\n"), ended.stderr
    else:
        assert ended.returncode == -signal.SIGILL, ended.stderr
        assert "went through" not in ended.stdout


def test_a_configuration_says_what_each_tile_has() -> None:
    configured = configuration(16, 9, 40)
    assert len(configured) == 64
    assert configured[0] == 1
    assert [
        int.from_bytes(configured[16 + 2 * tile : 18 + 2 * tile], "little") for tile in range(8)
    ] == [
        *(64, 64, 64, 64),
        *(40, 40),
        *(64, 64),
    ]
    assert [*configured[48:56]] == [16, 16, 9, 9, 16, 9, 10, 10]
    assert not any(configured[1:16] + configured[32:48] + configured[56:])


@needs_amx
def test_the_unit_is_used_where_nothing_else_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ISA_VARIABLE, raising=False)
    assert ResolvedOptions.of().isa.matrix_unit == "amx"
    assert matrix_unit_state() == "in force"
    monkeypatch.setenv(ISA_VARIABLE, "portable")
    assert matrix_unit_state() == f"not used: {ISA_VARIABLE} says portable"


def test_vectors_are_used_where_the_system_does_not_permit_the_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = [isa for isa in host_isas() if isa.matrix_unit != "amx"]
    amx = make_isa("avx512amx", "x86_64-unknown-linux-gnu", "sapphirerapids", frozenset())
    monkeypatch.delenv(ISA_VARIABLE, raising=False)
    monkeypatch.setattr(options, "known_isas", lambda: (amx, *host))
    monkeypatch.setattr(options, "has_matrix_unit", lambda: True)
    monkeypatch.setattr(options, "may_use_matrix_unit", lambda: False)
    options._isa_named.cache_clear()
    try:
        assert options.chosen_isa() == host[0]
        assert matrix_unit_state() == "not permitted by the system"
        monkeypatch.setenv(ISA_VARIABLE, "avx512amx")
        with pytest.raises(InvalidArgumentError, match="does not let this process use the matrix"):
            options.chosen_isa()
        monkeypatch.setattr(options, "has_matrix_unit", lambda: False)
        assert matrix_unit_state() == "not there, or hidden by a virtual machine"
    finally:
        options._isa_named.cache_clear()
