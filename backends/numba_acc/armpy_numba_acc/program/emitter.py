"""Collects a region's commands while its layers are lowered."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from typing import TypeAlias

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import Size, computed, is_traced
from armpy.errors import BackendError
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.alignment import ALIGNMENT_BYTES, address_of, aligned
from armpy_numba_acc.machine.call import Call, Word
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.packing.origins import Origin, PackedArray, views_of
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.constant_pool import MIN_SHARED_BYTES, SLACK_BYTES, share_bytes
from armpy_numba_acc.program.fusion import Fusion
from armpy_numba_acc.program.limits import LayerUsage
from armpy_numba_acc.program.memory import Join, plan_arena, plan_places
from armpy_numba_acc.program.program import CommandInfo, Program
from armpy_numba_acc.program.resizable import ResizableProgram
from armpy_numba_acc.program.views import Views

LowerGraph: TypeAlias = Callable[["Emitter", SubgraphView, Mapping[Value, Buffer], str], "Emitter"]
"""Adds to an emitter's program the commands of a graph whose inputs are in some buffers; with where
it is run, for people. Gives what knows where the graph's outputs are."""


def no_graphs(
    emit: Emitter, view: SubgraphView, places: Mapping[Value, Buffer], inside: str
) -> Emitter:
    """Refuse to add a graph's commands: the program is of one graph alone.

    Raises
    ------
    BackendError
        Always.
    """
    raise BackendError(
        "a graph lies within the layers of a program that has one graph alone",
        where=f"NumbaAcc / {inside}",
    )


TOP_BIT = 0x80
"""What bytes of int8 tensors are changed by inside a region."""


@dataclass(frozen=True, slots=True)
class _Command:
    """One call of a kernel."""

    kernel: Kernel
    words: tuple[Word, ...]
    info: CommandInfo


@dataclass(frozen=True, eq=False, slots=True)
class Arrangement:
    """Arrangement of a region: forms of its tensors, and layers that are computed together."""

    # What layers compute together with those after them.
    fusions: Mapping[Layer, Fusion] = field(default_factory=dict)
    # float32 tensors that are kept as bfloat16; not all layers can read and write them.
    bfloat16: Collection[Value] = ()
    # Tensors that are written directly into the one that they become a part of.
    joins: Mapping[Value, Join] = field(default_factory=dict)
    # Tensors that are read and written where they lie in others, and are in no memory else.
    views: Views = field(default_factory=Views)


