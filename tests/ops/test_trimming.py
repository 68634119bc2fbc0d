from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from armpy.ops import Convolution2d, Pooling2d
from armpy.ops.shapes import Padding, resolve_padding
from armpy.ops.trimming import trimmed
from armpy_testing.models.networks import f32

FAR = 10**8


def _meetings(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]) -> object:
    """For each window the elements of image and kernel that meet, by brute force."""
    before, after = pads
    room = size + before + after - ((kernel - 1) * dilation + 1)
    return [
        [
            (tap, at)
            for tap in range(kernel)
            if 0 <= (at := window * stride + tap * dilation - before) < size
        ]
        for window in range(room // stride + 1)
    ]


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 12),
    st.integers(1, 12),
    st.one_of(st.sampled_from(Padding), st.tuples(st.integers(0, 20), st.integers(0, 20))),
)
def test_what_meets_is_the_same(
    size: int, kernel: int, stride: int, dilation: int, padding: Padding | tuple[int, int]
) -> None:
    spec = padding if isinstance(padding, Padding) else (padding, (0, 0))
    pads = resolve_padding(spec, size, kernel, stride, dilation, 0)
    assume(size + sum(pads) >= (kernel - 1) * dilation + 1)
    operation = Convolution2d((stride, 1), (dilation, 1), spec)
    smaller, slices = trimmed(operation, [f32(1, size, 1, 1), f32(1, kernel, 1, 1)])
    assert isinstance(smaller, Convolution2d)
    part = range(kernel)[slices[1][1]] if slices else range(kernel)
    left = resolve_padding(
        smaller.padding, size, len(part), smaller.stride[0], smaller.dilation[0], 0
    )
    assert min(left) >= 0
    meetings = _meetings(size, len(part), smaller.stride[0], smaller.dilation[0], left)
    expected = _meetings(size, kernel, stride, dilation, pads)
    shifted = [[(tap + part.start, at) for tap, at in window] for window in meetings]  # type: ignore[attr-defined]
    assert shifted == expected


def test_a_window_far_larger_than_its_image_is_cut_to_what_it_can_meet() -> None:
    # Output element p of 10 sees elements 0 to 9, wherever it is: the kernel begins 5 * 10^7 - 1
    # in front of the first one, and 9 elements to either side of the image are enough.
    smaller, _ = trimmed(Pooling2d(pool_size=(FAR, 1), padding=Padding.SAME), [f32(1, 10, 4, 2)])
    assert smaller == Pooling2d(pool_size=(19, 1), padding=((9, 9), (0, 0)))


def test_far_elements_of_a_dilated_kernel_are_cut_off() -> None:
    operation = Convolution2d(dilation=(3 * FAR, 3 * FAR), padding=Padding.SAME)
    inputs = [f32(1, 10, 10, 4), f32(2, 3, 3, 4)]
    smaller, slices = trimmed(operation, inputs)
    assert smaller == Convolution2d(padding=((0, 0), (0, 0)))
    assert slices == {1: (slice(None), slice(1, 2), slice(1, 2))}
    assert operation.scratch_bytes(inputs, []) == (10 + 6 * FAR) ** 2 * 4 * 4
    assert smaller.scratch_bytes([inputs[0], f32(2, 1, 1, 4)], []) == 0


@pytest.mark.parametrize("padding", [Padding.SAME, Padding.VALID])
def test_ordinary_windows_stay_as_they_are(padding: Padding) -> None:
    operation = Convolution2d((2, 2), (1, 1), padding)
    smaller, slices = trimmed(operation, [f32(1, 9, 9, 3), f32(8, 3, 3, 3)])
    assert smaller is operation
    assert slices == {}
