"""Faults of compilers for 8 bits: requantising, tiles, programs, caches, files, own memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any  # what is kept, whatever it is

import numpy as np

from armpy.backend import (
    IMemoryManager,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.graph import SubgraphView, Value
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from tests.support.planted_faults import (
    Call,
    Factory,
    Fault,
    Forgets,
    Fused,
    Handles,
    Outputs,
    OwnHandle,
    OwnHandles,
    Programs,
)
from tests.support.vendor_numbers import (
    BINARY,
    CONV,
    DEPTHWISE,
    attribute,
    both,
    info,
    is_padded,
    is_uneven,
    kind,
    many,
    shape_of,
    wrong,
)

# --- Whole numbers


def is_quantized(call: Call) -> bool:
    return call.results[0].quantization is not None and call.outputs[0].dtype.itemsize == 1


def scale(of: TensorInfo) -> float:
    assert of.quantization is not None
    return of.quantization.scales[0]


def zero(of: TensorInfo) -> int:
    return 0 if of.quantization is None else of.quantization.zero_points[0]


def per_channel(call: Call) -> bool:
    found = call.infos[1] if len(call.infos) > 1 else None
    return (
        is_quantized(call)
        and found is not None
        and found.quantization is not None
        and len(found.quantization.scales) > 1
    )


def first_scale(call: Call) -> None:
    """All channels have the scale of the first."""
    found = info(call, 1).quantization
    assert found is not None
    scales = np.array(found.scales)
    result, output = call.results[0], call.outputs[0]
    ratio = np.divide(scales[0], scales, out=np.ones_like(scales), where=scales != 0)
    if len(scales) == output.shape[-1]:
        moved = (output.astype(np.float64) - zero(result)) * ratio + zero(result)
        low, high = result.data_type.integer_range
        output[...] = np.clip(np.rint(moved), low, high)


def lowest_wraps(call: Call) -> None:
    low, high = np.iinfo(call.outputs[0].dtype).min, np.iinfo(call.outputs[0].dtype).max
    call.outputs[0][call.outputs[0] == low] = high


def highest_wraps(call: Call) -> None:
    low, high = np.iinfo(call.outputs[0].dtype).min, np.iinfo(call.outputs[0].dtype).max
    call.outputs[0][call.outputs[0] == high] = low


def without_lowest(call: Call) -> None:
    """Symmetric range for everything."""
    if call.outputs[0].dtype == np.int8:
        np.maximum(call.outputs[0], -127, out=call.outputs[0])


def quantized_by(function: Callable[[Array], Array]) -> Callable[[Call], None]:
    def effect(call: Call) -> None:
        result, x = call.results[0], call.inputs[0]
        if x is None or result.quantization is None or len(result.quantization.scales) > 1:
            return
        low, high = result.data_type.integer_range
        steps = function(x.astype(np.float64) / scale(result)) + zero(result)
        call.outputs[0][...] = np.clip(np.nan_to_num(steps), low, high)

    return effect


def not_relative_to_zero(call: Call) -> None:
    """The fused Relu is at a stored 0."""
    np.maximum(call.outputs[0], 0, out=call.outputs[0])


def sums(call: Call) -> Array | None:
    """Of a dense layer, as whole numbers."""
    x, weights = call.inputs[0], call.inputs[1]
    if call.operation.name != "FullyConnected" or x is None or weights is None:
        return None
    rows = x.reshape(-1, weights.shape[1]).astype(np.int64) - zero(info(call))
    return rows @ (weights.astype(np.int64) - zero(info(call, 1))).T


def beyond(bits: int) -> Callable[[Call], bool]:
    """A sum has more bits."""

    def condition(call: Call) -> bool:
        found = sums(call) if is_quantized(call) else None
        return found is not None and bool(found.size and (np.abs(found) >= 1 << (bits - 1)).any())

    return condition


def scale_of_left(call: Call) -> None:
    """A sum for which both operands have the first one's scale."""
    a, b = call.inputs[0], call.inputs[1]
    if a is None or b is None:
        return
    result = call.results[0]
    total = scale(info(call)) * (
        a.astype(np.float64) - zero(info(call)) + b.astype(np.float64) - zero(info(call, 1))
    )
    low, high = result.data_type.integer_range
    call.outputs[0][...] = np.clip(np.rint(total / scale(result)) + zero(result), low, high)


