"""Cases of operations on images: pooling, resizing, blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from armpy.ops import (
    BatchToSpaceNd,
    DepthToSpace,
    Determinant,
    GridPadding,
    GridSample,
    MaxPoolWithIndices,
    Padding,
    Pooling2d,
    Pooling3d,
    PoolingAlgorithm,
    Resize,
    ResizeMethod,
    SampleMode,
    SpaceToBatchNd,
    SpaceToDepth,
)
from armpy.types import DataLayout, DataType
from armpy_conformance.comparison.seeded_values import between, distinct, grid
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, common, every, of

_FLOATS = of(DataType.FLOAT32, DataType.FLOAT16)
_BLOCK_TYPES = of(
    DataType.FLOAT32,
    DataType.FLOAT16,
    DataType.QASYMM_S8,
    DataType.QASYMM_U8,
    DataType.QSYMM_S16,
    DataType.SIGNED32,
    DataType.BOOLEAN,
)


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _pooling()
    yield from _pooling_volumes()
    yield from _resizing()
    yield from _sampling()
    yield from _blocks()


def _pooling() -> Iterator[CaseTemplate]:
    """Pooling2d in every type, with windows as large as the image, and with steps of all kinds."""
    for algorithm in PoolingAlgorithm:
        name = algorithm.name.lower()
        is_l2 = algorithm is PoolingAlgorithm.L2
        for label, size, step, types in (
            ("valid", (2, 2), (2, 2), every),
            ("whole-image", (7, 5), (1, 1), common),
            ("stride-above-window", (1, 1), (2, 3), common),
        ):
            yield CaseTemplate(
                f"{name}-{label}",
                Pooling2d(algorithm, size, step),
                ((2, 7, 5, 3),),
                _FLOATS if is_l2 else types,
                (grid,),
            )
    for side, where in (("lowest", -1.0), ("highest", 1.0)):
        yield CaseTemplate(
            f"average-{side}-zero-point",
            Pooling2d(PoolingAlgorithm.AVERAGE, (3, 3), padding=Padding.SAME),
            ((1, 4, 3, 5),),
            of(DataType.QASYMM_U8),
            scales=(Scale(1 / 16, where),),
        )
    # All four together: pairs of attributes have them by two and two.
    for algorithm, padding, layout, (down, right) in itertools.product(
        PoolingAlgorithm,
        (Padding.VALID, Padding.SAME),
        (DataLayout.NHWC, DataLayout.NCHW),
        ((1, 2), (2, 1), (2, 2)),
    ):
        name = f"{algorithm.name}-{padding.name}-{layout.name}".lower()
        yield CaseTemplate(
            f"{name}-stride-{down}x{right}",
            Pooling2d(algorithm, (3, 2), (down, right), padding, data_layout=layout),
            ((2, 3, 7, 6) if layout is DataLayout.NCHW else (2, 7, 6, 3),),
            of(DataType.FLOAT32),
            (grid,),
        )


def _pooling_volumes() -> Iterator[CaseTemplate]:
    """Pooling3d, and MaxPoolWithIndices of all ranks, in every type."""
    for algorithm in PoolingAlgorithm:
        yield CaseTemplate(
            f"{algorithm.name.lower()}-valid",
            Pooling3d(algorithm, (2, 2, 2), (2, 2, 2)),
            ((2, 4, 7, 5, 3),),
            _FLOATS if algorithm is PoolingAlgorithm.L2 else every,
            (grid,),
        )
    for rank in (1, 2, 3):
        pool = MaxPoolWithIndices((2, 3, 2)[:rank], (1,) * rank, (1,) * rank, Padding.VALID)
        yield CaseTemplate(f"{rank}d-plain", pool, ((2, *(4, 7, 5)[:rank], 3),), every)


def _resizing() -> Iterator[CaseTemplate]:
    """Resize in every type."""
    for method in ResizeMethod:
        label = f"{method.name.lower()}-plain-double"
        yield CaseTemplate(label, Resize((6, 8), method), ((2, 3, 4, 3),), every, (grid,))


def _sampling() -> Iterator[CaseTemplate]:
    """GridSample, at places inside of images and around them; Determinant."""
    for mode, padding, aligned in itertools.product(SampleMode, GridPadding, (False, True)):
        label = f"{mode.name.lower()}-{padding.name.lower()}{'-aligned' * aligned}"
        operation = GridSample(mode, padding, aligned)
        places = (grid, between(-1.7, 1.7))
        shapes = ((2, 4, 5, 3), (2, 3, 6, 2))
        types = every if label == "linear-zeros" else of(DataType.FLOAT32)
        yield CaseTemplate(label, operation, shapes, types, places)
        volumes = ((1, 3, 4, 2, 2), (1, 2, 3, 4, 3))
        yield CaseTemplate(f"{label}-volume", operation, volumes, of(DataType.FLOAT32), places)
    for label, shape in (("one", (3, 3)), ("several", (2, 3, 4, 4)), ("one-element", (2, 1, 1))):
        yield CaseTemplate(label, Determinant(), (shape,), every, (grid,))


def _blocks() -> Iterator[CaseTemplate]:
    """Depth, space and batch: types of every width, and blocks along one axis."""
    none, values = ((0, 0), (0, 0)), (distinct,)
    for operation, shape in (
        (DepthToSpace(2), (2, 3, 2, 8)),
        (SpaceToDepth(2), (2, 6, 4, 3)),
        (SpaceToBatchNd((2, 2), none), (2, 6, 4, 3)),
        (BatchToSpaceNd((2, 2), none), (8, 6, 4, 3)),
    ):
        yield CaseTemplate("nhwc", operation, (shape,), _BLOCK_TYPES, values)
    yield CaseTemplate("one-axis", SpaceToBatchNd((2,), ((1, 0),)), ((2, 3, 5),), values=values)
    yield CaseTemplate("one-axis", BatchToSpaceNd((2,), ((1, 0),)), ((4, 3, 5),), values=values)
