"""Judges one example on one device, through the public API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from armpy.backend import ReasonCode
from armpy.core.dataclass import dataclass
from armpy.errors import BackendCapabilityError
from armpy.execution import LoadedNetwork, RuntimeOptions
from armpy.graph import nested_graphs
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT, FLOAT16, FLOAT32, OFF_BY_ONE, Tolerance, compare
from armpy.types import BackendId, DataType
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.executed_layers import kind_of, kinds_run, layers_refused
from armpy_conformance.raised import described
from armpy_conformance.result import CaseResult, Outcome
from armpy_nnapi.codes import LATEST_FEATURE_LEVEL, OperandCode, OperationCode
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.conformance.vectors.example import Example
from armpy_nnapi.conformance.vectors.twins import signed_twin, twin_difference
from armpy_nnapi.description.model_description import Operand
from armpy_nnapi.devices import DeviceManager
from armpy_nnapi.errors import NnapiError
from armpy_nnapi.lowering.lower_model import lower_model
from armpy_nnapi.model.model import Model
from armpy_nnapi.run.execution import Execution

CompareElements: TypeAlias = Callable[[Example, int, Array, Array], str]
"""Describes a wrong output: of which example, its position, the elements expected and
those found, both flat; nothing if it is right."""

_MOBILENET = Tolerance(3.0)


@dataclass(frozen=True, slots=True)
class Variation:
    """One way to run an example."""

    example: Example
    has_unknown_outputs: bool  # whether all dimensions of the outputs are left unknown in the model
    is_signed_twin: bool = False
    """Whether its signed twin is run instead, whose outputs must also be those of the example less
    128.
    """

    @property
    def case(self) -> str:
        """Id in results."""
        way = "unknown output dimensions" if self.has_unknown_outputs else "as declared"
        way = "signed twin" if self.is_signed_twin else way
        return f"{self.example.file}/{self.example.name}/{way}"


ANSWERED_BY_OTHERS = "the core or another backend gave the answer"
REFUSED = "refused, as it has to be"


@dataclass
class _Finding:
    """Result of a variation so far."""

    outcome: Outcome = Outcome.PASSED
    text: str = ""
    claimed: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()


class VectorJudge:
    """Runs examples on one device.

    Parameters
    ----------
    options : RuntimeOptions, optional
        Where backends are found, and their options.
    compare_elements : callable, optional
        Says whether an output is right; by default whether it is close to the published one.
    helper : str, optional
        A backend for the operations that the first one does not take.

    Raises
    ------
    BackendUnavailableError
        If a backend cannot be used.
    """

    def __init__(
        self,
        backend_id: BackendId,
        options: RuntimeOptions | None = None,
        *,
        compare_elements: CompareElements | None = None,
        helper: BackendId | None = None,
    ) -> None:
        backends = list(dict.fromkeys(filter(None, (backend_id, helper))))
        self._manager = DeviceManager(replace(options or RuntimeOptions(), backends=backends))
        self._devices = [self._manager.get_device_of_backend(backend) for backend in backends]
        self._compare_elements = compare_elements or compare_published
        self._backend_id = backend_id
        self._options = options

    @cached_property
    def _subject(self) -> BackendUnderTest:
        """The backend, to ask it about a network."""
        return BackendUnderTest(
            self._backend_id, replace(self._options or RuntimeOptions(), backends=None)
        )

    def __call__(self, variation: Variation) -> CaseResult:
        """Judge one variation of an example.

        Returns
        -------
        CaseResult
            PASSED if the outputs are right and a layer ran on the backend; ELSEWHERE if none
            did; UNSUPPORTED if the device does not take an operation, with its name; FAILED too if
            anything but an ArmpyError comes out.
        """
        example = variation.example
        finding = _Finding()
        try:
            if variation.is_signed_twin:
                example = signed_twin(example)
                self._judge(Variation(example, variation.has_unknown_outputs), finding)
                self._compare_twins(variation.example, finding)
                self._require_signed(variation.example, finding)
            else:
                self._judge(variation, finding)
        except NnapiError as error:
            finding.outcome, finding.text = Outcome.FAILED, str(error)
            if example.expects_failure:
                finding.outcome, finding.text = Outcome.ELSEWHERE, REFUSED
        except Exception as error:  # noqa: BLE001 - whatever comes out is the result
            finding.outcome, finding.text = Outcome.FAILED, described(error, "armpy_nnapi")
        return CaseResult(
            variation.case,
            operation_of(example),
            data_type_of(example),
            finding.outcome,
            finding.text,
            finding.claimed,
            finding.ran,
        )

    def _judge(self, variation: Variation, finding: _Finding) -> None:
        """Build, compile, execute and compare; what came of it is noted as it comes."""
        example = variation.example
        if variation.has_unknown_outputs:
            example = example.with_unknown_outputs()
        model = Model.from_description(example.model, self._manager)
        # With a helper, the network shows what the backend takes beside other operations.
        missing = self._unsupported(model, example) if len(self._devices) == 1 else ""
        if missing and not example.expects_failure:
            finding.outcome, finding.text = Outcome.UNSUPPORTED, missing
            return
        compilation = Compilation.create_for_devices(model, self._devices)
        try:
            compilation.finish()
        except NnapiError as error:
            reason = self._reason_to_give_back(example, error)
            if reason is None:
                raise
            finding.outcome, finding.text = Outcome.ELSEWHERE, f"given back: {reason}"
            return
        execution = Execution(compilation)
        buffers = [self._buffer(variation.example, i) for i in range(len(example.outputs))]
        for position, array in enumerate(example.inputs):
            execution.set_input(position, array)
        for position, buffer in enumerate(buffers):
            execution.set_output(position, buffer)
        execution.compute()
        omitted = [position for position, array in enumerate(example.inputs) if array is None]
        self._note_layers(compilation.network(omitted), finding)
        if example.expects_failure:
            finding.outcome, finding.text = Outcome.FAILED, "it must fail, but did not"
            return
        problem = self._compare(variation.example, execution, buffers)
        if problem:
            finding.outcome, finding.text = Outcome.FAILED, problem

    def _compare_twins(self, example: Example, finding: _Finding) -> None:
        """Compare the outputs of an example's signed twin, which has run, with the example's."""
        if finding.outcome is Outcome.PASSED:
            problem = twin_difference(self._manager, self._devices, example)
            if problem:
                finding.outcome, finding.text = Outcome.FAILED, problem

    def _require_signed(self, example: Example, finding: _Finding) -> None:
        """Fail a device of the latest level that takes an example, and not its signed twin.

        References
        ----------
        NNAPI HAL 1.3: drivers that take TENSOR_QUANT8_ASYMM take the signed type as well.
        """
        if finding.outcome is not Outcome.UNSUPPORTED or example.expects_failure:
            return
        is_new = self._devices[0].level >= LATEST_FEATURE_LEVEL
        model = Model.from_description(example.model, self._manager)
        if is_new and not self._unsupported(model, example):
            finding.outcome = Outcome.FAILED
            finding.text += (
                f" for signed elements, and does for unsigned ones. Expected both of a device of "
                f"feature level {int(LATEST_FEATURE_LEVEL)}"
            )

    def _note_layers(self, network: LoadedNetwork, finding: _Finding) -> None:
        """Note which layers the backend took, and which ran on it."""
        placement, backend_id = network.placement, self._backend_id
        layers = [*network.graph.layers]
        for graph in nested_graphs(network.graph):
            layers += graph.layers
        given_back = layers_refused(placement, backend_id, ReasonCode.COMPILATION)
        unprepared = layers_refused(placement, backend_id, ReasonCode.PREPARATION)
        finding.ran = kinds_run(layers, placement, backend_id)
        left = {**given_back, **unprepared}
        finding.claimed = finding.ran + tuple(kind_of(x) for x in layers if x.name in left)
        if unprepared:
            (name, text), *_ = unprepared.items()
            text = f"{name} was said to be supported and could not be prepared: {text}"
            finding.outcome, finding.text = Outcome.FAILED, text
        elif not finding.ran:
            refusals = () if placement is None else placement.refusals
            refused = sorted({r.operation for r in refusals if r.backend == backend_id})
            finding.outcome, finding.text = Outcome.ELSEWHERE, ANSWERED_BY_OTHERS
            if given_back:
                finding.text = f"given back: {next(iter(given_back.values()))}"
            elif refused:
                finding.outcome = Outcome.UNSUPPORTED
                finding.text = f"{backend_id} does not take {', '.join(refused)}"

    def _reason_to_give_back(self, example: Example, error: NnapiError) -> str | None:
        """Why the backend gave back accepted layers; None if something else is wrong."""
        if not isinstance(error.__cause__, BackendCapabilityError):
            return None
        return self._subject.reason_to_give_back(lower_model(example.model, ()))

    def _unsupported(self, model: Model, example: Example) -> str:
        """Operations that are not taken; empty if the backend takes all of them."""
        device = self._devices[0]
        supported = self._manager.get_supported_operations_for_devices(model, [device])
        nodes = zip(example.model.main.operations, supported, strict=True)
        names = {_name(node.type) for node, is_supported in nodes if not is_supported}
        return f"{device.name} does not take {', '.join(sorted(names))}" if names else ""

    def _buffer(self, example: Example, position: int) -> Array:
        """Memory for one output, filled with a wrong answer."""
        operand = example.output_operand(position)
        expected = example.outputs[position]
        shape = example.output_shape(position)
        if shape is None:  # where it is not compared either: as much as any example needs
            shape = (1 << 16,) if expected is None else (max(expected.size, 1),)
        buffer = np.empty(shape, operand.data_type.dtype)
        buffer.reshape(-1).view(np.uint8)[...] = 0 if buffer.dtype == np.bool_ else 0x55
        return buffer

    def _compare(self, example: Example, execution: Execution, buffers: Sequence[Array]) -> str:
        """Describe the fault in the outputs; empty if there is none."""
        for position, (expected, buffer) in enumerate(zip(example.outputs, buffers, strict=True)):
            if expected is None:
                continue
            operand = example.output_operand(position)
            dimensions: tuple[int, ...] = ()
            if operand.is_tensor:
                dimensions = execution.get_output_operand_dimensions(position)
            shape = example.output_shape(position)
            if shape is not None and dimensions != shape:
                return f"output {position} has the dimensions {dimensions}. Expected {shape}"
            count = int(np.prod(dimensions, dtype=np.int64))
            if count != expected.size:
                return f"output {position} has {count} elements. Expected {expected.size}"
            actual = buffer.reshape(-1)[:count]
            problem = self._compare_elements(example, position, expected.reshape(-1), actual)
            if problem:
                return f"output {position}: {problem}"
        return ""


def operation_of(example: Example) -> str:
    """The operation that an example is about: the last that is not a mere copy of an input."""
    names = [name for name in example.operations if name != "ADD"] or list(example.operations)
    return names[-1] if names else "none"


def data_type_of(example: Example) -> str:
    """Type that stands for an example: of the first input of the operation that it is about."""
    main = example.model.main
    about = operation_of(example)
    for node in main.operations:
        if _name(node.type) == about:
            return next(
                (main.operands[i].type_name for i in node.inputs if main.operands[i].is_tensor),
                "none",
            )
    return "none"


def _name(code: int) -> str:
    """An operation's name."""
    return OperationCode(code).name