def as_stored(call: Call) -> None:
    """Inputs of other scales are copied as they are stored."""
    given = [a for a in call.inputs if a is not None]
    call.outputs[0][...] = np.concatenate(given, attribute(call, "axis"))


def scales_differ(call: Call) -> bool:
    return is_quantized(call) and len({scale(i) for i in call.infos if i is not None}) > 1


def product_is_larger(call: Call) -> bool:
    return is_quantized(call) and scale(info(call)) * scale(info(call, 1)) > scale(call.results[0])


def one_less(call: Call) -> None:
    """Cut where it is rounded: every other element is a step lower."""
    flat = call.outputs[0].reshape(-1)
    low = np.iinfo(flat.dtype).min
    flat[::2] -= (flat[::2] > low).astype(flat.dtype)


def zero_points(which: int) -> Callable[[Call], bool]:
    return lambda call: (
        is_quantized(call)
        and len(call.infos) > which
        and call.infos[which] is not None
        and zero(info(call, which)) != 0
    )


def corner(call: Call) -> None:
    """The first window is wrong."""
    call.outputs[0].reshape(-1)[:1].view(np.uint8)[0] ^= 0x20


def width_rest(tile: int) -> Callable[[Call], bool]:
    return lambda call: (
        call.outputs[0].ndim == 4
        and call.outputs[0].shape[2] > tile
        and call.outputs[0].shape[2] % tile > 0
    )


def window(size: int) -> Callable[[Call], bool]:
    return lambda call: shape_of(call, 1)[1:3] == (size, size)


