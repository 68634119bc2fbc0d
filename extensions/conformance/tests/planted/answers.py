"""Wrong answers of layers and about them, which every case of an operation finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from armpy.backend import HostTensorHandle, OptimizationViews, PreparationRequest, Support
from armpy.graph import SubgraphView
from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    Cast,
    Comparison,
    ElementwiseBinary,
    LayerNormalization,
    Quantize,
    TransposeConvolution2d,
)
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.ops.reduction import ArgMinMaxFunction
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step
from armpy_testing.backends.lying_backends import GivesBack, given_back

from .declarations import OPERATIONS
from .planting import Planted
from .shapes import Call, Fault, Fused, Plain, spoil_tensor
from .wrong_values import Answer, Form, attribute, recomputed, source, wrong

BY_HAND = "ElementwiseBinary/by-hand-arm-nn-sample/float32"


class AddsOne(Fault):
    """Elements are one too large."""

    def after(self, call: Call) -> None:
        for output in call.outputs:
            np.add(output, np.ones((), output.dtype), out=output)


class OneStepTooHigh(Fault):
    """Elements of eight bits are one step too high."""

    def after(self, call: Call) -> None:
        for output in call.outputs:
            if output.dtype == np.int8:
                output[...] = np.where(output < 127, output + 1, 126)


class GivesNan(Fault):
    """One element is NaN."""

    def after(self, call: Call) -> None:
        if call.outputs[0].dtype.kind == "f" and call.outputs[0].size:
            call.outputs[0].flat[0] = np.nan


class Stale(Fault):
    """The result of the execution before, if that was of the same shape and type."""

    def __init__(self) -> None:
        self._kept: dict[object, list[Array]] = {}

    def after(self, call: Call) -> None:
        key = (repr(call.operation), *((o.shape, o.dtype.str) for o in call.outputs))
        copies = [output.copy() for output in call.outputs]
        for output, old in zip(call.outputs, self._kept.get(key, copies), strict=True):
            output[...] = old
        self._kept[key] = copies


class Unfinished(Fault):
    """The last element of each output is not written."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        whole = [np.empty_like(handle.map()) for handle in outputs]
        handles = [HostTensorHandle(o.info, a) for o, a in zip(outputs, whole, strict=True)]
        step.right.execute(inputs, handles)
        for handle, array in zip(outputs, whole, strict=True):
            handle.map().flat[:-1] = array.flat[:-1]
            handle.unmap()


class ChangesInputs(Fault):
    """The first input is written to, whatever it says about that."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        assert inputs[0] is not None
        array = inputs[0].map()
        if array.flags.writeable and array.size:
            array.flat[0] += np.ones((), array.dtype)


class Answers(Plain):
    """Answers that is not a `Support`."""

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        return True  # type: ignore[return-value]  # the fault


class Pairs(Fused):
    """Compiles two connected layers and more; gives single ones back."""

    def __init__(self, fault: Fault | None = None) -> None:
        super().__init__(fault, operations=OPERATIONS)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        if len(view.layers) == 1:
            return given_back(view)
        return super().optimize_subgraph_view(view, request)


class Spoils(Fault):
    """Results are wrong."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        spoil_tensor(outputs[0])


# --- NaN


@dataclass
class DropsNan(Fault):
    """Numbers in place of NaN, as of maxima and clamps whose comparisons are false."""

    name: str

    def after(self, call: Call) -> None:
        for output in call.outputs:
            if call.operation.name == self.name and output.dtype.kind == "f":
                np.copyto(output, np.zeros((), output.dtype), where=np.isnan(output))


def spreads_nan(_: Operation, call: Call) -> Answer:
    """NaN in the input makes the first element NaN, as zeros times it do."""
    output = call.outputs[0].copy()
    if np.isnan(source(call)).any() and output.size:
        output.flat[0] = np.nan
    return [output]


def passes_over_nan(operation: ArgMinMax, call: Call) -> Answer:
    """The best of the other elements, as comparisons find that are false."""
    if source(call).dtype.kind != "f":
        return None
    worst = -np.inf if operation.function is ArgMinMaxFunction.MAX else np.inf
    values = np.where(np.isnan(source(call)), source(call).dtype.type(worst), source(call))
    return recomputed(call, inputs=(values, *call.inputs[1:]))


def integers_of_nan_are_lowest(_: Operation, call: Call) -> Answer:
    """NaN is the lowest integer, as of conversions of x86."""
    output = call.outputs[0].copy()
    if source(call).dtype.kind == "f" and output.dtype.kind in "iu":
        output[np.isnan(source(call))] = np.iinfo(output.dtype).min
    return [output]


def nan_equals(_: Operation, call: Call) -> Answer:
    """The opposite of pairs with NaN, as of negated comparisons."""
    if source(call).dtype.kind != "f":
        return None
    return [call.outputs[0] ^ (np.isnan(source(call)) | np.isnan(source(call, 1)))]


def floored_sigmoid(operation: Activation, call: Call) -> Answer:
    """A sigmoid never reaches 0."""
    if operation != Activation(ActivationFunction.SIGMOID) or source(call).dtype != np.float32:
        return None
    return [np.maximum(call.outputs[0], np.float32(2.0**-125))]


# --- What comes together seldom


def arctangent_of_quotient(operation: ElementwiseBinary, call: Call) -> Answer:
    """The quadrant of an angle is lost."""
    if operation.operation.name != "ATAN2":
        return None
    return [np.arctan(source(call) / source(call, 1))]