def tolerance_of(example: Example, operand: Operand) -> Tolerance:
    """Return how close an output of an example has to be.

    References
    ----------
    NNAPI CTS: float32 counts as float16 where the model is relaxed or has float16 operands;
    integers and quantised elements may be off by one, in MobileNets by three.
    """
    data_type = operand.data_type
    if data_type is DataType.BOOLEAN:
        return EXACT
    if data_type.is_float:
        halves = (OperandCode.FLOAT16, OperandCode.TENSOR_FLOAT16)
        has_halves = any(o.type in halves for o in example.model.main.operands)
        is_half = example.model.relaxed or has_halves
        return FLOAT16 if is_half else FLOAT32
    is_mobilenet = "mobilenet" in example.name and data_type is not DataType.SIGNED32
    return _MOBILENET if is_mobilenet else OFF_BY_ONE


def compare_published(example: Example, position: int, expected: Array, actual: Array) -> str:
    """Describe the fault in an output of a published example; empty if there is none.

    Parameters
    ----------
    position : int
        Position of the output.
    expected, actual : ndarray, of the output's type, shape (n,)
    """
    operand = example.output_operand(position)
    if example.multinomial_tolerance:
        return _compare_frequencies(example, actual)
    if expected.dtype.kind == "f" and np.isnan(expected).any():
        return "the expected elements are not all numbers"
    difference = compare(expected, actual, operand.info, tolerance_of(example, operand))
    return "" if difference is None else str(difference)


def _compare_frequencies(example: Example, samples: Array) -> str:
    """Describe the fault in samples of a multinomial distribution; empty if there is none."""
    logits = example.inputs[0]
    if logits is None:
        return "there are no logarithms of probabilities to compare with"
    samples = samples.reshape(len(logits), -1)
    wide = logits.astype(np.float64)
    weights = np.exp(wide - wide.max(axis=1, keepdims=True))
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    for row, (chances, drawn) in enumerate(zip(probabilities, samples, strict=True)):
        frequencies = np.bincount(drawn.astype(np.int64), minlength=chances.size) / drawn.size
        worst = float(np.abs(frequencies[: chances.size] - chances).max())
        if worst > example.multinomial_tolerance or frequencies.size > chances.size:
            return (
                f"frequencies in row {row} are off by {worst:.4g}. "
                f"Expected at most {example.multinomial_tolerance:g}"
            )
    return ""
