"""Forms of operations on images: pooling, resizing, blocks."""

from __future__ import annotations

from typing import Any

from armpy.ops import (
    BatchToSpaceNd,
    DepthToSpace,
    MaxPoolWithIndices,
    Padding,
    Pooling2d,
    Pooling3d,
    PoolingAlgorithm,
    Resize,
    SpaceToBatchNd,
    SpaceToDepth,
)
from armpy.types import DataLayout
from armpy_conformance.cases.pairs.form_table import (
    LAYOUTS,
    MOVED,
    VOLUME_LAYOUTS,
    Choice,
    FormTable,
)
from armpy_conformance.cases.pairs.weighted import BATCHES, PADDINGS, STRIDES, image
from armpy_conformance.comparison.seeded_values import distinct, grid
from armpy_conformance.sampling.case_template import CaseTemplate, Scale

_WINDOWS = {"": (3, 2), "window-1x1": (1, 1), "window-1x3": (1, 3), "window-3x3": (3, 3)}

_ENDS = {
    "": {},
    "lowest-zero-point": {"scales": (Scale(1 / 16, -1.0),)},
    "highest-zero-point": {"scales": (Scale(1 / 16, 1.0),)},
}


def _reaches_the_image(choice: Choice) -> bool:
    """Return whether no window is of padding alone."""
    if isinstance(choice["padding"], Padding):
        return True
    pairs = zip(choice["padding"], choice["pool_size"], strict=True)
    return all(max(pads) < size for pads, size in pairs)


def _pool(choice: Choice) -> CaseTemplate:
    return CaseTemplate("", Pooling2d(), (image(choice, 7, 8, 3),), values=(grid,))


def _pool_volume(choice: Choice) -> CaseTemplate:
    is_first = choice["data_layout"] is DataLayout.NCDHW
    shape = (choice["batch"], 3, 4, 5, 6) if is_first else (choice["batch"], 4, 5, 6, 3)
    return CaseTemplate("", Pooling3d(), (shape,), values=(grid,))


def _pool_with_indices(choice: Choice) -> CaseTemplate:
    rank = choice["rank"]
    operation = MaxPoolWithIndices(
        choice["window"][:rank],
        choice["steps"][:rank],
        choice["gaps"][:rank],
        choice["pads"] if isinstance(choice["pads"], Padding) else choice["pads"][:rank],
    )
    shape = (choice["batch"], *(5, 7, 6)[:rank], 2)
    return CaseTemplate("", operation, (shape,), values=(distinct,))


_SIZES = {
    "": ((3, 4), (7, 8)),
    "down": ((7, 6), (3, 4)),
    "both-ways": ((6, 4), (4, 8)),
    "one-row": ((5, 4), (1, 8)),
    "one-element": ((1, 1), (3, 2)),
    "one-axis": ((3, 4), (3, 8)),
}
"""Sizes of images and of the results, whose samples do not lie on the edge of two elements."""


def _resize(choice: Choice) -> CaseTemplate:
    (height, width), result = choice["sizes"]
    shape = image(choice, height, width, 3)
    return CaseTemplate("", Resize(result), (shape,), values=(grid,))


def _depth(choice: Choice) -> CaseTemplate:
    block = choice["block_size"]
    shape = image(choice, 2, 3, 2 * block**2)
    return CaseTemplate("", DepthToSpace(block), (shape,), values=(distinct,))


def _space(choice: Choice) -> CaseTemplate:
    block = choice["block_size"]
    shape = image(choice, 2 * block, 3 * block, 3)
    return CaseTemplate("", SpaceToDepth(block), (shape,), values=(distinct,))


_BLOCKS = {"": (2, 2), "block-2x1": (2, 1), "block-1x3": (1, 3), "block-3x2": (3, 2)}


