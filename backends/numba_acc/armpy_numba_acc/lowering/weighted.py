"""Convolution2d, Convolution3d, DepthwiseConvolution2d and FullyConnected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.graph import Layer
from armpy.ops import Convolution2d, Convolution3d, DepthwiseConvolution2d, FullyConnected
from armpy_numba_acc import lowering
from armpy_numba_acc.lowering.weighted_checks import check_weighted
from armpy_numba_acc.program.registry import LoweringRule

if TYPE_CHECKING:
    from armpy_numba_acc.program.emitter import Emitter


def _lower_weighted(emit: Emitter, layer: Layer) -> None:
    """See `lower_weighted`, which is imported when it is first needed."""
    lowering.lower_weighted(emit, layer)


def _lower_depthwise(emit: Emitter, layer: Layer) -> None:
    """See `lower_depthwise`, which is imported when it is first needed."""
    lowering.lower_depthwise(emit, layer)


LOWERINGS = {
    Convolution2d: LoweringRule(check_weighted, _lower_weighted),
    Convolution3d: LoweringRule(check_weighted, _lower_weighted),
    DepthwiseConvolution2d: LoweringRule(check_weighted, _lower_depthwise),
    FullyConnected: LoweringRule(check_weighted, _lower_weighted),
}
