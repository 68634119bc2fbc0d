from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from armpy.types import DataLayout, DataType, DeviceType, Priority

ARM_NN_NUMBERS = {
    "FLOAT16": 0,
    "FLOAT32": 1,
    "QASYMM_U8": 2,
    "SIGNED32": 3,
    "BOOLEAN": 4,
    "QSYMM_S16": 5,
    "QSYMM_S8": 6,
    "QASYMM_S8": 7,
    "BFLOAT16": 8,
    "SIGNED64": 9,
}


def test_the_first_data_types_have_arm_nns_numbers() -> None:
    assert {t.name: t.value for t in DataType if t.value < 10} == ARM_NN_NUMBERS


@pytest.mark.parametrize(
    ("data_type", "dtype", "size_bytes"),
    [
        (DataType.FLOAT16, np.float16, 2),
        (DataType.FLOAT32, np.float32, 4),
        (DataType.FLOAT64, np.float64, 8),
        (DataType.BFLOAT16, np.uint16, 2),
        (DataType.BOOLEAN, np.bool_, 1),
        (DataType.QASYMM_U8, np.uint8, 1),
        (DataType.QASYMM_S8, np.int8, 1),
        (DataType.QSYMM_S16, np.int16, 2),
        (DataType.QASYMM_U16, np.uint16, 2),
        (DataType.UNSIGNED64, np.uint64, 8),
        (DataType.SIGNED4, np.int8, 1),
        (DataType.UNSIGNED2, np.uint8, 1),
        (DataType.FLOAT8_E5M2, np.uint8, 1),
        (DataType.FLOAT4_E2M1, np.uint8, 1),
    ],
)
def test_a_data_type_knows_how_its_elements_are_stored(
    data_type: DataType, dtype: type[np.generic], size_bytes: int
) -> None:
    assert data_type.dtype == np.dtype(dtype)
    assert data_type.size_bytes == size_bytes


def test_quantised_float_and_symmetric_types_are_distinguished() -> None:
    quantized = {t.name for t in DataType if t.is_quantized}
    assert quantized == {
        "QASYMM_U8",
        "QSYMM_S16",
        "QSYMM_S8",
        "QASYMM_S8",
        "QASYMM_U16",
    }
    assert {t.name for t in DataType if t.is_symmetric} == {"QSYMM_S16", "QSYMM_S8"}
    plain = {"FLOAT16", "FLOAT32", "FLOAT64"}
    bits = {"BFLOAT16", *(t.name for t in DataType if t.name.startswith(("FLOAT8", "FLOAT4")))}
    assert {t.name for t in DataType if t.is_float} == plain | bits
    assert {t.name for t in DataType if t.is_bit_pattern} == bits
    assert len(bits) == 7


def test_the_integer_range_is_that_of_the_stored_elements() -> None:
    assert DataType.QASYMM_S8.integer_range == (-128, 127)
    assert DataType.UNSIGNED16.integer_range == (0, 65535)
    assert DataType.SIGNED4.integer_range == (-8, 7)
    assert DataType.UNSIGNED2.integer_range == (0, 3)
    with pytest.raises(ValueError, match="integer data type"):
        _ = DataType.FLOAT32.integer_range


def test_data_types_stay_singletons_through_pickle_and_copy() -> None:
    for data_type in DataType:
        assert pickle.loads(pickle.dumps(data_type)) is data_type
        assert copy.deepcopy(data_type) is data_type
        assert {data_type: 1}[DataType(data_type.value)] == 1


@pytest.mark.parametrize(
    ("layout", "channel_axis", "spatial_axes"),
    [
        (DataLayout.NCHW, 1, (2, 3)),
        (DataLayout.NHWC, 3, (1, 2)),
        (DataLayout.NDHWC, 4, (1, 2, 3)),
        (DataLayout.NCDHW, 1, (2, 3, 4)),
    ],
)
def test_a_layout_knows_its_axes(
    layout: DataLayout, channel_axis: int, spatial_axes: tuple[int, ...]
) -> None:
    assert layout.channel_axis == channel_axis
    assert layout.spatial_axes == spatial_axes


def test_device_types_are_sorted_by_preference() -> None:
    assert [d.name for d in sorted(DeviceType)] == [
        "ACCELERATOR",
        "GPU",
        "CPU_COMPILED",
        "OTHER",
        "CPU_REFERENCE",
    ]


def test_priorities_have_nnapis_numbers() -> None:
    assert (Priority.LOW, Priority.MEDIUM, Priority.HIGH) == (90, 100, 110)