def zeros_without_sign(operation: ElementwiseBinary, call: Call) -> Answer:
    """A divisor of -0 is 0."""
    if operation.operation.name != "DIV":
        return None
    return [source(call) / (source(call, 1) + 0.0)]


def subtracts_means(operation: LayerNormalization, call: Call) -> Answer:
    """The variance is the difference of two means, in float32."""
    if operation.axes != (-1,) or any(array is not None for array in call.inputs[1:2]):
        return None
    x = source(call).astype(np.float32)
    mean = x.mean(-1, keepdims=True)
    variance = (x * x).mean(-1, keepdims=True) - mean * mean
    return [(x - mean) / np.sqrt(variance + np.float32(operation.eps))]


def _has_scale_of_0(call: Call) -> bool:
    """Whether a channel's weights have the scale 0."""
    weights = call.infos[1]
    assert weights is not None
    return weights.quantization is not None and 0.0 in weights.quantization.scales


def relu_of_bytes(operation: ElementwiseBinary, call: Call) -> Answer:
    """RELU takes the stored 0 for the real one."""
    if attribute(call, "activation").name != "RELU" or call.outputs[0].dtype != np.int8:
        return None
    return [np.maximum(call.outputs[0], 0)]


ANSWER_FAULTS: dict[str, Planted] = {
    "answers/adds-one": Planted(
        BY_HAND,
        Plain,
        AddsOne,
        r"Planted / ElementwiseBinary\(\) on \(FLOAT32 \(2,\), FLOAT32 \(2,\)\) -> "
        r"\(FLOAT32 \(2,\)\).*worst at index \(1,\). Expected 11 within 1e-05.*got 12",
    ),
    "answers/gives-nan": Planted(BY_HAND, Plain, GivesNan, "got nan"),
    "answers/stale": Planted(BY_HAND, Plain, Stale, "when executed again"),
    "answers/unfinished": Planted(
        BY_HAND, Plain, Unfinished, "output is not written completely: 1 of"
    ),
    "answers/changes-inputs": Planted(
        BY_HAND, Plain, ChangesInputs, "the input '0_lhs' was changed by the execution"
    ),
    "answers/one-step-too-high": Planted(
        "ElementwiseBinary/add/qasymm_s8",
        Plain,
        OneStepTooHigh,
        "elements are off by 1 steps on average",
    ),
    "answers/copies-one-step-too-high": Planted(
        "Reshape/basic/qasymm_s8", Plain, OneStepTooHigh, "Expected.*exactly"
    ),
    **{
        f"answers/{method}-raises": Planted(
            BY_HAND,
            partial(FakeBackend, "Planted", faults={method: ZeroDivisionError("oops")}),
            said=f"Planted / ElementwiseBinary.*{said}.*oops",
        )
        for method, said in (
            ("create_workload", "said supported, but failed to prepare"),
            ("execute", "said supported, but failed to run"),
        )
    },
    "answers/support-raises": Planted(
        BY_HAND,
        lambda: FakeBackend("Planted", faults={"is_layer_supported": ZeroDivisionError("oops")}),
        said=r"oops.* at fake_backends\.py:\d+ in answer",
    ),
    "answers/truth": Planted(
        BY_HAND, Answers, said="is_layer_supported answered True, not a Support"
    ),
    "answers/gives-back": Planted(
        BY_HAND,
        lambda: GivesBack("Planted"),
        said="took it in no network: neither alone nor beside RELU, ADD.*single layers are not",
    ),
    "answers/wrong-pairs": Planted(
        BY_HAND, Pairs, Spoils, r"Planted / ElementwiseBinary\(\) on .*after: output: "
    ),
    "answers/floored-sigmoid": wrong(
        Activation, floored_sigmoid, Plain, "sigmoid times far numbers", "Expected -0 within"
    ),
    **{
        f"nan/{name}": Planted(f"{name}/no-numbers", Plain, partial(DropsNan, name))
        for name in (
            *("Reduce", "TopkV2", "Pooling2d", "MaxPoolWithIndices", "ElementwiseBinary"),
            *("Activation", "Softmax", "Convolution2d", "DepthwiseConvolution2d"),
            *("FullyConnected", "Resize"),
        )
    },
    **{
        f"nan/{kind.__name__}": wrong(kind, answer, Plain, f"{kind.__name__}/no-numbers")
        for kind, answer in (
            (ArgMinMax, passes_over_nan),
            (TransposeConvolution2d, spreads_nan),
            (Quantize, integers_of_nan_are_lowest),
            (Cast, integers_of_nan_are_lowest),
            (Comparison, nan_equals),
        )
    },
    "seldom/quadrants": wrong(
        ElementwiseBinary, arctangent_of_quotient, Plain, "ElementwiseBinary/atan2-signs/float32"
    ),
    "seldom/zeros": wrong(
        ElementwiseBinary, zeros_without_sign, Plain, "ElementwiseBinary/div-zeros/float32"
    ),
    "seldom/means": wrong(
        LayerNormalization, subtracts_means, Plain, "LayerNormalization/far-from-0/float32"
    ),
    "seldom/scale-of-0": Planted(
        "Convolution2d/no-scale/qasymm_s8-qsymm_s8-signed32",
        Fused,
        lambda: Form("Convolution2d", _has_scale_of_0),
    ),
    "seldom/relu-of-bytes": wrong(
        ElementwiseBinary, relu_of_bytes, Fused, "ElementwiseBinary/relu-at-lowest/qasymm_s8"
    ),
}
"""By class and name."""
