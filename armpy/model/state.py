"""States: conversations of decoders, whose past inputs are filled from their present outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from armpy.core.arguments import check_instance, check_whole
from armpy.errors import InvalidArgumentError, ParserError, listed, without_memory
from armpy.execution.calls.real_numbers import RealOutputs
from armpy.execution.calls.run import as_dict, wrong_names
from armpy.store.owned_files import replacing
from armpy.tensor import shapes_agree

if TYPE_CHECKING:
    from armpy.execution.arrays.slots import InputSlot, OutputSlot
    from armpy.execution.arrays.tensor_spec import TensorSpec
    from armpy.ops.operation import Array

_MOST_POSITIONS = 2**31 - 1
"""Decoders take positions as int32."""

_UNREADABLE = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of contents that are damaged."""


class State:
    """A conversation with a decoder, which has past inputs and present outputs.

    It is made by `armpy.Model.state`.

    A step that fails changes nothing, but for shared buffers, which it may have written to. One
    thread at a time can use a state: another one gets an error and does not wait, as each step
    depends on the one before.

    Parameters
    ----------
    pairs : mapping of str to str, optional
        Present outputs by past input; by default those of the same name, or of the names that
        exporters give them (``past_key_values.0.key`` and ``present.0.key``).
    limit : int, optional
        Most positions.
    share_buffers : bool
        Whether pasts have room for `limit` positions from the first step on, as with ONNX Runtime's
        ``past_present_share_buffer``; they need not be copied in each step then.

    Attributes
    ----------
    length : int
        Number of positions: the size of the axis on which presents grow; where none grows, the sum
        of the sizes of axis 1 of the first other input.
    """

    def __init__(
        self,
        model: Any,  # Any: an `armpy.Model`, which makes states
        pairs: Mapping[str, str] | None,
        limit: int | None,
        share_buffers: bool,
    ) -> None:
        self.model = model
        self.pairs = _pairs_of(model, pairs)
        if limit is not None or share_buffers:
            limit = check_whole(limit, "Model.state.limit", least=1, most=_MOST_POSITIONS)
        self.limit, self._room = limit, limit or 0 if share_buffers else 0
        self.length = 0
        self._inputs = {output: name for name, output in self.pairs.items()}
        self._numbers = {spec.name: number for number, spec in enumerate(model.inputs)}
        self._others = [spec.name for spec in model.inputs if spec.name not in self.pairs]
        self._past: dict[str, Array] = {}  # empty before the first step
        # Flat memory by input: of no past, and of pasts that no other state has.
        self._spare: dict[str, Array] = {}
        self._held: dict[str, Array] = {}
        self._shown = RealOutputs.of(model.outputs, None, dequantizes=model.dequantize_outputs)
        self._converts = bool(self._shown.infos or self._shown.small)
        # As in `armpy.Execution`: the caller that takes it out uses the state.
        self._turn: list[None] = [None]
        # The program of the last step, if no present was larger, and the targets of its steps.
        self._steady: object = None
        self._turns: list[tuple[list[Array | None], dict[str, Array]]] = []
        self.is_closed = False

    def run(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Run one step; returns the outputs that are not presents, by name.

        `inputs` has every input that is not a past; a past in it replaces the state's own. Errors
        are those of `armpy.Model.run`, and InvalidArgumentError if the state would exceed its
        limit, is closed, or in use by another thread.
        """
        try:  # as in `_taken`, which takes longer
            del self._turn[0]
        except IndexError:
            raise self._not_free() from None
        try:
            return self._step(inputs if type(inputs) is dict else as_dict("inputs", inputs))
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause
        finally:
            self._turn.append(None)
            if self.is_closed:
                self.close()

    def __call__(self, *arrays: object) -> Array | tuple[Array, ...]:
        """Run one step with the other inputs in order; returns the output, or a tuple."""
        if len(self._others) != len(arrays):
            expected = ", ".join(self._others)
            raise InvalidArgumentError(
                "the number of inputs is wrong", expected=expected, actual=str(len(arrays))
            )
        results = [*self.run(dict(zip(self._others, arrays, strict=True))).values()]
        return results[0] if len(results) == 1 else tuple(results)

    def fork(self) -> State:
        """Make another state with the same contents, which goes on by itself."""
        with self._taken():
            fork = State(self.model, self.pairs, self.limit, bool(self._room))
            fork.length, fork._past = self.length, {**self._past}
            self._held, self._steady = {}, None  # both read it, so that neither writes to it
            return fork

    def save(self, path: str | bytes | os.PathLike[str]) -> None:
        """Write the contents to a file, for `load`; it appears whole, or not at all.

        Raises InvalidArgumentError for pasts of strings, which have no file format, and if `path`
        is not a path.
        """
        name = _file_name(path)
        with self._taken():
            strings = [name for name, array in self._past.items() if array.dtype.hasobject]
            if strings:
                raise InvalidArgumentError(
                    "pasts of strings cannot be saved",
                    where="State.save",
                    expected="pasts of numbers",
                    actual=f"strings in {listed(strings)}",
                    fix="Go on with fork(), or save your inputs and run them again",
                )
            self._write(name)

    def _write(self, path: str) -> None:
        """Write the contents to a file."""
        with replacing(path) as file:
            table = [[name, array.shape] for name, array in self._past.items()]
            file.write(json.dumps({"state": 1, "length": self.length, "pasts": table}).encode())
            file.write(b"\n")
            for array in self._past.values():
                file.write(array.reshape(-1).view(np.uint8).data)

    def load(self, path: str | bytes | os.PathLike[str]) -> None:
        """Take the contents that a state of the same model has saved; ParserError if it cannot.

        Raises InvalidArgumentError if `path` is not a path.
        """
        with self._taken():
            name = _file_name(path)
            try:
                with open(name, "rb") as file:
                    about, contents = json.loads(file.readline()), file.read()
                length, past = self._read(about, contents)
            except (*_UNREADABLE, OSError) as error:
                raise ParserError(
                    f"the state cannot be read: {error}",
                    where=name,
                    expected=f"a saved state with {listed([*self.pairs])}",
                    fix="Save it again with this model",
                ) from error
            self.length, self._past, self._held, self._steady = length, past, {}, None

    def close(self) -> None:
        """Free its memory, after a step that is under way."""
        self.is_closed = True
        try:
            del self._turn[0]
        except IndexError:
            return  # what is under way closes it when it ends
        self._past, self._spare, self._held, self._steady, self._turns = {}, {}, {}, None, []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """Refuse other threads."""
        try:
            del self._turn[0]
        except IndexError:
            raise self._not_free() from None
        try:
            yield
        finally:
            self._turn.append(None)
            if self.is_closed:
                self.close()

    def _not_free(self) -> InvalidArgumentError:
        """Why it cannot be used now."""
        failed = "the state is closed" if self.is_closed else "the state is in use already"
        fix = "Make one with Model.state" if self.is_closed else "Use one state per thread"
        return InvalidArgumentError(failed, where="state", fix=fix)

    def _step(self, inputs: dict[str, Any]) -> dict[str, Array]:  # Any: whatever the caller gives
        """Run one step, and only then replace the pasts."""
        model = self.model
        network = model.handle.current or model.handle.loaded  # the latter raises
        prepared = network.latest
        slots = network.inputs if prepared is None else prepared.inputs
        named = {**self._past, **inputs} if self._past else self._first(inputs, network.inputs)
        # Whether the shapes are those of the last step, which left presents as large as pasts.
        is_steady = prepared is not None and prepared is self._steady
        arrays = []
        if len(named) != len(slots):
            raise wrong_names(network, named)
        for slot in slots:
            try:
                array = named[slot.name]
            except KeyError:
                raise wrong_names(network, named) from None
            if slot.name in inputs and not slot.fits(array):
                array = named[slot.name] = slot.converted(array, quantize=model.quantize_inputs)
                is_steady = False
            arrays.append(array)
        if not is_steady:
            prepared = network.prepared_for(arrays)
        length = self._length_after(() if is_steady else prepared.outputs, named)
        if self.limit is not None and length > self.limit:
            raise InvalidArgumentError(
                "the state is full",
                where="state",
                expected=f"a length of at most {self.limit} (limit)",
                actual=f"a length of {self.length}, and {length - self.length} more",
                fix="Make a state with a larger limit",
            )
        if is_steady and len(self._turns) > 1:
            targets, memory = self._turns.pop(0)
        else:
            sizes = getattr(prepared.program, "sizes", None)
            in_place = frozenset() if sizes is None else sizes.in_place
            targets, memory = self._targets(prepared.outputs, named, in_place)
        results = prepared.run(arrays, [*targets])
        outputs, past = {}, {}
        for output, array in zip(prepared.outputs, results, strict=True):
            name = self._inputs.get(output.name)
            if name is None:
                outputs[output.name] = array
            else:
                past[name] = array
        self.length, self._past = length, past
        before = self._held if is_steady else {**self._spare, **self._held}
        self._spare = {n: flat for n, flat in before.items() if flat is not memory.get(n)}
        self._held = memory
        if not is_steady:
            changes = (past[name].shape != named[name].shape for name in past)
            self._steady, self._turns = None if any(changes) else prepared, []
        self._turns.append((targets, memory))
        return self._shown.finish(outputs) if self._converts else outputs

    def _length_after(self, outputs: Sequence[OutputSlot], named: Mapping[str, Array]) -> int:
        """The length after a step with some arrays."""
        lengths = []
        for output in outputs:
            if output.name in self._inputs:
                before, after = named[self._inputs[output.name]].shape, output.info.shape or ()
                if before != after:
                    lengths += [b for a, b in zip(before, after, strict=False) if a != b and b]
        if lengths:
            return max(lengths)
        counted = named[self._others[0]].shape[1:2] if self._others else ()
        return self.length + (counted[0] if counted else 1)

    def _targets(
        self,
        outputs: Sequence[OutputSlot],
        named: Mapping[str, Array],
        in_place: Set[tuple[int, int]],
    ) -> tuple[list[Array | None], dict[str, Array]]:
        """Arrays for a step's outputs, and the flat memory of the presents by input."""
        targets: list[Array | None] = []
        memory: dict[str, Array] = {}
        for number, output in enumerate(outputs):
            name, info = self._inputs.get(output.name), output.info
            target = None
            is_own = name in self._held and named[name] is self._past[name]
            if name is not None and is_own and (self._numbers[name], number) in in_place:
                target, memory[name] = named[name], self._held[name]
                self._spare.pop(name, None)
            elif name is not None and info.is_fully_shaped:
                size, flat = prod(info.known_shape), self._spare.get(name)
                if flat is None or flat.size < size:
                    # With room for next steps, as writing to new memory takes longer.
                    more = 0 if named[name].shape == info.shape else size // 4
                    flat = np.empty(size + more, info.data_type.dtype)
                memory[name] = flat
                target = flat[:size].reshape(info.known_shape)
            targets.append(target)
        return targets, memory

    def _first(
        self,
        inputs: dict[str, Any],  # Any: as above
        slots: Sequence[InputSlot],
    ) -> dict[str, Any]:
        """Inputs of the first step, whose pasts are zeros, of no positions or with all the room.

        The others are converted, which checks them: pasts take sizes from them.
        """
        quantize = self.model.quantize_inputs
        converted = {
            slot.name: slot.converted(inputs[slot.name], quantize=quantize)
            for slot in slots
            if slot.name in inputs
        }
        about = self.model.metadata.inputs
        dims_of = {name: about[name].dimension_names for name in about}
        sizes: dict[str, int] = {}
        for name, array in converted.items():
            sizes.update(zip(dims_of.get(name, ()), np.shape(array), strict=False))
        past = {}
        for spec in self.model.inputs:
            if spec.name in self.pairs:
                dims = spec.shape or ()
                names = dims_of.get(spec.name) or [""] * len(dims)
                other = [1, *[self._room] * len(dims)]  # where the file does not name a dimension
                shape = [
                    sizes.get(name, size) if dim is None else dim
                    for dim, name, size in zip(dims, names, other, strict=False)
                ]
                past[spec.name] = spec.data_type.zeros(shape)
        return {**past, **inputs, **converted}

    def _read(self, about: Any, contents: bytes) -> tuple[int, dict[str, Array]]:  # Any: of a file
        """The contents of a file; ValueError and the like if they do not fit the model."""
        specs = {spec.name: spec.info for spec in self.model.inputs if spec.name in self.pairs}
        past: dict[str, Array] = {}
        at = 0
        for name, shape in about["pasts"]:
            dtype = specs[name].data_type.dtype
            if name in past:
                raise ValueError(f"'{name}' stands twice")
            past[name] = np.ndarray(shape, dtype, contents, at).copy()
            at += past[name].nbytes
            if not shapes_agree(specs[name].shape, past[name].shape):
                raise ValueError(f"'{name}' has the shape {past[name].shape}")
        if about["state"] != 1 or at != len(contents) or (past and past.keys() != specs.keys()):
            raise ValueError("it is of another model, or damaged")
        most = (self.limit or _MOST_POSITIONS) if past else 0
        return check_whole(about["length"], "length", most=most), past


def _pairs_of(
    model: Any,  # Any: an `armpy.Model`
    chosen: Mapping[str, str] | None,
) -> dict[str, str]:
    """Past inputs with their present outputs: given, of the same name, or as the metadata says."""
    inputs, outputs = ({spec.name: spec for spec in s} for s in (model.inputs, model.outputs))
    if chosen is not None:
        # Only names can be pairs, which are counted below: others may have no hash.
        are_names = isinstance(chosen, Mapping) and all(isinstance(n, str) for n in chosen.values())
        pairs = dict(chosen) if are_names else {}
    else:
        about = model.metadata.inputs
        names = {name: about[name].properties.get("present", name) for name in about}
        pairs = {name: names.get(name, name) for name in inputs}
        pairs = {name: after for name, after in pairs.items() if after in outputs}
    if (
        pairs
        and len({*pairs.values()}) == len(pairs)
        and all(_follows(inputs.get(name), outputs.get(after)) for name, after in pairs.items())
    ):
        return pairs
    fitting = [(a, b) for a in inputs for b in outputs if _follows(inputs[a], outputs[b])]
    raise InvalidArgumentError(
        "the pairs of past inputs and present outputs do not fit, or are not known by names",
        where="Model.state",
        expected=f"of one type and shape: {listed([f'{a}: {b}' for a, b in fitting], 8)}",
        actual=str(pairs if chosen is None else chosen),
        fix="Pass pairs={input: output}, or load a model that has past inputs",
    )


def _follows(before: TensorSpec | None, after: TensorSpec | None) -> bool:
    """Return whether an output can be an input of the next step."""
    return (
        before is not None
        and after is not None
        and (before.data_type, before.quantization) == (after.data_type, after.quantization)
        and shapes_agree(before.shape, after.shape)
    )


def _file_name(path: str | bytes | os.PathLike[str]) -> str:
    """A path as text; a number, which `open` takes for a descriptor and closes, is refused."""
    check_instance(path, "path", str, bytes, os.PathLike, fix="Pass the path of a file")
    return os.fsdecode(path)