INT8: dict[str, Callable[[], Fault]] = {
    "int8/scale-of-first-channel": wrong(f"{CONV} {DEPTHWISE}", per_channel, first_scale),
    "int8/scales-beyond-16": wrong(
        f"{CONV} {DEPTHWISE}",
        lambda c: per_channel(c) and len(info(c, 1).quantization.scales) > 16,  # type: ignore[union-attr]
    ),
    "int8/bias-per-channel": wrong(
        f"{CONV} {DEPTHWISE}",
        lambda c: per_channel(c) and len(c.inputs) > 2 and c.inputs[2] is not None,
    ),
    "int8/zero-scale-channel": wrong(
        CONV,
        lambda c: per_channel(c) and 0.0 in info(c, 1).quantization.scales,  # type: ignore[union-attr]
    ),
    "int8/lowest-wraps": wrong("", is_quantized, lowest_wraps),
    "int8/highest-wraps": wrong(f"{CONV} FullyConnected", is_quantized, highest_wraps),
    "int8/symmetric-range": wrong("", is_quantized, without_lowest),
    "int8/quantize-cuts": wrong(
        "Quantize",
        lambda c: c.inputs[0] is not None and c.inputs[0].dtype.kind == "f",
        quantized_by(np.trunc),
    ),
    "int8/quantize-halves-up": wrong(
        "Quantize",
        lambda c: c.inputs[0] is not None and c.inputs[0].dtype.kind == "f",
        quantized_by(lambda x: np.floor(x + 0.5)),
    ),
    "int8/requantize": wrong(
        "Quantize",
        lambda c: (
            c.inputs[0] is not None
            and c.inputs[0].dtype.itemsize == 1
            and {"u", "i"} == {c.inputs[0].dtype.kind, c.outputs[0].dtype.kind}
        ),
    ),
    "int8/relu-at-stored-0": wrong(
        f"{CONV} {BINARY} FullyConnected {DEPTHWISE}",
        lambda c: is_quantized(c) and getattr(attribute(c, "activation"), "name", "") == "RELU",
        not_relative_to_zero,
    ),
    "int8/relu6-has-no-6": wrong(
        CONV, lambda c: is_quantized(c) and attribute(c, "activation").name == "RELU6", corner
    ),
    "int8/sums-of-16-bits": wrong("FullyConnected", beyond(16), corner),
    "int8/sums-of-24-bits": wrong("FullyConnected", beyond(24), corner),
    "int8/padding-is-0": wrong(CONV, lambda c: zero_points(0)(c) and is_padded(c), corner),
    "int8/zero-of-weights": wrong(f"FullyConnected {CONV}", zero_points(1)),
    "int8/scale-of-left": wrong(BINARY, both(scales_differ, kind("ADD")), scale_of_left),
    "int8/large-product": wrong(BINARY, both(product_is_larger, kind("MUL"))),
    "int8/concat-as-stored": wrong("Concat", scales_differ, as_stored),
    "int8/average-cuts": wrong(
        "Pooling2d",
        lambda c: is_quantized(c) and attribute(c, "algorithm").name == "AVERAGE",
        one_less,
    ),
    "int8/resize-cuts": wrong(
        "Resize", lambda c: is_quantized(c) and attribute(c, "method").name == "BILINEAR", one_less
    ),
    "int8/mean-of-many": wrong(
        "Reduce",
        lambda c: (
            is_quantized(c)
            and kind("MEAN")(c)
            and np.asarray(c.inputs[0]).size // max(1, c.outputs[0].size) > 128
        ),
    ),
    "int8/16-bits": wrong(CONV, lambda c: c.outputs[0].dtype == np.int16),
    "int8/softmax-batch": wrong(
        "Softmax",
        lambda c: is_quantized(c) and many(c),
        lambda c: c.outputs[0].__setitem__(slice(1, None), c.outputs[0][:1]),
    ),
    "int8/prelu-positive": wrong("Prelu", is_quantized, one_less),
    "int8/hard-swish": wrong(
        "Activation", lambda c: is_quantized(c) and kind("HARD_SWISH")(c), one_less
    ),
    "int8/maximum-of-unlike": wrong(
        BINARY, lambda c: scales_differ(c) and kind("MAXIMUM", "MINIMUM")(c)
    ),
    "int8/compare-as-stored": wrong(
        "Comparison",
        lambda c: (
            info(c).quantization is not None and info(c).quantization != info(c, 1).quantization
        ),
    ),
    "int8/pad-with-stored-0": wrong(
        "Pad", lambda c: is_quantized(c) and zero(call_info(c)) != 0, corner
    ),
    "tiles/width-rest-8": wrong(CONV, width_rest(8)),
    "tiles/height-rest-4": wrong(
        f"{CONV} {DEPTHWISE}",
        lambda c: c.outputs[0].shape[1] > 4 and c.outputs[0].shape[1] % 4 == 3,
    ),
    "tiles/1x1-with-stride": wrong(
        CONV, lambda c: window(1)(c) and max(attribute(c, "stride")) > 1
    ),
    "tiles/1x1-with-padding": wrong(CONV, lambda c: window(1)(c) and is_padded(c)),
    "tiles/3x3-with-stride": wrong(
        DEPTHWISE, lambda c: window(3)(c) and attribute(c, "stride") == (2, 2)
    ),
    "tiles/5x5": wrong(CONV, window(5)),
    "tiles/7x7-stem": wrong(CONV, lambda c: window(7)(c) and attribute(c, "stride") == (2, 2)),
    "tiles/window-not-square": wrong(CONV, lambda c: len(set(shape_of(c, 1)[1:3])) > 1),
    "tiles/stride-beyond-window": wrong(
        f"{CONV} Pooling2d",
        lambda c: (attribute(c, "pool_size") or shape_of(c, 1)[1:3]) < attribute(c, "stride"),
    ),
    "tiles/padding-at-one-side-int8": wrong(CONV, lambda c: is_quantized(c) and is_uneven(c)),
    "tiles/global-pool": wrong(
        "Pooling2d", lambda c: attribute(c, "pool_size") == shape_of(c)[1:3] and shape_of(c)[1] > 4
    ),
    "tiles/batch-of-3": wrong(
        f"{CONV} {DEPTHWISE} Pooling2d", lambda c: c.outputs[0].shape[0] == 3
    ),
}


def call_info(call: Call) -> TensorInfo:
    return call.results[0]


# --- Programs


def spoil(array: Array) -> None:
    if array.size:
        flat = array.reshape(-1)
        if flat.dtype == bool:
            flat[-1] = not flat[-1]
        else:
            flat[-1:].view(np.uint8)[-1] ^= 0x40


class ProgramWrong(Fault):
    """Programs of some form are wrong."""

    def __init__(self, condition: Callable[[SubgraphView], bool]) -> None:
        self._condition = condition
        self.fired = 0

    def program(self, view: SubgraphView, values: dict[Value, Array]) -> None:
        if self._condition(view):
            self.fired += 1
            spoil(values[view.outputs[0]])