def _to_batch(choice: Choice) -> CaseTemplate:
    (down, right), pads = choice["block_shape"], choice["pad_list"]
    height, width = 2 * down * 3 - sum(pads[0]), 2 * right * 3 - sum(pads[1])
    shape = image(choice, height, width, 2)
    operation = SpaceToBatchNd((down, right), pads)
    return CaseTemplate("", operation, (shape,), values=(distinct,))


def _from_batch(choice: Choice) -> CaseTemplate:
    down, right = choice["block_shape"]
    n, *rest = image(choice, 3, 4, 2)
    shape = (n * down * right, *rest)
    operation = BatchToSpaceNd((down, right), choice["crops"])
    return CaseTemplate("", operation, (shape,), values=(distinct,))


_BLOCK_FORMS: dict[str, Any] = {  # Any: as of the attribute
    "block_size": {"": 2, "block-1": 1, "block-3": 3},
    "data_layout": LAYOUTS,
    "batch": BATCHES,
}
_EDGES = {"": ((0, 0), (0, 0)), "top": ((1, 0), (0, 0)), "uneven": ((0, 1), (2, 1))}
_BATCH_FORMS: dict[str, Any] = {  # Any: as of the attribute
    "block_shape": _BLOCKS,
    "data_layout": LAYOUTS,
    "batch": BATCHES,
}

TABLES: tuple[FormTable, ...] = (
    FormTable(
        Pooling2d,
        {
            "pool_size": _WINDOWS,
            "stride": STRIDES,
            "padding": PADDINGS,
            "data_layout": LAYOUTS,
            "batch": BATCHES,
        },
        _pool,
        _reaches_the_image,
        quantizations=_ENDS,
    ),
    FormTable(
        Pooling3d,
        {
            "algorithm": {v.name.lower(): v for v in PoolingAlgorithm},
            "pool_size": {"": (2, 2, 2), "window-1x2x3": (1, 2, 3), "window-3x1x2": (3, 1, 2)},
            "stride": {"": (1, 1, 1), "stride-2x1x1": (2, 1, 1), "stride-1x2x3": (1, 2, 3)},
            "dilation": {"": (1, 1, 1), "apart-1x2x1": (1, 2, 1), "apart-2x1x2": (2, 1, 2)},
            "padding": {
                "": Padding.VALID,
                "same": Padding.SAME,
                "uneven": ((0, 0), (1, 0), (0, 1)),
            },
            "data_layout": VOLUME_LAYOUTS,
            "batch": BATCHES,
        },
        _pool_volume,
    ),
    FormTable(
        MaxPoolWithIndices,
        {
            "rank": {"": 2, "rank-1": 1, "rank-3": 3},
            "window": {"": (2, 3, 2), "window-3x1x2": (3, 1, 2)},
            "steps": {"": (1, 1, 1), "stride-2x1x1": (2, 1, 1), "stride-1x2x3": (1, 2, 3)},
            "gaps": {"": (1, 1, 1), "apart-1x2x1": (1, 2, 1), "apart-2x1x2": (2, 1, 2)},
            "pads": {
                "": Padding.VALID,
                "same": Padding.SAME,
                "uneven": ((1, 0), (0, 0), (0, 1)),
            },
            "batch": BATCHES,
        },
        _pool_with_indices,
    ),
    FormTable(
        Resize,
        {"sizes": _SIZES, "data_layout": LAYOUTS, "batch": BATCHES},
        _resize,
        quantizations=_ENDS,
    ),
    FormTable(DepthToSpace, _BLOCK_FORMS, _depth, types=MOVED),
    FormTable(SpaceToDepth, _BLOCK_FORMS, _space, types=MOVED),
    FormTable(
        SpaceToBatchNd,
        {**_BATCH_FORMS, "pad_list": _EDGES},
        _to_batch,
        quantizations=_ENDS,
        types=MOVED,
    ),
    FormTable(
        BatchToSpaceNd,
        {**_BATCH_FORMS, "crops": _EDGES},
        _from_batch,
        types=MOVED,
    ),
)
"""Tables of the family."""