@dataclass(eq=False)
class Emitter:
    """The program under construction.

    int8 tensors are kept in the arena with their top bit flipped, so that kernels see
    unsigned elements only: `zero_point` of such a tensor is 128 more than the graph says.
    Constants are handed to lowerings as the graph has them.
    """

    view: SubgraphView  # the region
    choices: Choices  # decides where there are several ways, and knows the instruction set
    num_threads: int = 1
    arrangement: Arrangement = field(default_factory=Arrangement)
    # Adds the commands of a graph that a layer runs; see `LowerGraph`.
    lower_graph: LowerGraph = no_graphs
    # Sees to it that no layer takes far more than its tensors do.
    counter: LayerUsage = field(default_factory=LayerUsage)
    _commands: list[_Command] = field(default_factory=list)
    _buffers: list[Buffer] = field(default_factory=list)
    _constants: list[tuple[Buffer, Array]] = field(default_factory=list)
    _origins: list[tuple[Buffer, Origin]] = field(default_factory=list)
    _tables: list[tuple[Buffer, list[int]]] = field(default_factory=list)
    _places: dict[Value, Buffer] = field(default_factory=dict)
    _converted: dict[Value, Buffer] = field(default_factory=dict)
    _inside: str = ""
    _owner: tuple[str, str] = ("", "")
    _owners: dict[Layer, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tensors = {
            value: Buffer(Space.TENSORS, value.info.size_bytes, number)
            for number, value in enumerate((*self.view.inputs, *self.view.outputs))
        }
        self._given, self._wanted = set(self.view.inputs), set(self.view.outputs)
        self._read = {value for layer in self.view.layers for value in layer.inputs}
        read = [value for value in (*self._read, *self._wanted) if value is not None]
        self._is_traced = any(is_traced(*value.info.known_shape) for value in read)

    def nested(
        self,
        view: SubgraphView,
        places: Mapping[Value, Buffer],
        inside: str,
        arrangement: Arrangement,
    ) -> Emitter:
        """Return a function that adds the commands of a layer's graph to the same program.

        Its outputs are in the arena, or wherever `source` says. Nothing is chosen by what
        was measured.

        Parameters
        ----------
        view
            The graph.
        places
            Where its inputs are, as they are kept.
        inside
            Where it is run, for people.
        """
        choices = Choices(self.isa, self.choices.model)
        emitter = Emitter(view, choices, self.num_threads, arrangement, self.lower_graph)
        emitter._commands, emitter._buffers = self._commands, self._buffers
        emitter._constants, emitter._tables = self._constants, self._tables
        emitter._origins = self._origins
        emitter._places = dict(places)
        emitter._given = emitter._wanted = set()
        emitter._inside = f"{self._inside}{inside}/"
        return emitter

    def of_one_image(
        self,
        view: SubgraphView,
        inputs: Mapping[Value, Value],
        outputs: Mapping[Value, Value],
        arrangement: Arrangement,
    ) -> Emitter:
        """Return a function that adds commands for the first image of a batch; see `repeat`.

        Parameters
        ----------
        view
            The layers, of one image.
        inputs, outputs
            The tensors that its inputs are a part of, or are, and those that its outputs become
            a part of.
        """
        emitter = self.nested(view, {}, "", arrangement)
        emitter._inside = self._inside
        emitter._given = set()
        for value_of_one, value in inputs.items():
            part = self.batch(value).part(0, value_of_one.info.size_bytes)
            if value in self._given and value not in self._places:
                emitter._given.add(value_of_one)
                emitter._tensors[value_of_one] = part
            else:
                emitter._places[value_of_one] = part
        for value_of_one, value in outputs.items():
            emitter._places[value_of_one] = self.target(value).part(0, value_of_one.info.size_bytes)
        return emitter

    def batch(self, value: Value) -> Buffer:
        """Return the images of a batch: as the caller stores it, if no layer has read it."""
        is_new = value in self._given and value not in self._places
        return self._tensors[value] if is_new else self.source(value)

    def repeat(
        self, first: int, scratch: Collection[Buffer], steps: Mapping[Buffer, int], times: int
    ) -> None:
        """Run the last commands for the other images of a batch as well.

        Parameters
        ----------
        first
            Number of the first one of them.
        scratch
            Memory that each image uses anew.
        steps
            Bytes from one image to the next, for each buffer.
        times
            Images in all.
        """
        commands = self._commands[first:]
        for image in range(1, times):
            for command in commands:
                words = tuple(_moved(word, steps, image) for word in command.words)
                for word in words:
                    buffer = _buffer_of(word)
                    if buffer is not None and buffer.root not in scratch:
                        buffer.touch(len(self._commands))
                self._commands.append(_Command(command.kernel, words, command.info))
        for buffer in steps:
            # The first image's outputs must outlive the others' working memory.
            buffer.touch(first)

    def scratch_since(self, number: int) -> frozenset[Buffer]:
        """Memory in the arena that was asked for after the first `number` pieces of it."""
        return frozenset(self._buffers[number:])

    @property
    def num_buffers(self) -> int:
        """Pieces of the arena so far."""
        return len(self._buffers)

    @property
    def num_commands(self) -> int:
        """Commands so far."""
        return len(self._commands)

    @property
    def isa(self) -> Isa:
        """The instruction set."""
        return self.choices.isa

    # Buffers

    def given(self, value: Value) -> Buffer:
        """Return the caller's place of an input or an output, as the caller stores it."""
        return self._tensors[value]

    def source(self, value: Value) -> Buffer:
        """Return where a layer reads a tensor, as the graph says that it is stored."""
        return (
            self._converted_once(value)
            if value in self.arrangement.bfloat16
            else self.source_as_kept(value)
        )

    def source_as_bfloat16(self, value: Value) -> Buffer:
        """Return the place of float32 elements that a layer reads as bfloat16."""
        return (
            self.source_as_kept(value)
            if value in self.arrangement.bfloat16
            else self._converted_once(value)
        )

    def kind_of(self, value: Value) -> str:
        """Return how float32 elements are kept: ``f32`` or ``bf16``."""
        return "bf16" if value in self.arrangement.bfloat16 else "f32"

    def _converted_once(self, value: Value) -> Buffer:
        """A copy of float32 elements of the other kind than they are kept as."""
        if value not in self._converted:
            source, count = self.source_as_kept(value), value.info.num_elements
            formats = ("bf16", "f32") if value in self.arrangement.bfloat16 else ("f32", "bf16")
            copy = self.scratch(count * FORMAT_BYTES[formats[1]])
            call = calls.elementwise_in_order("x0", formats, source, copy, count)
            self(call, f"convert {value.name}", part="convert")
            self._converted[value] = copy
        return self._converted[value]

    def source_as_kept(self, value: Value) -> Buffer:
        """Return where a layer reads a tensor as it is kept, see `kind_of`."""
        if value not in self._places:
            self._places[value] = self._bring_in(value)
        return self._places[value]

    def _bring_in(self, value: Value) -> Buffer:
        """The buffer of a constant or an input that is read for the first time."""
        if value.data is not None:
            data = _unsigned(value.data, value.info.data_type)
            add = 0 if data is value.data else -TOP_BIT
            return self.packed(PackedArray(data, (Origin.plain(value.data, add),)))
        source = self._tensors[value]
        if value.info.data_type is not DataType.QASYMM_S8:
            return source
        unsigned = self.scratch(value.info.size_bytes)
        call = calls.Flip(source, unsigned, source.size_bytes)
        self(call, f"flip {value.name}", part="flip")
        return unsigned

    def flipped_source(self, value: Value) -> tuple[Buffer, int]:
        """Return the place of a tensor that a layer can flip itself, and the bits: `TOP_BIT` or 0.

        It may be the caller's.
        """
        is_given = value in self._given and value.info.data_type is DataType.QASYMM_S8
        if is_given and value not in self._places:
            return self._tensors[value], TOP_BIT
        return self.source(value), 0

    def flipped_target(self, value: Value) -> tuple[Buffer, int]:
        """The same for a tensor that a layer writes."""
        is_wanted = value in self._wanted and value.info.data_type is DataType.QASYMM_S8
        if is_wanted and value not in self._read and value not in self.arrangement.joins:
            self._places[value] = self._tensors[value]
            return self._tensors[value], TOP_BIT
        return self.target(value), 0

    def target(self, value: Value) -> Buffer:
        """Return the place where a layer writes a tensor; nothing after it may be written."""
        if value not in self._places:
            self._places[value] = self._new_target(value)
        return self._places[value]

    def _new_target(self, value: Value) -> Buffer:
        """Memory for a tensor: the caller's, a part of another tensor's, or the arena's."""
        if value in self.arrangement.joins:
            join = self.arrangement.joins[value]
            return self.target(join.whole).part(join.offset_bytes, value.info.size_bytes)
        if value in self._wanted and value.info.data_type is not DataType.QASYMM_S8:
            return self._tensors[value]
        is_short = value in self.arrangement.bfloat16
        return self.scratch(value.info.size_bytes // (2 if is_short else 1))

    def alias(self, value: Value, source: Value) -> None:
        """Say that a tensor has the same bytes as another one."""
        self.place(value, self.source(source))

    def place(self, value: Value, buffer: Buffer) -> None:
        """Say that a tensor's bytes are in a buffer; they are copied only for the caller."""
        size = value.info.size_bytes
        is_flipped = value.info.data_type is DataType.QASYMM_S8
        if value in self._wanted and not is_flipped:
            call = calls.Copy(buffer, self.target(value), size)
            self(call, f"copy {value.name}", part="copy")
        else:
            self._places[value] = buffer

    def place_part(self, value: Value, whole: Value, offset_bytes: int) -> None:
        """Say that a tensor's bytes are those of another one from an offset on."""
        self.place(value, self.source(whole).part(offset_bytes, value.info.size_bytes))

    def scratch(self, size_bytes: int) -> Buffer:
        """New memory in the arena, from the first command that touches it to the last."""
        self.counter.add_bytes(size_bytes)
        buffer = Buffer(Space.ARENA, size_bytes + SLACK_BYTES)
        self._buffers.append(buffer)
        return buffer

    def constant(self, data: Array) -> Buffer:
        """Memory that holds an array, as it is stored."""
        return self.packed(PackedArray(data))

    def packed(self, packed: PackedArray) -> Buffer:
        """Memory that holds packed elements, of which some may be a constant's."""
        self.counter.add_bytes(packed.array.nbytes)
        array = np.ascontiguousarray(packed.array)
        if self._is_traced and array.nbytes >= MIN_SHARED_BYTES:
            array = share_bytes(array)  # at once, or all would be there twice for a while
        buffer = Buffer(Space.CONSTANTS, array.nbytes)
        self._constants.append((buffer, array))
        self._origins += [(buffer, origin) for origin in packed.origins]
        return buffer

    def table(self, rows: Sequence[Sequence[int]]) -> Buffer:
        """Memory that holds rows of 64-bit numbers, one after the other."""
        numbers = [number for row in rows for number in row]
        if not is_traced(*numbers):
            return self.constant(np.array(rows, np.int64))
        self.counter.add_bytes(8 * len(numbers))
        buffer = Buffer(Space.TABLES, 8 * len(numbers))
        self._tables.append((buffer, numbers))
        return buffer

    def failure(self) -> Buffer:
        """Return where a kernel says that an index is out of range."""
        return Buffer(Space.FAILURE, 0)

    def control(self) -> Buffer:
        """Return the control words of loops, see `armpy_numba_acc.machine.execution`."""
        return Buffer(Space.CONTROL, 0)

    # Commands

    def begin(self, layers: Sequence[Layer]) -> None:
        """Say which layers the following commands compute together."""
        self._owner = layers[0].operation.name, " + ".join(layer.name for layer in layers)
        self._owners.update(dict.fromkeys(layers, self._owner))
        self.choices.begin(layers)
        for dim in _dims(layers[0]) if self._is_traced else ():
            if isinstance(dim, Size):
                dim.trace.layer = layers[0].where

    def __call__(
        self,
        call: Call,
        label: str,
        *,
        num_operations: int = 0,
        num_bytes: int | None = None,
        num_pieces: int = 1,
        part: str = "",
    ) -> None:
        """Add a call of a kernel.

        Parameters
        ----------
        call
            The record of the kernel, filled.
        label
            A description, for people.
        num_bytes
            That it reads and writes; all of its buffers if left out.
        num_pieces
            Number of pieces of each thread's share: the kernel receives the number of threads
            multiplied by it. Executions can be stopped in between.
        part
            Its part of the layers' work, if that is not their main part.
        """
        self.counter.add_command()
        number, kernel, words = len(self._commands), call.kernel, call.words
        touched = [buffer for word in words if (buffer := _buffer_of(word)) is not None]
        for buffer in touched:
            buffer.touch(number)
        if num_bytes is None:
            num_bytes = sum(buffer.size_bytes for buffer in touched)
        label = f"{self._inside}{label}"
        sizes = num_bytes, num_operations, num_pieces
        operation, layer = self._owner
        layer = f"{self._inside}{layer}" if layer else ""
        info = CommandInfo(label, kernel.symbol, *sizes, str(call.work), operation, layer, part)
        self._commands.append(_Command(kernel, words, info))

    def change(self, command: int, call: Call) -> None:
        """Give a command numbers that were not known when it was added; it stays otherwise."""
        old = self._commands[command]
        self._commands[command] = _Command(old.kernel, call.words, old.info)

    def finish(self) -> Program:
        """The program; where sizes are traced, a `ResizableProgram` in its place.

        Outputs that are kept otherwise than the caller wants are converted.
        """
        writers = {value: owner for layer, owner in self._owners.items() for value in layer.outputs}
        for value in self.view.outputs:
            if 0 in value.info.known_shape:
                continue
            target, place = self._tensors[value], self._places[value]
            if value.info.data_type is DataType.QASYMM_S8 and place is not target:
                self._owner = writers.get(value, ("", ""))
                call = calls.Flip(place, target, target.size_bytes)
                self(call, f"flip {value.name}", part="flip")
        kernels = list(dict.fromkeys(command.kernel for command in self._commands))
        numbers = {kernel: number for number, kernel in enumerate(kernels)}
        starts = np.cumsum([0, *(len(command.words) for command in self._commands)])
        words: list[Word] = [word for command in self._commands for word in command.words]
        for buffer, table in self._tables:
            buffer.offset = 8 * len(words)
            words += table
        is_sized = is_traced(
            *(part for word in words for part in _parts(word)),
            *(buffer.size_bytes for buffer in self._buffers),
        )
        held = self._shared_constants() if is_sized else ()
        constants = self._packed_constants()
        arena_bytes = (plan_places if is_sized else plan_arena)(self._buffers)
        values = [_value(word) for word in words]
        program = Program(
            tuple(kernels),
            np.array([numbers[command.kernel] for command in self._commands], np.int32),
            starts.astype(np.int32),
            np.array([] if is_sized else values, np.int64),
            np.array([_base(word) for word in words], np.int16),
            constants,
            0 if is_sized else arena_bytes,
            len(self.view.inputs),
            len(self.view.outputs),
            tuple(command.info for command in self._commands),
            self.isa.name,
            self.num_threads,
            held,
            "[]" if is_sized else self._views(),
        )
        if not is_sized:
            return program
        # Only those get one who ask for it.
        return ResizableProgram(program, values, arena_bytes)  # type: ignore[return-value]

    def _views(self) -> str:
        """Return how constants of the region lie among the packed ones; see `Program.views`."""
        return json.dumps(views_of((buffer.start, origin) for buffer, origin in self._origins))

    def _shared_constants(self) -> tuple[Array, ...]:
        """Large constants in memory that other programs have as well; return the shared ones."""
        held = []
        for buffer, array in self._constants:
            if array.nbytes >= MIN_SHARED_BYTES:
                held.append(share_bytes(array))
                buffer.space, buffer.offset = Space.SHARED, address_of(held[-1])
        self._constants = [pair for pair in self._constants if pair[0].space is Space.CONSTANTS]
        return tuple(held)

    def _packed_constants(self) -> Array:
        """All constants in one array, their offsets set; each goes as soon as it lies there."""
        parts, size = self._placed_constants()
        self._constants.clear()
        packed = aligned(size + SLACK_BYTES if size else 0)
        while parts:
            offset, data = parts.popleft()
            packed[offset : offset + data.size] = data
        return packed

    def _placed_constants(self) -> tuple[collections.deque[tuple[int, Array]], int]:
        """Bytes and their places, and the size of all; those of the same bytes lie there once."""
        sizes = collections.Counter(array.nbytes for _, array in self._constants)
        placed: dict[bytes, int] = {}
        size, parts = 0, collections.deque[tuple[int, Array]]()
        for buffer, array in self._constants:
            data = array.reshape(-1).view(np.uint8)
            # Large ones are seldom of a size that another one has as well.
            key = sha256(data.data).digest() if sizes[data.size] > 1 else b""
            buffer.offset = placed.get(key, size)
            if buffer.offset == size:
                if key:
                    placed[key] = size
                parts.append((size, data))
                size += -(-data.size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return parts, size


def _dims(layer: Layer) -> Iterator[int]:
    """Dimensions of a layer's tensors."""
    for value in (*layer.inputs, *layer.outputs):
        if value is not None:
            yield from value.info.known_shape


def _unsigned(data: Array, data_type: DataType) -> Array:
    """Stored elements as kernels see them."""
    return data.view(np.uint8) ^ np.uint8(0x80) if data_type is DataType.QASYMM_S8 else data


def _buffer_of(word: Word) -> Buffer | None:
    if isinstance(word, Address):
        return word.buffer
    return word if isinstance(word, Buffer) else None


def _moved(word: Word, steps: Mapping[Buffer, int], times: int) -> Word:
    """A word for another image."""
    buffer = _buffer_of(word)
    offset = word.offset_bytes if isinstance(word, Address) else 0
    part = buffer
    while part is not None:
        if part in steps and buffer is not None:
            return Address(buffer, offset + times * steps[part])
        part = part.whole
    return word


def _value(word: Word) -> int:
    """An word as an integer: a number, or an offset."""
    if isinstance(word, Address):
        return _value(word.buffer) + word.offset_bytes
    if isinstance(word, Buffer):
        return word.start
    if isinstance(word, Size):
        return computed(_bits, word) if isinstance(word.now, float) else word
    return _bits(word) if isinstance(word, float) else int(word)


def _bits(number: float) -> int:
    return int(np.float32(number).view(np.int32))


def _parts(word: Word) -> Iterator[object]:
    if isinstance(word, Address):
        yield word.offset_bytes
    buffer = _buffer_of(word)
    if buffer is None:
        yield word
    while buffer is not None:
        yield buffer.offset
        buffer = buffer.whole


def _base(word: Word) -> int:
    buffer = _buffer_of(word)
    if buffer is None or buffer.root.space is Space.SHARED:  # whose addresses are known
        return Space.NUMBER
    return Space.TENSORS + buffer.tensor if buffer.space is Space.TENSORS else buffer.space
