"""Attention: as CpuRef on every instruction set."""

from __future__ import annotations

import pytest

from armpy import ops
from armpy.tensor import TensorInfo
from armpy.types import DataType
from backends.numba_acc.tests.one_layer import check_layer

F32 = DataType.FLOAT32


@pytest.mark.parametrize(
    ("queries", "keys", "size", "value_size"),
    [(33, 33, 16, 16), (1, 300, 8, 8), (70, 5, 19, 23), (16, 129, 1, 3)],
)
def test_blocks_of_any_size_are_weighed(
    queries: int, keys: int, size: int, value_size: int
) -> None:
    infos = [TensorInfo((2, 4, queries, size), F32)]
    infos += [TensorInfo((2, 2, keys, width), F32) for width in (size, value_size)]
    check_layer(ops.Attention(), infos, TensorInfo((2, 4, queries, value_size), F32))


def test_what_is_not_seen_does_not_count() -> None:
    infos = [TensorInfo((2, 2, 50, 16), F32)] * 3 + [TensorInfo((2, 1, 50, 50), F32)]
    operation = ops.Attention(is_causal=True, left_window=20, softcap=3.0, num_past=7)
    check_layer(operation, infos, infos[0])
