"""Samples of regions of images: odd elements, and errors where a region cannot be used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from armpy_numba_acc.passes.support import support

from armpy import Network, Quantization
from armpy.errors import ArmpyError
from armpy.ops import PoolingAlgorithm, RoiAlign
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType

from .support import (
    check_against_reference,
    isas_of_this_test,
    random_array,
    run_compiled,
)

F32, I32 = DataType.FLOAT32, DataType.SIGNED32
MAX = PoolingAlgorithm.MAX


def network_of(operations: list[RoiAlign], image: TensorInfo, regions: int) -> Network:
    """Layers that sample the same regions of the same images."""
    network = Network()
    boxes = TensorInfo((regions, 4), image.data_type)
    x, rois = network.input("x", image), network.input("rois", boxes)
    batches = network.input("batches", TensorInfo((regions,), I32))
    for number, operation in enumerate(operations):
        layer = network.add(operation, x, rois, batches, name=f"regions {number}")
        network.output(f"y{number}", layer)
    return network


def inputs_of(image: TensorInfo, rois: Array) -> dict[str, Array]:
    """Random elements, and images in turn."""
    batches = np.arange(len(rois), dtype=np.int32) % image.known_shape[0]
    return {"x": random_array(image), "rois": rois, "batches": batches}


def regions_of(height: float, width: float, count: int = 12) -> Array:
    """Random regions, some without area, some that end where the image does."""
    corners = np.random.default_rng(3).uniform(0, 1, (count, 2, 2)) * (width, height)
    corners[0] = 0, 0
    corners[1] = width, height
    corners[2] = ((0, 0), (width, height))
    return np.sort(corners, axis=1).reshape(count, 4).astype(np.float32)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_odd_elements_reach_the_samples_that_they_do_in_the_reference(odd: float) -> None:
    free = RoiAlign((3, 3), is_free=True)
    operations = [
        replace(form, algorithm=algorithm, height_samples=samples)
        for form in (free, RoiAlign((3, 3)))
        for algorithm in (PoolingAlgorithm.AVERAGE, MAX)
        for samples in (0, 2)
    ]
    image = TensorInfo((1, 6, 6, 17), F32)
    rois = np.array([(0, 0, 6, 6), (1, 1, 4, 4), (0.5, 0.5, 3.5, 5), (4, 4, 6, 6)], np.float32)
    inputs = inputs_of(image, rois)
    inputs["x"][0, ::2, ::3] = odd
    with np.errstate(invalid="ignore"):
        for isa in isas_of_this_test():
            check_against_reference(network_of(operations, image, 4), inputs, isa)


@pytest.mark.parametrize("image", [-1, 2, 2**31 - 1, -(2**31)])
def test_missing_image_is_an_error_that_names_the_layer(image: int) -> None:
    info = TensorInfo((2, 4, 4, 3), F32)
    inputs = inputs_of(info, regions_of(4, 4))
    inputs["batches"][5] = image
    network = network_of([RoiAlign((2, 2), is_free=True)], info, 12)
    for isa in isas_of_this_test():
        with pytest.raises(ArmpyError, match=rf"regions 0.*0 to 1; got {image}\."):
            run_compiled(network, inputs, isa)


@pytest.mark.parametrize("operation", [RoiAlign((2, 2)), RoiAlign((2, 2), is_free=True)])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 3e38, -0.5])
@pytest.mark.parametrize("place", range(4))
def test_region_that_cannot_be_used_is_an_error(
    operation: RoiAlign, odd: float, place: int
) -> None:
    info = TensorInfo((1, 4, 4, 3), F32)
    rois = np.full((3, 4), 1, np.float32)
    rois[1, place] = odd
    network = network_of([operation], info, 3)
    for isa in isas_of_this_test():
        if operation.is_free and np.isfinite(odd):
            check_against_reference(network, inputs_of(info, rois), isa)
            continue
        with pytest.raises(ArmpyError, match=r"a region cannot be used.*row 1"):
            run_compiled(network, inputs_of(info, rois), isa)


def test_stored_integers_are_refused() -> None:
    image = TensorInfo(
        (1, 4, 4, 3), DataType.QASYMM_U8, quantization=Quantization.per_tensor(0.5, 3)
    )
    rois = TensorInfo((2, 4), DataType.QASYMM_U16, quantization=Quantization.per_tensor(0.125, 0))
    inputs = image, rois, TensorInfo((2,), I32)
    for layout in (DataLayout.NHWC, DataLayout.NCHW):
        answer = support(RoiAlign(data_layout=layout), inputs, (image.with_shape((2, 1, 1, 3)),))
        assert not answer
        assert "QASYMM_U8 is not supported" in answer.text
