"""x86's dot products of bytes on processors that are not at hand: by their assembly."""

from __future__ import annotations

import re

import pytest
from armpy_numba_acc.kernels import convolution_u8, convolution_u8_sorted, elementwise
from armpy_numba_acc.llvm.compiler import LinkedKernel, compile_assembly
from armpy_numba_acc.machine.isa import Isa, make_isa

X86 = "x86_64-unknown-linux-gnu"
AVX10_FEATURES = frozenset({"avx512bf16", "avx512vbmi"})


def loop_of(instruction: str, isa: Isa, function: LinkedKernel) -> list[str]:
    """The lines of the block of a product's kernel that has most of an instruction."""
    blocks = re.split(r"^\.?\w+:.*$", compile_assembly(function, "kernel", isa), flags=re.MULTILINE)
    return max(blocks, key=lambda block: block.count(instruction)).splitlines()


@pytest.mark.slow
@pytest.mark.sampled(13)
@pytest.mark.parametrize(
    ("name", "cpu", "instruction", "tile"),
    [
        ("avx2vnniint8", "sierraforest", "vpdpbssd", (6, 2)),
        ("avx2vnni", "arrowlake-s", "vpdpbusd", (6, 2)),
        ("avx512vnni", "graniterapids", "vpdpbusd", (14, 2)),
        ("avx512vnni", "diamondrapids", "vpdpbusd", (14, 2)),
    ],
    ids=["AVX-VNNI-INT8", "AVX-VNNI", "AVX10.1", "AVX10.2"],
)
def test_the_inner_loop_multiplies_and_keeps_all_in_registers(
    name: str, cpu: str, instruction: str, tile: tuple[int, int]
) -> None:
    isa = make_isa(name, X86, cpu, AVX10_FEATURES)
    lines = loop_of(instruction, isa, convolution_u8.make(isa, *tile, *(0,) * 6))
    dots = [line for line in lines if f"\t{instruction}" in line]
    register = "%zmm" if isa.vector_bytes == 64 else "%ymm"
    assert len(dots) == tile[0] * tile[1]
    assert all(line.count(register) >= 2 for line in dots)
    spilled = [line for line in lines if re.search(r"%[xyz]mm", line) and "(%rsp)" in line]
    assert not spilled


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tile", "register"), [("avx2", (4, 2), "%ymm"), ("avx512", (8, 2), "%zmm")]
)
def test_products_of_two_steps_are_widened_once(
    name: str, tile: tuple[int, int], register: str
) -> None:
    isa = make_isa(name, X86, "skylake-avx512", frozenset())
    lines = loop_of("vpmaddubsw", isa, convolution_u8_sorted.make(isa, *tile, *(0,) * 6))
    products, widened = (
        sum(f"\t{word}" in line and register in line for line in lines)
        for word in ("vpmaddubsw", "vpmaddwd")
    )
    assert (products, widened) == (2 * tile[0] * tile[1], tile[0] * tile[1])
    assert not [line for line in lines if register in line and "(%rsp)" in line]


@pytest.mark.slow
def test_a_tile_with_too_many_registers_spills() -> None:
    isa = make_isa("avx2vnniint8", X86, "sierraforest", frozenset())
    lines = loop_of("vpdpbssd", isa, convolution_u8.make(isa, 8, 3, *(0,) * 6))
    assert [line for line in lines if re.search(r"%[xyz]mm", line) and "(%rsp)" in line]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "register"), [("avx2", "%ymm"), ("avx512", "%zmm")])
def test_sums_of_bytes_are_multiplied_in_pairs_and_stay_in_registers(
    name: str, register: str
) -> None:
    isa = make_isa(name, X86, "skylake-avx512", frozenset())
    lines = loop_of("vpmaddwd", isa, elementwise.make(isa, "packed_add", "i8xi8xi8", "vv"))
    assert sum("\tvpmaddwd" in line and register in line for line in lines) == 8
    assert not [line for line in lines if "\tvmov" in line and "(%rsp)" in line]
