"""Cases of convolutions over volumes."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.ops import Convolution3d, FusedActivation, Padding, TransposeConvolution3d
from armpy.types import DataLayout, DataType
from armpy_conformance.cases.weighted import hybrid, line, per_output, sums
from armpy_conformance.sampling.case_template import CaseTemplate, is_hybrid, of

_QUANTIZED = of(DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16)

_WINDOWS: dict[str, dict[str, object]] = {
    "valid": {},
    "same": {"padding": Padding.SAME},
    "stride-same": {"stride": (2, 2, 2), "padding": Padding.SAME},
    "stride-uneven": {"stride": (1, 2, 3)},
    "padding-uneven": {"padding": ((1, 0), (2, 1), (0, 2))},
    "dilation": {"dilation": (1, 2, 2), "padding": Padding.SAME},
    "relu6": {"activation": FusedActivation.RELU6},
    "ncdhw": {"data_layout": DataLayout.NCDHW, "padding": Padding.SAME},
}


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    for make, volume in (
        (Convolution3d, (2, 4, 6, 7, 3)),
        (TransposeConvolution3d, (2, 2, 3, 4, 3)),
    ):
        kernel, bias = (4, 2, 3, 3, 3), (4,)
        plain = line("basic", make(), (volume, kernel, bias), lambda types: not is_hybrid(types))
        yield plain
        yield plain.at_run_time()
        for label, options in _WINDOWS.items():
            shape = (2, 3, *volume[1:4]) if label == "ncdhw" else volume
            operation = make(**options)  # type: ignore[arg-type]  # attributes by name
            yield line(label, operation, (shape, kernel, bias))
        yield line("no-bias", make(), (volume, kernel, None))
        yield line("one-element", make(), ((1,) * 5, (1,) * 5, (1,)))
        yield line("pointwise", make(), ((1, 2, 3, 5, 17), (9, 1, 1, 1, 17), (9,)))
        yield line("grouped", make(), ((1, 3, 4, 4, 4), (6, 2, 2, 3, 2), (6,)))
        yield line("depthwise", make(), ((1, 3, 4, 4, 4), (4, 2, 2, 3, 1), (4,)))
        yield line("per-axis", make(), (volume, kernel, bias), _QUANTIZED, infos=per_output)
        yield from sums(make(), (volume, kernel, bias), per_output)
        yield hybrid(make(), (volume, kernel, bias), -127, False)
    spreads: dict[str, dict[str, object]] = {
        "stride-above-kernel": {"stride": (3, 4, 4)},
        "output-shape": {"stride": (2, 2, 2), "output_shape": (2, 5, 8, 9, 4)},
    }
    for label, options in spreads.items():
        spread = TransposeConvolution3d(**options)  # type: ignore[arg-type]  # by name
        yield line(label, spread, ((2, 2, 3, 4, 3), (4, 2, 3, 3, 3), (4,)))
