"""Imports of memory for the inputs and outputs of loaded networks."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armpy.backend import ExternalMemory
from armpy.compiler import OptimizedNetwork
from armpy.compiler.imported import readers_of, writer_of
from armpy.compiler.memory.memory_copies import hands_on
from armpy.errors import ArmpyError, InvalidArgumentError, MemoryExportError, MemoryImportError
from armpy.execution.arrays.conversion import memory_description
from armpy.execution.arrays.dlpack import as_view
from armpy.execution.arrays.imported_tensor import Import, ImportedTensor, ToImport, unimport
from armpy.execution.programs.staged_program import StagedProgram
from armpy.execution.steps.session import BackendSession
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import HOST, BackendId

if TYPE_CHECKING:
    from armpy.execution.programs.program import BoundProgram
    from armpy.execution.programs.staged_program import NetworkProgram

_log = logging.getLogger("armpy.execution")


class Importer:
    """Imports memory for a loaded network, the owner, that is prepared for certain shapes."""

    def __init__(
        self, owner: object, program: NetworkProgram, sessions: Mapping[BackendId, BackendSession]
    ) -> None:
        # Nothing is known of its readers then.
        if isinstance(program, StagedProgram):
            raise shapes_depend_on_values()
        self._owner = owner
        self._network: OptimizedNetwork = program.network
        self._sessions = sessions

    def input(self, index: int, given: object) -> ImportedTensor:
        """Let the first reader import an input, and other readers if possible.

        Raises MemoryImportError if the first reader's backend refuses.
        """
        value = self._network.graph.inputs[index]
        memory = as_memory(f"input '{value.name}'", value.info, given)
        imports: dict[BackendId, Import] = {}
        try:
            for backend_id in readers_of(self._network, value):
                # What reads the same memory needs no import of its own.
                factories = self._sessions[backend_id].factories
                pairs = product(imports.values(), factories)
                if any(
                    hands_on(known.factory, reader, is_imported=True) for known, reader in pairs
                ):
                    continue
                try:
                    imports[backend_id] = self._import(value.info, memory, backend_id, write=False)
                except ArmpyError as error:
                    # Only the first reader has to import it: the others get a copy.
                    if imports:
                        _log.info("%s gets a copy of '%s': %s", backend_id, value.name, error)
                        continue
                    if not isinstance(error, MemoryImportError):
                        raise
                    where = f"input '{value.name}' / {backend_id}"
                    raise _named(error, MemoryImportError, where) from error
        # On Ctrl-C as well: no other code knows of these imports, and so none could end them.
        except BaseException:
            unimport(tuple(imports.values()))
            raise
        return ImportedTensor(value.name, False, value.info, memory, imports, self._owner)

    def output(self, index: int, given: object) -> ImportedTensor:
        """Let the writer import an output.

        Raises MemoryExportError if the writer's backend refuses.
        """
        graph = self._network.graph
        name, result = graph.output_names[index], graph.outputs[index]
        memory = as_memory(f"output '{name}'", result.info, given)
        root, backend_id = writer_of(self._network, result)
        # The copy for the caller is not made then.
        readers = [x for x in graph.layers if root in x.inputs and result not in x.outputs]
        try:
            imported = self._import(result.info, memory, backend_id, write=True, read=bool(readers))
        except MemoryImportError as error:
            where = f"output '{name}' / {backend_id}"
            raise _named(error, MemoryExportError, where) from error
        return ImportedTensor(name, True, result.info, memory, {backend_id: imported}, self._owner)

    def users(self, index: int, *, is_output: bool) -> tuple[BackendId, ...]:
        """The backends that read an input, the first one first; the one that writes an output."""
        graph = self._network.graph
        if is_output:
            return (writer_of(self._network, graph.outputs[index])[1],)
        return readers_of(self._network, graph.inputs[index])

    def preferred(self, index: int, *, is_output: bool) -> tuple[int, int]:
        """Alignment and padding that suit all readers of an input, or the writer of an output.

        Both are powers of two; the alignment suits the elements, too.
        """
        info = self.info(index, is_output=is_output)
        factories = [
            factory
            for name in self.users(index, is_output=is_output)
            for factory in self._sessions[name].factories
        ]
        alignment = max(factory.alignment_bytes for factory in factories)
        padding = max(factory.padding_bytes for factory in factories)
        return max(alignment, info.data_type.dtype.itemsize), padding

    def info(self, index: int, *, is_output: bool) -> TensorInfo:
        """Return the description of an input or output for these shapes."""
        graph = self._network.graph
        return (graph.outputs if is_output else graph.inputs)[index].info

    def for_one_call(
        self, index: int, memory: ExternalMemory, *, is_output: bool
    ) -> ImportedTensor | Array:
        """Import an input or output if its backend can use such memory, else map it.

        Raises MemoryImportError, MemoryExportError if a backend refuses, or the memory cannot be
        mapped.

        Memory that does not lie as the backend declares is copied, which is logged.
        """
        graph = self._network.graph
        if is_output:
            value = graph.outputs[index]
            _, backend_id = writer_of(self._network, value)
        else:
            value = graph.inputs[index]
            backend_id = readers_of(self._network, value)[0]
        factories = self._sessions[backend_id].factories
        knowing = [factory for factory in factories if memory.source & factory.import_sources]
        problems = [factory.problem_of(value.info, memory) for factory in knowing]
        if not all(problems):
            tensor = self.output(index, memory) if is_output else self.input(index, memory)
            tensor.is_kept = False
            return tensor
        if problems:
            _log.info("%s gets a copy of imported memory: %s", backend_id, problems[0])
        try:
            mapped = self._import(value.info, memory, HOST, write=is_output)
        except MemoryImportError as error:
            kind = MemoryExportError if is_output else MemoryImportError
            name = graph.output_names[index] if is_output else value.name
            where = f"{'output' if is_output else 'input'} '{name}'"
            raise _named(error, kind, where) from error
        return mapped.handle.map()

    def _import(
        self,
        info: TensorInfo,
        memory: ExternalMemory,
        backend_id: BackendId,
        *,
        read: bool = True,
        write: bool,
    ) -> Import:
        """Ask a backend's factories in its order of preference.

        Raises MemoryImportError (with the reason of the last one that was asked).
        """
        if memory.size_bytes < info.size_bytes:
            raise MemoryImportError(
                "the memory is too small",
                expected=f"{info.size_bytes} bytes ({info})",
                actual=f"{memory.size_bytes} bytes",
            )
        # The reason if no factory is asked; that of a factory says more.
        refusal = MemoryImportError(
            "the backend imports no memory of this kind",
            expected=" or ".join(
                str(f.import_sources) for f in self._sessions[backend_id].factories
            ),
            actual=str(memory.source),
        )
        for factory in self._sessions[backend_id].factories:
            if not memory.source & factory.import_sources:
                continue
            answer = factory.can_import(info, memory)
            if not answer:
                refusal = MemoryImportError(answer.text, expected=str(info))
                continue
            try:
                return Import(factory, factory.import_memory(info, memory, read=read, write=write))
            except MemoryImportError as error:
                refusal = error
        raise refusal


def as_memory(where: str, info: TensorInfo, given: object) -> ExternalMemory:
    """Convert a caller's argument to memory: given memory, or an array that fits exactly.

    Raises InvalidArgumentError if it is something else, or would have to be converted.
    """
    if isinstance(given, ExternalMemory):
        return given
    try:
        array = given if isinstance(given, np.ndarray) else as_view(info, given)
    except ArmpyError as error:
        error.where = where
        raise
    dtype = info.data_type.dtype
    # Nothing is converted: it would be a copy that is imported, and not the caller's memory.
    fits = array is not None and (array.dtype, array.shape) == (dtype, info.shape)
    if array is None or not fits or not array.flags.c_contiguous:
        raise InvalidArgumentError(
            "this cannot be imported",
            where=where,
            expected=f"an ExternalMemory, or a C-contiguous {dtype} array of {info.known_shape}",
            actual=memory_description(given if array is None else array),
        )
    return ExternalMemory.of_array(array)


def shapes_depend_on_values() -> MemoryImportError:
    """The error for a network of whose readers nothing is known before it runs."""
    return MemoryImportError("nothing can be imported, as shapes of the network depend on values")


def _named(error: MemoryImportError, kind: type[ArmpyError], where: str) -> ArmpyError:
    """An error of a backend's with the tensor's name."""
    inner = f"{where} / {error.where}" if error.where else where
    return kind(
        error.failed,
        where=inner,
        argument=error.argument,
        expected=error.expected,
        actual=error.actual,
        fix=error.fix,
    )


class ImportingNetwork(Protocol):
    """Network that memory is imported for."""

    @property
    def graph(self) -> Graph:
        """Graph whose inputs and outputs are imported."""

    def importer(self, prepared: BoundProgram | None = None) -> Importer:
        """Return the importer for the shapes of a prepared network, or the latest ones."""


class ImportedTensors:
    """The tensors that are imported for a loaded network, which goes without them."""

    def __init__(self, network: ImportingNetwork) -> None:
        # Weak, both: networks go with the last reference to them, and so do tensors.
        self._network = weakref.ref(network)
        self._tensors: weakref.WeakSet[ImportedTensor] = weakref.WeakSet()

    def __iter__(self) -> Iterator[ImportedTensor]:
        return iter(self._tensors)

    def by_name(self, given: Mapping[str, object], *, is_output: bool) -> dict[str, ImportedTensor]:
        """Import memory for some inputs or outputs by name, all or none.

        Raises InvalidArgumentError if the input or output does not exist, or the argument is not
        memory of one; MemoryImportError, MemoryExportError if a backend refuses.
        """
        network = self._network()
        assert network is not None  # which the caller has
        graph = network.graph
        names = [*graph.output_names] if is_output else [value.name for value in graph.inputs]
        unknown = [str(name) for name in given if name not in names]
        if unknown:
            raise InvalidArgumentError(
                f"the network has no such {'output' if is_output else 'input'}",
                expected=", ".join(names),
                actual=", ".join(map(repr, unknown)),
            )
        importer = network.importer()
        make = importer.output if is_output else importer.input
        named: dict[str, ImportedTensor] = {}
        try:
            for name, item in given.items():
                named[name] = make(names.index(name), item)
                self._tensors.add(named[name])
        # As above: the caller never gets those that were made.
        except BaseException:
            for tensor in named.values():
                tensor.close()
            raise
        return named

    def of_call(
        self,
        prepared: BoundProgram,
        inputs: Sequence[Array],
        targets: Sequence[Array | None],
    ) -> tuple[object, ...]:
        """Return the imports of a call by backend; empty if all is plain host memory.

        In lists, memory that a call gives to be imported is replaced by what it is imported as, and
        tensors that are plain host memory by their arrays. Memory that the first reader's (the
        writer's) backend does not import by kind is used as the host sees it. See Arm NN's
        LoadedNetwork::EnqueueInput, EnqueueOutput.

        Raises InvalidArgumentError if a tensor is closed, or of another input, output or network;
        MemoryImportError, MemoryExportError if a backend refuses, or the host cannot see it.
        """
        key: list[object] = []
        both = ((inputs, prepared.inputs, False), (targets, prepared.outputs, True))
        for tensors, slots, is_output in both:
            for index, given in enumerate(tensors):
                tensor: object = given
                if isinstance(given, ToImport) and isinstance(tensors, list):
                    tensor = tensors[index] = self._for_one_call(prepared, index, given, is_output)
                if not isinstance(tensor, ImportedTensor):
                    continue
                tensor.check_use(self._network(), slots[index].name, is_output=is_output)
                # One that is for this call alone stays in the list, as its import ends with it.
                array = tensor.host_array if tensor.is_kept else None
                if array is not None and isinstance(tensors, list):
                    tensors[index] = array
                    continue
                used = [(name, factory.factory_id) for name, factory in tensor.factories.items()]
                key.append((is_output, index, *used))
        return tuple(key)

    def _for_one_call(
        self,
        prepared: BoundProgram,
        index: int,  # of an input or output
        given: ToImport,
        is_output: bool,
    ) -> object:
        """What memory is imported as, unless the network is gone."""
        network = self._network()
        if network is None:
            return given
        importer = network.importer(prepared)
        return importer.for_one_call(index, given.memory, is_output=is_output)

    def close(self) -> None:
        """Give the backends' part of all of them back."""
        for tensor in [*self._tensors]:
            tensor.close()
