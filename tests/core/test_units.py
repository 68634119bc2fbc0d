"""Numbers and types in words."""

from __future__ import annotations

import pytest

from armpy.core.units import type_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("QASYMM_U8", "uint8"),
        ("QSYMM_S16", "int16"),
        ("SIGNED64", "int64"),
        ("UNSIGNED4", "uint4"),
        ("BOOLEAN", "bool"),
        ("BFLOAT16", "bfloat16"),
        ("INT8", "int8"),
        ("FLOAT", "float32"),
    ],
)
def test_types_have_the_names_that_people_use(name: str, expected: str) -> None:
    assert type_name(name) == expected