def program(condition: Callable[[SubgraphView], bool]) -> Callable[[], Fault]:
    return lambda: ProgramWrong(condition)


def reads(view: SubgraphView) -> list[Value]:
    """Everything that layers read, once for each time."""
    return [v for layer in view.layers for v in layer.inputs if v is not None and v.data is None]


def num_inputs(view: SubgraphView) -> int:
    return len(view.inputs)


def is_output_read(view: SubgraphView) -> bool:
    return any(value in view.outputs for value in reads(view))


def is_read_twice(view: SubgraphView) -> bool:
    inner = [v for layer in view.layers for v in layer.outputs]
    return any(reads(view).count(value) > 1 for value in inner)


def is_input_read_twice(view: SubgraphView) -> bool:
    return any(reads(view).count(v) > 1 for v in view.inputs)


def is_square(view: SubgraphView) -> bool:
    """A layer reads one value twice."""
    return any(
        len(layer.inputs) > 1 and layer.inputs[0] is layer.inputs[1] for layer in view.layers
    )


def follows(first: str, second: str) -> Callable[[SubgraphView], bool]:
    """A layer of one kind reads what one of another kind makes."""

    def condition(view: SubgraphView) -> bool:
        made = {v for layer in view.layers if layer.operation.name == first for v in layer.outputs}
        return any(
            v in made
            for layer in view.layers
            if layer.operation.name == second
            for v in layer.inputs
        )

    return condition


