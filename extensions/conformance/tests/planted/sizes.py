"""Results that are wrong for some sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from armpy.ops.operation import Array

from .planting import Planted
from .shapes import Call, Fault, Fused, Plain, spoil


@dataclass
class Sized(Fault):
    """Elements beyond some size are left out."""

    is_beyond: Callable[[Array], bool]  # takes an array, says whether it is

    def after(self, call: Call) -> None:
        arrays = [*(a for a in call.inputs if a is not None), *call.outputs]
        if any(self.is_beyond(array) for array in arrays):
            for output in call.outputs:
                spoil(output)


LONG_DIMENSION = Sized(lambda array: any(dim > 0xFFFF for dim in array.shape))
"""Dimensions are 16-bit numbers."""


TILES_AND_IMAGES = Sized(lambda a: a.ndim == 4 and a.shape[0] > 2 and min(a.shape[1:]) > 16)
"""The tiles of all images but the first are of the first."""


IMAGES_OF_256_KIB = Sized(
    lambda a: a.ndim == 4 and a.shape[0] > 1 and a.nbytes // a.shape[0] > 1 << 18
)
"""Of a batch of images above 256 KiB the last element is wrong."""


def odd_channels(rest: int) -> Plain:
    """Channels beyond multiples of 16 are wrong if there are so many."""
    return Plain(Sized(lambda a: a.ndim == 4 and a.shape[3] % 16 == rest and a.shape[3] > 1))


class NoElements(Fault):
    """Nothing at all is a mistake."""

    def before(self, call: Call) -> None:
        for array in call.inputs:
            if array is not None:
                array.reshape(-1)[0]


SIZE_FAULTS: dict[str, Planted] = {
    "sizes/long-plain": Planted("/long", Plain, lambda: LONG_DIMENSION),
    "sizes/long-fused": Planted("/long", Fused, lambda: LONG_DIMENSION),
    "sizes/cache": Planted("/256-kib", Plain, lambda: Sized(lambda a: a.nbytes > 1 << 18)),
    "sizes/larger-cache": Planted("/2-mib", Fused, lambda: Sized(lambda a: a.nbytes > 1 << 21)),
    "sizes/tiles-plain": Planted("/tiles", Plain, lambda: TILES_AND_IMAGES),
    "sizes/tiles-fused": Planted("/tiles", Fused, lambda: TILES_AND_IMAGES),
    "sizes/many-elements": Planted(
        "/2-20-elements", Plain, lambda: Sized(lambda array: array.size > 1 << 20)
    ),
    "sizes/large-images": Planted("tiles-", Plain, lambda: IMAGES_OF_256_KIB),
    **{
        f"sizes/channels-{rest}": Planted("/channels", partial(odd_channels, rest))
        for rest in (1, 3, 5, 7, 11, 15)
    },
    "empty/plain": Planted("+no-elements", Plain, NoElements),
    "empty/fused": Planted("+no-elements", Fused, NoElements),
}
"""By class and name."""
