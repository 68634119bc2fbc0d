"""Compares kernels chosen by this machine's measured figures with those chosen by built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from armpy.backend import Progress, report_progress
from armpy.core.dataclass import dataclass
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import Convolution2d, Padding
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program.choices import Choices, Option
from armpy_numba_acc.tuning.measuring import TuningCandidate, take_turns

_SECONDS = 0.3
"""For each kernel: long against what else the machine does for a moment."""


@dataclass(frozen=True, slots=True)
class _ComparedLayer:
    """A convolution of an image of as many rows as columns."""

    size: int
    channels: int
    filters: int
    kernel: int
    data_type: DataType = DataType.FLOAT32

    def view(self) -> SubgraphView:
        """The layer alone, with made-up weights."""
        is_float = self.data_type is DataType.FLOAT32
        quantization = None if is_float else Quantization.per_tensor(0.05)
        shapes = (
            (1, self.size, self.size, self.channels),
            (self.filters, self.kernel, self.kernel, self.channels),
            (1, self.size, self.size, self.filters),
        )
        infos = [TensorInfo(shape, self.data_type, quantization) for shape in shapes]
        filters = np.random.default_rng(0).integers(-9, 9, shapes[1])
        image, output = Value(0, infos[0], "x"), Value(2, infos[2], "y")
        constant = replace(infos[1], is_constant=True)
        weights = Value(1, constant, "weights", filters.astype(self.data_type.dtype))
        operation = Convolution2d(padding=Padding.SAME)
        layer = Layer(0, "product", operation, (image, weights), (output,))
        return SubgraphView((layer,), (image,), (output,))


PRODUCTS: Mapping[str, _ComparedLayer] = MappingProxyType(
    {
        "float32 1x1": _ComparedLayer(7, 1024, 1024, 1),
        "float32 1x1 of rows": _ComparedLayer(14, 512, 512, 1),
        "float32 3x3": _ComparedLayer(28, 128, 128, 3),
        "int8 1x1": _ComparedLayer(14, 512, 512, 1, DataType.QASYMM_S8),
        "int8 3x3": _ComparedLayer(28, 128, 128, 3, DataType.QASYMM_S8),
    }
)
"""Layers for which figures of different machines choose differently, by name."""


def compared_figures(isa: Isa, measured: MachineModel, built_in: MachineModel) -> dict[str, float]:
    """Return how long kernels take that are chosen by measured figures, by built-in figures' time.

    Returns
    -------
    dict of str to float
        For each of `PRODUCTS`; 1 where both choose alike.
    """
    ratios: dict[str, float] = {}
    for number, (name, product) in enumerate(PRODUCTS.items()):
        report_progress(Progress("NumbaAcc", "comparing figures", number, len(PRODUCTS)))
        view, models = product.view(), (measured, built_in)
        if _chosen(view, isa, measured) == _chosen(view, isa, built_in):
            ratios[name] = 1.0
            continue
        candidates = [TuningCandidate(view, isa, 1, model, {}) for model in models]
        # The shortest, as of trials: on a busy machine medians are of what else it does.
        measured_us, built_in_us = take_turns(candidates, _SECONDS).times_us.min(axis=0)
        ratios[name] = float(measured_us / built_in_us)
    report_progress(Progress("NumbaAcc", "comparing figures", len(PRODUCTS), len(PRODUCTS)))
    return ratios


def _chosen(view: SubgraphView, isa: Isa, model: MachineModel) -> dict[str, Option]:
    """Choices by key for a layer."""
    choices = Choices(isa, model)
    lower_region(view, isa, 1, choices)
    return {decision.key: decision.chosen for decision in choices.made.values()}