class NthWrong(Fault):
    """Some executions of a layer are wrong: buffers that take turns."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._counts: dict[int, int] = {}

    def program(self, view: SubgraphView, values: dict[Value, Array]) -> None:
        self._counts[id(view)] = self._counts.get(id(view), 0) + 1
        if self._counts[id(view)] == self._number:
            spoil(values[view.outputs[0]])


class Cached(Fault):
    """Kernels are kept by a key that lacks an attribute."""

    def __init__(self, name: str, attribute: str) -> None:
        self._name, self._attribute = name, attribute
        self._kept: dict[str, Operation] = {}

    def operation(self, operation: Operation, how: str) -> Operation:
        if operation.name != self._name:
            return operation
        rest = {k: v for k, v in operation.attributes().items() if k != self._attribute}
        return self._kept.setdefault(str(rest), operation)


class ConstantsBySize(Fault):
    """Packed weights are kept by their shapes, for all networks."""

    def __init__(self) -> None:
        self._kept: dict[object, Array] = {}

    def before(self, call: Call) -> None:
        for index, of in enumerate(call.infos[1:2], 1):
            array = call.inputs[index]
            if of is not None and of.is_constant and array is not None and array.size > 1:
                key = call.operation.name, array.shape, array.dtype.str
                call.inputs[index] = self._kept.setdefault(key, array.copy())


class LastBits(Fault):
    """Scales of outputs are those of the first network of the shape."""

    def __init__(self) -> None:
        self._kept: dict[object, TensorInfo] = {}

    def after(self, call: Call) -> None:
        result = call.results[0]
        if not is_quantized(call):
            return
        key = call.operation, call.infos
        kept = self._kept.setdefault(key, result)
        if kept.quantization != result.quantization:
            ratio = scale(result) / scale(kept)
            low, high = result.data_type.integer_range
            steps = (call.outputs[0].astype(np.float64) - zero(result)) * ratio + zero(kept)
            call.outputs[0][...] = np.clip(np.rint(steps), low, high)


class MutatesConstants(Fault):
    """Weights are unpacked where they lie: each execution moves them."""

    def __init__(self) -> None:
        self._kept: dict[int, Array] = {}

    def before(self, call: Call) -> None:
        for index, of in enumerate(call.infos):
            array = call.inputs[index]
            if index and of is not None and of.is_constant and array is not None and array.size > 1:
                own = self._kept.setdefault(id(of), array.copy())
                call.inputs[index] = own.copy()
                own.reshape(-1)[...] = np.roll(own.reshape(-1), 1)


# --- Files


class SavesOne(Programs):
    """All programs of a file are its first one."""

    def save(self, program: object, options: Any) -> SavedProgram | None:
        saved = super().save(program, options)
        assert saved is not None
        return SavedProgram({**saved.about, "number": 0}, saved.parts)


class TakesAll(Programs):
    """Says yes to whatever file."""

    def check(self, about: Any, options: Any) -> ProgramCheck:
        return ProgramCheck(ProgramFit.ACCEPTED)


class LoadsOnce(Programs):
    """A program can be loaded once."""

    def load(self, saved: SavedProgram) -> object:
        number = int(str(saved.about["number"]))
        found, self.kept[number] = self.kept[number], None
        assert found is not None
        return found, "loaded"


class LoadedSwaps(Programs):
    """Outputs of loaded programs come in another order, inputs of programs of three as well."""

    def load(self, saved: SavedProgram) -> object:
        view = self.kept[int(str(saved.about["number"]))]
        assert isinstance(view, SubgraphView)
        if len(view.outputs) > 1:
            view = replace_outputs(view)
        return view, "loaded"


def replace_outputs(view: SubgraphView) -> SubgraphView:
    return replace(view, outputs=tuple(reversed(view.outputs)))


class SecondPart(Programs):
    """Writes down the device it was made on and refuses its own files in the next process."""

    def check(self, about: Any, options: Any) -> ProgramCheck:
        return ProgramCheck(ProgramFit.FOREIGN, "another device")


class LoadedHalf(Fault):
    """Weights in files are of half precision."""

    def __init__(self) -> None:
        self._loaded: set[Operation] = set()

    def operation(self, operation: Operation, how: str) -> Operation:
        (self._loaded.add if how == "loaded" else self._loaded.discard)(operation)
        return operation

    def before(self, call: Call) -> None:
        for index, of in enumerate(call.infos):
            array = call.inputs[index]
            if (
                call.operation in self._loaded
                and of is not None
                and of.is_constant
                and array is not None
                and array.dtype == np.float32
            ):
                call.inputs[index] = array.astype(np.float16).astype(np.float32)


def files(kind: type[Programs]) -> Callable[[], Fused]:
    def make() -> Fused:
        made = Fused()
        made.programs = kind()
        return made

    return make


# --- Own memory


class OtherHandles(OwnHandles):
    """Makes tensors of another class."""

    def __init__(self, kind: type[OwnHandle]) -> None:
        self._kind = kind

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        return self._kind(info)


def handles(kind: type[OwnHandle]) -> Callable[[], Fused]:
    class Other(Fused):
        def register_tensor_handle_factories(self, registry: TensorHandleFactoryRegistry) -> None:
            registry.register_factory(OtherHandles(kind))

    return Other


class LosesZeroRank(OwnHandle):
    """Uploads nothing without dimensions."""

    def unmap(self) -> None:
        if self._info.known_shape == ():
            self._staged.pop()
        else:
            super().unmap()


class UnmapsFirst(OwnHandle):
    """Of two maps, the first is ended first."""

    def unmap(self) -> None:
        staging, is_written = self._staged.pop(0)
        if is_written:
            self.elements[...] = staging


class CopiesOutStale(OwnHandle):
    """`copy_out_to` reads what was there when it was first asked."""

    def copy_out_to(self, target: Array) -> None:
        self.first = getattr(self, "first", None)
        if self.first is None:
            self.first = self.elements.copy()
        target[...] = self.first


class WordsOnly(OwnHandle):
    """Transfers are of whole words of 4 bytes; the rest stays."""

    def unmap(self) -> None:
        staging, is_written = self._staged.pop()
        if is_written:
            size = staging.nbytes // 4 * 4
            source, target = (
                staging.reshape(-1).view(np.uint8),
                self.elements.reshape(-1).view(np.uint8),
            )
            target[:size] = source[:size]


class SixteenBitSizes(OwnHandle):
    """Transfers are of less than 64 KiB."""

    def unmap(self) -> None:
        staging, is_written = self._staged.pop()
        if is_written:
            size = min(staging.nbytes, 0xFFFF)
            source, target = (
                staging.reshape(-1).view(np.uint8),
                self.elements.reshape(-1).view(np.uint8),
            )
            target[:size] = source[:size]


class FloatsWithoutDenormals(OwnHandle):
    """Transfers convert floats: signs of 0 are lost."""

    def unmap(self) -> None:
        super().unmap()
        if self.elements.dtype.kind == "f":
            self.elements += 0.0


class LosesPayload(OwnHandle):
    """Bools are bits."""

    def unmap(self) -> None:
        super().unmap()
        if self.elements.dtype == np.int64:
            self.elements[...] = self.elements.astype(np.int32)


class InPlace(Fused):
    """Writes a result of its input's shape where the input lies, and copies it then."""

    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        class Shared(Factory):
            def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
                right = super().create_workload(operation, info)

                class Writing(IWorkload):
                    def execute(self, inputs: Handles, outputs: Outputs) -> None:
                        right.execute(inputs, outputs)
                        for handle in inputs[:1]:
                            if isinstance(handle, OwnHandle) and isinstance(outputs[0], OwnHandle):
                                alike = handle.elements.shape == outputs[0].elements.shape
                                if alike and handle.elements.dtype == outputs[0].elements.dtype:
                                    handle.elements[...] = outputs[0].elements

                return Writing()

        return Shared(self.fault)


