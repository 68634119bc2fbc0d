"""A kind of product is known to few files: see "Adding a kind of product" in the README."""

from __future__ import annotations

import re
from pathlib import Path

import armpy_numba_acc
import pytest

ROOT = Path(armpy_numba_acc.__file__).parent
RECORDS, TILES = "machine/calls/products.py", "lowering/tiles.py"


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("record", "kernels", "lowering"),
    [
        ("ConvolutionF32", ["convolution_f32"], "weighted_real"),
        ("ConvolutionBf16", ["convolution_bf16"], "weighted_real"),
        ("ConvolutionBf16Matrix", ["convolution_bf16_matrix"], "weighted_real"),
        ("ConvolutionBf16Pairs", ["convolution_bf16_paired"], "weighted_real"),
        (
            "ConvolutionU8",
            [
                "convolution_u8",
                "convolution_u8_paired",
                "convolution_u8_sorted",
                "convolution_u8_matrix",
            ],
            "weighted_u8",
        ),
        ("ConvolutionSums", ["convolution_sums", "convolution_sums_matrix"], "weighted_sums"),
        ("ConvolutionI16", ["convolution_i16"], "weighted_i16"),
        (
            "ConvolutionDynamic",
            ["convolution_dynamic", "convolution_dynamic_matrix"],
            "dynamic_range",
        ),
    ],
)
def test_a_kind_of_product_is_known_to_its_record_kernels_and_lowering(
    record: str, kernels: list[str], lowering: str
) -> None:
    files = {f"kernels/{kernel}.py" for kernel in kernels}
    assert _files_with(record) == {RECORDS, *files, f"lowering/{lowering}.py"}
    # Kernels are named by the kinds of products alone; `convolution_u8` also names their tiles.
    assert {name for kernel in kernels for name in _files_with(f'"{kernel}"')} == {TILES}


def test_every_kernel_of_products_walks_alike() -> None:
    kernels = sorted((ROOT / "kernels").glob("convolution_*.py"))
    assert len(kernels) == 13
    for kernel in kernels:
        text = kernel.read_text(encoding="utf-8")
        walk = "walk_matrix_tiles" if kernel.stem.endswith("_matrix") else "walk_tiles"
        assert f"return LinkedKernel({walk}, " in text, kernel.name
        assert len(text.splitlines()) <= 30, kernel.name


def _files_with(word: str) -> set[str]:
    """Files that have a word which is not a part of another one."""
    pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])")
    return {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    }
