"""Calls of a loaded network: arrays by name or in order, each used in place where it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import ndarray

from armpy import backend
from armpy.errors import InvalidArgumentError
from armpy.execution import arrays as kinds

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.execution.calls.callee import Callee
    from armpy.execution.programs.program import BoundProgram
    from armpy.ops.operation import Array


def run_by_name(  # noqa: PLR0912 - each part as a function of its own takes 2 % of a call
    network: Callee,  # a `NetworkMemory` for an execution in it
    inputs: Mapping[str, object],  # every input
    # Arrays, tensors with ``__dlpack__`` or buffers to write outputs to; the ones missing are made.
    outputs: Mapping[str, object] | None = None,
    quantize_inputs: bool = False,  # whether real numbers are quantised for a quantised input
) -> dict[str, Array]:
    """Check inputs and outputs given by name, execute, and name the results.

    Raises InvalidArgumentError if an input is missing, not known, or does not fit; if an output
    array does not fit; MemoryLimitError if an input is larger than all that the network may take.

    Returns every output.
    """
    if type(inputs) is not dict:  # others may invent values
        inputs = as_dict("inputs", inputs)
    # Read once: another thread may call with other shapes, or close the network, at any time.
    prepared = network.latest
    arrays = []
    for slot in network.inputs if prepared is None else prepared.inputs:
        try:
            array = inputs[slot.name]
        except KeyError:
            raise wrong_names(network, inputs) from None
        if not slot.fits(array):
            array = slot.converted(array, quantize=quantize_inputs)
            prepared = None  # as its shape can be another
        arrays.append(array)
    if len(inputs) != len(arrays):
        raise wrong_names(network, inputs)
    if prepared is None:
        prepared = network.prepared_for(arrays)
    named: dict[str, Array | None] = {}
    if outputs is None:
        results = prepared.run(arrays)
        index = 0
        for target in prepared.outputs:  # zip takes longer
            named[target.name] = results[index]
            index += 1  # noqa: SIM113
        return named  # type: ignore[return-value]  # there is none missing
    if type(outputs) is not dict:
        outputs = as_dict("outputs", outputs)
    targets: list[Array | None] = []
    are_apart = True
    for target in prepared.outputs:
        try:
            argument = outputs[target.name]
        except KeyError:
            argument = None
        # As a rule an output fits and nothing overlaps; all else is looked at in `settle`.
        if not target.fits(argument):
            are_apart = False
        for array in arrays:  # two that own their memory overlap only if they are one
            if array is argument or not array.flags.owndata:
                are_apart = False
        targets.append(argument)
        named[target.name] = argument
    num_outputs = len(targets)
    if num_outputs > 1 and len({*map(id, targets)}) < num_outputs:
        are_apart = False
    if are_apart and len(outputs) == num_outputs:
        prepared.run(arrays, targets)
        return named  # type: ignore[return-value]  # every array was given
    prepared = settle(network, prepared, arrays, targets, outputs)
    return shown(outputs, dict(zip(named, prepared.run(arrays, targets), strict=True)))


def shown(given: Mapping[str, object], results: dict[str, Array]) -> dict[str, Array]:
    """Results by name, with imported memory for some of them."""
    imported = kinds.imported_tensor.ImportedTensor
    for name, target in given.items():
        if isinstance(target, (imported, backend.ExternalMemory)) or isinstance(
            results[name], imported
        ):
            results[name] = target  # type: ignore[assignment]  # stands for an array
    return results


def run_in_order(
    network: Callee, inputs: Sequence[object], quantize_inputs: bool = False
) -> list[Array]:
    """Check inputs given in order and execute; errors as for `run_by_name`.

    Returns every output, made anew.
    """
    prepared = network.latest
    slots = network.inputs if prepared is None else prepared.inputs
    if len(inputs) != len(slots):
        _refuse_names(inputs)
        raise InvalidArgumentError(
            "the number of inputs is wrong",
            where="model",
            expected=f"{len(slots)}: {network.describe_shapes()}",
            actual=str(len(inputs)),
            fix="Pass one array per input, in this order",
        )
    arrays = []
    index = 0
    for slot in slots:  # zip takes longer
        array = inputs[index]
        if not slot.fits(array):
            _refuse_names((array,))
            array = slot.converted(array, quantize=quantize_inputs)
            prepared = None  # as its shape can be another
        arrays.append(array)
        index += 1  # noqa: SIM113
    if prepared is None:
        prepared = network.prepared_for(arrays)
    return prepared.run(arrays)


def _refuse_names(inputs: Sequence[object]) -> None:
    """Refuse inputs by name where they are to be given in order."""
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        raise InvalidArgumentError(
            "the inputs are given by name",
            expected="one array per input, in order",
            actual=type(inputs[0]).__name__,
            fix="Call model.run to give inputs by name",
        )


def as_dict(what: str, named: object) -> dict[str, Any]:  # Any: whatever the caller gives
    """Arrays that are given by name in whatever kind of mapping."""
    if not isinstance(named, Mapping):
        of_inputs = " as the first argument, or call the model itself with inputs in order"
        raise InvalidArgumentError(
            f"the {what} are not given by name",
            expected="a mapping of names to arrays",
            actual=type(named).__name__,
            fix="Pass {'NAME': array}" + (of_inputs if what == "inputs" else ""),
        )
    return dict(named)


def wrong_names(network: Callee, inputs: Mapping[str, object]) -> InvalidArgumentError:
    """The error for inputs that are missing or not known."""
    names = [value.name for value in network.graph.inputs]
    missing = [name for name in names if name not in inputs]
    extra = [str(name) for name in inputs if name not in names]
    problems = ["missing " + ", ".join(map(repr, missing))] if missing else []
    problems += ["unknown " + ", ".join(map(repr, extra))] if extra else []
    return InvalidArgumentError(
        "; ".join(problems),
        where="inputs",
        expected=network.describe_shapes(),
        actual=", ".join(map(repr, inputs)) or "no inputs",
        fix=f"Pass {{{names[0]!r}: array{', ...' * (len(names) > 1)}}}" if names else "Pass {}",
    )


def settle(
    network: Callee,
    prepared: BoundProgram,
    inputs: list[Array],
    targets: list[Array | None],
    outputs: Mapping[str, object],
) -> BoundProgram:
    """Check output arrays, also against each other, and copy the inputs that they overlap.

    Returns the one to run: `prepared`, or another one if outputs are imported.
    """
    written: list[Array] = []
    read = inputs
    imported = kinds.imported_tensor.ImportedTensor
    if any(isinstance(target, imported) for target in targets):
        # Some are plain arrays by now, of imported tensors that no copy may replace.
        by_array = {id(tensor.host_array): tensor for tensor in network.imported}
        read = [by_array.get(id(array), array) for array in inputs]  # type: ignore[misc]
    for index, slot in enumerate(prepared.outputs):
        if targets[index] is None:
            continue
        array = targets[index] = slot.converted(targets[index])
        if any(_may_overlap(array, other) for other in written):
            raise InvalidArgumentError(
                "two of the output arrays overlap", actual=", ".join(map(repr, outputs))
            )
        written.append(array)
    if len(written) != len(outputs):
        _check_output_names(network, outputs)
    # A step may write an output before another step has read the last of an input.
    for index, array in enumerate(read):
        if any(_may_overlap(array, other) for other in written):
            if isinstance(array, imported):
                raise InvalidArgumentError(
                    "an output overlaps an imported input",
                    where=f"input '{array.name}'",
                    fix="Give the output other memory",
                )
            inputs[index] = array.copy()
    if any(map(kinds.imported_tensor.stands_for_array, targets)):
        return network.prepared_for(inputs, targets)
    return prepared


def _may_overlap(first: Array, second: Array) -> bool:
    """Return whether two arrays or imported tensors may share memory."""
    if not isinstance(first, ndarray) or not isinstance(second, ndarray):
        return kinds.imported_tensor.overlap(first, second)
    return kinds.conversion.may_overlap(first, second)


def _check_output_names(network: Callee, outputs: Mapping[str, object]) -> None:
    """Check that the network has the outputs that arrays are given for."""
    names = network.graph.output_names
    unknown = [name for name in outputs if name not in names]
    if unknown:
        raise InvalidArgumentError(
            "the network has no such output",
            expected=", ".join(names),
            actual=", ".join(map(repr, unknown)),
        )


def read_inputs(
    network: Callee, inputs: Mapping[str, object], quantize_inputs: bool = False
) -> list[Array]:
    """Arrays, in order, that inputs given by name are or become; errors as for `run_by_name`."""
    named = as_dict("inputs", inputs)
    slots = network.inputs
    if named.keys() != {slot.name for slot in slots}:
        raise wrong_names(network, named)
    return [slot.converted(named[slot.name], quantize=quantize_inputs) for slot in slots]


class CheckedCall(NamedTuple):
    """A call whose arrays have been checked."""

    prepared: BoundProgram
    sources: list[Array]  # inputs, which no output overlaps
    copies: list[tuple[Array, Array]]  # those of the sources that are copies, and what of
    targets: list[Array | None]  # the caller's arrays for outputs, or imported tensors
    given: Mapping[str, object]  # what the caller has given for outputs

    @property
    def writes_imported(self) -> bool:
        """Return whether outputs are written where backends have imported them."""
        imported = kinds.imported_tensor.ImportedTensor
        return any(isinstance(target, imported) for target in self.targets)

    @property
    def names(self) -> list[str]:
        """Those of the outputs."""
        return [slot.name for slot in self.prepared.outputs]

    def write(self, made: Sequence[Array]) -> list[Array]:
        """Copy results into the caller's arrays; the results in these where there are any."""
        results = []
        for slot, array, target in zip(self.prepared.outputs, made, self.targets, strict=True):
            if target is not None:
                slot.check_result(array, target)
                target[...] = array
            results.append(array if target is None else target)
        return results


def checked_call(
    network: Callee, arrays: Sequence[Array], outputs: Mapping[str, object] | None
) -> CheckedCall:
    """Check outputs given by name for inputs that have been read; errors as for `run_by_name`."""
    # A list of its own, in which `prepared_for` replaces imported tensors by their arrays.
    read = [*arrays]
    prepared = network.prepared_for(read)  # which looks into imported tensors
    by_name = {} if outputs is None else as_dict("outputs", outputs)
    targets: list[Array | None] = [by_name.get(slot.name) for slot in prepared.outputs]
    sources = [*read]
    prepared = settle(network, prepared, sources, targets, by_name)
    copies = [(s, a) for s, a in zip(sources, read, strict=True) if s is not a]
    return CheckedCall(prepared, sources, copies, targets, by_name)
