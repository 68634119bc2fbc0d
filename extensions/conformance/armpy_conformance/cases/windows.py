"""Cases of operations on images: pooling, resizing, blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from armpy.ops import (
    BatchToSpaceNd,
    DepthToSpace,
    Determinant,
    FusedActivation,
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
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, every, of

NCHW = DataLayout.NCHW
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
_BYTES = of(DataType.QASYMM_S8, DataType.QASYMM_U8)

POOLS: dict[str, dict[str, object]] = {
    "valid": {"pool_size": (2, 2), "stride": (2, 2)},
    "overlapping": {"pool_size": (3, 3)},
    "same": {"pool_size": (3, 3), "padding": Padding.SAME},
    "stride-same": {"pool_size": (3, 2), "stride": (2, 3), "padding": Padding.SAME},
    "padding-uneven": {"pool_size": (3, 3), "padding": ((1, 0), (2, 1))},
    "stride-above-window": {"pool_size": (1, 1), "stride": (2, 3)},
    "whole-image": {"pool_size": (7, 5)},
    "nchw": {"pool_size": (3, 3), "padding": Padding.SAME, "data_layout": NCHW},
    "nchw-stride": {"pool_size": (2, 2), "stride": (2, 2), "data_layout": NCHW},
}

VOLUME_POOLS: dict[str, dict[str, object]] = {
    "valid": {"pool_size": (2, 2, 2), "stride": (2, 2, 2)},
    "same": {"pool_size": (3, 2, 3), "stride": (1, 2, 3), "padding": Padding.SAME},
    "gaps": {"pool_size": (2, 2, 2), "dilation": (2, 3, 1), "padding": ((1, 0), (2, 1), (0, 1))},
    "relu6": {"pool_size": (2, 3, 1), "activation": FusedActivation.RELU6},
    "ncdhw": {"pool_size": (2, 3, 3), "data_layout": DataLayout.NCDHW},
}


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _pooling()
    yield from _pooling_volumes()
    yield from _resizing()
    yield from _sampling()
    yield from _blocks()


def _pooling() -> Iterator[CaseTemplate]:
    for algorithm in PoolingAlgorithm:
        name = algorithm.name.lower()
        is_l2 = algorithm is PoolingAlgorithm.L2
        for label, options in POOLS.items():
            shape = (2, 3, 7, 5) if options.get("data_layout") is NCHW else (2, 7, 5, 3)
            types = every if label == "valid" else of(DataType.FLOAT32, DataType.QASYMM_S8)
            yield CaseTemplate(
                f"{name}-{label}",
                Pooling2d(algorithm, **options),  # type: ignore[arg-type]  # by name
                (shape,),
                _FLOATS if is_l2 else types,
                (grid,),
            )
        for activation in FusedActivation:
            yield CaseTemplate(
                f"{name}-{activation.name.lower()}",
                Pooling2d(algorithm, (2, 2), (1, 1), activation=activation),
                ((1, 4, 3, 5),),
                _FLOATS if is_l2 else of(DataType.FLOAT32, DataType.QASYMM_S8, DataType.QASYMM_U8),
                (grid,),
            )
        for side, where in (("lowest", -1.0), ("highest", 1.0)):
            if not is_l2:
                yield CaseTemplate(
                    f"{name}-{side}-zero-point",
                    Pooling2d(algorithm, (3, 3), padding=Padding.SAME),
                    ((1, 4, 3, 5),),
                    _BYTES,
                    scales=(Scale(1 / 16, where),),
                )
    for algorithm, padding, layout, (down, right) in itertools.product(
        PoolingAlgorithm,
        (Padding.VALID, Padding.SAME),
        (DataLayout.NHWC, NCHW),
        ((1, 2), (2, 1), (2, 2)),
    ):
        name = f"{algorithm.name}-{padding.name}-{layout.name}".lower()
        yield CaseTemplate(
            f"{name}-stride-{down}x{right}",
            Pooling2d(algorithm, (3, 2), (down, right), padding, data_layout=layout),
            ((2, 3, 7, 6) if layout is NCHW else (2, 7, 6, 3),),
            of(DataType.FLOAT32),
            (grid,),
        )


def _pooling_volumes() -> Iterator[CaseTemplate]:
    """Pooling3d, and MaxPoolWithIndices of all ranks."""
    for algorithm in PoolingAlgorithm:
        name = algorithm.name.lower()
        for label, options in VOLUME_POOLS.items():
            is_first = options.get("data_layout") is DataLayout.NCDHW
            volume = (2, 3, 4, 7, 5) if is_first else (2, 4, 7, 5, 3)
            types = every if label == "valid" else of(DataType.FLOAT32, DataType.QASYMM_S8)
            yield CaseTemplate(
                f"{name}-{label}",
                Pooling3d(algorithm, **options),  # type: ignore[arg-type]  # by name
                (volume,),
                _FLOATS if algorithm is PoolingAlgorithm.L2 else types,
                (grid,),
            )
    for rank in (1, 2, 3):
        ones = (1,) * rank
        shape = (2, *(4, 7, 5)[:rank], 3)
        for label, numbers in (
            ("plain", (ones, ones, Padding.VALID)),
            ("apart", ((2,) * rank, (2,) * rank, ((1, 0),) * rank)),
            ("same", ((2, 3, 1)[:rank], ones, Padding.SAME)),
        ):
            pool = MaxPoolWithIndices((2, 3, 2)[:rank], *numbers)
            types = every if label == "plain" else of(DataType.FLOAT32)
            yield CaseTemplate(f"{rank}d-{label}", pool, (shape,), types)


def _resizing() -> Iterator[CaseTemplate]:
    """Resize; sizes whose positions are not on the edge between two elements."""
    for method in ResizeMethod:
        name = method.name.lower()
        for label, options in (
            ("plain", {}),
            ("align-corners", {"align_corners": True}),
            ("half-pixels", {"half_pixel_centers": True}),
            ("nchw", {"data_layout": NCHW}),
        ):
            for sizes, shape, size in (
                ("double", (2, 3, 4, 3), (6, 8)),
                ("half", (1, 6, 8, 2), (3, 4)),
                ("odd-size", (1, 3, 5, 2), (7, 3)),
                ("one-element", (1, 1, 1, 1), (3, 2)),
                ("same-size", (1, 3, 4, 2), (3, 4)),
            ):
                input_shape = (shape[0], shape[3], *shape[1:3]) if label == "nchw" else shape
                types = of(DataType.FLOAT32)
                if (label, sizes) == ("plain", "double"):
                    types = every
                elif label == "plain":
                    types = of(DataType.FLOAT32, DataType.QASYMM_S8)
                yield CaseTemplate(
                    f"{name}-{label}-{sizes}",
                    Resize(size, method, **options),
                    (input_shape,),
                    types,
                    (grid,),
                )


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
    """Depth, space and batch."""
    values = (distinct,)
    for label, depth, space in (
        ("nhwc", (2, 3, 2, 8), (2, 6, 4, 3)),
        ("nchw", (2, 8, 3, 2), (2, 3, 6, 4)),
    ):
        layout = DataLayout[label.upper()]
        types = _BLOCK_TYPES if label == "nhwc" else of(DataType.FLOAT32, DataType.QASYMM_S8)
        yield CaseTemplate(label, DepthToSpace(2, layout), (depth,), types, values)
        yield CaseTemplate(label, SpaceToDepth(2, layout), (space,), types, values)
        none = ((0, 0), (0, 0))
        yield CaseTemplate(label, SpaceToBatchNd((2, 2), none, layout), (space,), types, values)
        batch = (8, *space[1:])
        yield CaseTemplate(label, BatchToSpaceNd((2, 2), none, layout), (batch,), types, values)
    yield CaseTemplate("block-of-3", DepthToSpace(3), ((1, 2, 2, 18),), values=values)
    yield CaseTemplate("block-of-3", SpaceToDepth(3), ((1, 3, 6, 2),), values=values)
    yield CaseTemplate(
        "padded", SpaceToBatchNd((2, 3), ((1, 0), (1, 3))), ((1, 3, 5, 2),), values=values
    )
    yield CaseTemplate(
        "cropped", BatchToSpaceNd((2, 2), ((1, 0), (0, 2))), ((4, 3, 3, 2),), values=values
    )
    yield CaseTemplate("one-axis", SpaceToBatchNd((2,), ((1, 0),)), ((2, 3, 5),), values=values)
    yield CaseTemplate("one-axis", BatchToSpaceNd((2,), ((1, 0),)), ((4, 3, 5),), values=values)
    yield CaseTemplate(
        "highest-zero-point",
        SpaceToBatchNd((2, 2), ((1, 1), (1, 0))),
        ((1, 2, 3, 2),),
        _BYTES,
        values,
        (Scale(1 / 16, 1.0),),
    )