def fused(make: Callable[[], Fault]) -> Callable[[], Fused]:
    return lambda: Fused(make())


PROGRAMS: dict[str, Callable[[], Fused]] = {
    "program/result-also-read": fused(program(is_output_read)),
    "program/value-read-twice": fused(program(is_read_twice)),
    "program/input-read-twice": fused(program(is_input_read_twice)),
    "program/value-with-itself": fused(program(is_square)),
    "program/of-4-layers": fused(program(lambda v: len(v.layers) >= 4)),
    "program/3-inputs": fused(program(lambda v: num_inputs(v) >= 3)),
    "program/2-outputs": fused(program(lambda v: len(v.outputs) >= 2)),
    "program/conv-then-add": fused(program(follows(CONV, BINARY))),
    "program/add-then-relu": fused(program(follows(BINARY, "Activation"))),
    "program/pad-then-conv": fused(program(follows("Pad", CONV))),
    "program/conv-then-pool": fused(program(follows(CONV, "Pooling2d"))),
    "program/dense-then-softmax": fused(program(follows("FullyConnected", "Softmax"))),
    "program/reshape-then-dense": fused(program(follows("Reshape", "FullyConnected"))),
    "program/dequantize-quantize": fused(program(follows("Dequantize", "Quantize"))),
    "program/transposes": fused(program(follows("Transpose", "Transpose"))),
    "program/concat-then-conv": fused(program(follows("Concat", CONV))),
    "program/two-dense": fused(program(follows("FullyConnected", "FullyConnected"))),
    "program/second-execution": fused(lambda: NthWrong(2)),
    "program/third-execution": fused(lambda: NthWrong(3)),
    "program/fourth-execution": fused(lambda: NthWrong(4)),
    "program/ninth-execution": fused(lambda: NthWrong(9)),
    "cache/activation": fused(lambda: Cached(CONV, "activation")),
    "cache/beta": fused(lambda: Cached("Softmax", "beta")),
    "cache/padding": fused(lambda: Cached("Pooling2d", "padding")),
    "cache/function": fused(lambda: Cached("Activation", "a")),
    "cache/weights-by-size": fused(ConstantsBySize),
    "cache/scale-of-output": fused(LastBits),
    "constants/are-moved": fused(MutatesConstants),
    "files/first-program": files(SavesOne),
    "files/any-file": files(TakesAll),
    "files/loaded-once": files(LoadsOnce),
    "files/outputs-swapped": files(LoadedSwaps),
    "files/refuses-its-own": files(SecondPart),
    "files/half-weights": fused(LoadedHalf),
    **{
        f"files/{name}-{a}": fused(lambda name=name, a=a: Forgets(name, a))  # type: ignore[misc]
        for name, a in (
            (DEPTHWISE, "dilation"),
            (BINARY, "activation"),
            ("Pad", "pad_value"),
            ("L2Normalization", "epsilon"),
            ("TopkV2", "largest"),
            ("Cumulate", "reverse"),
            ("FullyConnected", "activation"),
            ("Pooling2d", "algorithm"),
        )
    },
    "memory/rank-0": handles(LosesZeroRank),
    "memory/maps-in-order": handles(UnmapsFirst),
    "memory/stale-copies": handles(CopiesOutStale),
    "memory/whole-words": handles(WordsOnly),
    "memory/below-64-kib": handles(SixteenBitSizes),
    "memory/signs-of-0": handles(FloatsWithoutDenormals),
    "memory/int64-in-32": handles(LosesPayload),
    "memory/in-place": InPlace,
}
"""In a compiler with memory of its own, each the makings of one."""
