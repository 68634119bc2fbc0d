"""Compilations: models made ready to run on devices."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType, TracebackType

from armpy import CompilationCaching
from armpy.compiler.compile_timeout import prepared_by
from armpy.core.vlog import is_on, vlog
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    ExecutionTimeoutError,
    InvalidArgumentError,
    LayerValidationError,
    UnimplementedError,
)
from armpy.execution import LoadedNetwork, NetworkProperties, Runtime
from armpy.ops.operation import Array
from armpy.store.settings import TOKEN_BYTES
from armpy.types import Preference, Priority
from armpy_nnapi.codes import PreferenceCode, operation_name
from armpy_nnapi.compile.outputs import OutputShapes
from armpy_nnapi.compile.signature import ExecutionSignature
from armpy_nnapi.description.model_description import ModelDescription
from armpy_nnapi.devices import Device, DeviceManager, common_manager
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.extensions.extensions import ExtensionLookup
from armpy_nnapi.lowering.lower_model import lower_model
from armpy_nnapi.model.model import Model
from armpy_nnapi.results import (
    as_bad_data,
    as_integer,
    as_nnapi_error,
    bad_data,
    bad_state,
    check_index,
    check_kind,
    log_end,
    require_data,
    result_codes,
    unexpected_null,
)
from armpy_nnapi.validation.optional import optional_operands

_log = logging.getLogger("armpy_nnapi")

PREFERENCES: Mapping[int, Preference] = MappingProxyType(
    {
        PreferenceCode.LOW_POWER: Preference.LEAST_POWER,
        PreferenceCode.FAST_SINGLE_ANSWER: Preference.FASTEST,
        PreferenceCode.SUSTAINED_SPEED: Preference.SUSTAINED,
    }
)
"""armpy's preferences for the codes that `Compilation.set_preference` takes."""


class Compilation:
    """A model made ready to run.

    Parameters
    ----------
    model : Model
        Finished.
    manager : DeviceManager, optional
        Manager whose devices run it, CpuRef what no other takes; the model's if left out.

    Raises
    ------
    NnapiError
        UNEXPECTED_NULL without a model; BAD_STATE if it is not finished.

    Notes
    -----
    A context manager that closes it. Without `close` its networks go with it. Executions
    of one compilation may run side by side. Methods that set something raise NnapiError: BAD_STATE
    after `finish`; BAD_DATA for a code or number that is not valid.
    """

    def __init__(self, model: Model, manager: DeviceManager | None = None) -> None:
        if model is None:
            raise unexpected_null("the model", where="Compilation", expected="a finished Model")
        check_kind(model, Model, "Compilation")
        self._description = model.check_finished("Compilation").description
        self._manager = manager or model.manager
        self._devices: tuple[Device, ...] | None = None
        self._preference: int = PreferenceCode.FAST_SINGLE_ANSWER
        # None until it is set: the preference of the runtime's options holds until then.
        self._preference_said: Preference | None = None
        self._priority = Priority.MEDIUM
        self._timeout_ns = 0
        self._caching = CompilationCaching(enabled=False)  # NNAPI keeps nothing without a token
        self._properties = NetworkProperties()
        self._is_finished = False
        self._runtime: Runtime | None = None
        # Ids in the runtime by the inputs that are left out; the same dictionary is in the
        # finalizer, which must not keep the compilation alive.
        self._networks: dict[frozenset[int], int] = {}
        self._whole: LoadedNetwork | None = None
        self._signature: ExecutionSignature | None = None
        # Of `_networks`: executions on several threads may be the first to need one.
        self._lock = threading.RLock()
        self._finalizer: weakref.finalize[[Runtime, dict[frozenset[int], int]], Compilation] | None
        self._finalizer = None

    @classmethod
    def create_for_devices(cls, model: Model, devices: Sequence[Device]) -> Compilation:
        """Make a compilation for the given devices only, without the reference as a fallback.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a model, list or device; BAD_DATA without devices, if one is
            given twice, or if they are of several managers or of another one than the model was
            made for; BAD_STATE if the model is not finished.
        """
        where = "Compilation.create_for_devices"
        if model is None or devices is None:
            raise unexpected_null("the model or list of devices", where=where)
        manager = common_manager(devices, where)
        compilation = cls(model, manager)
        model.check_manager(manager, where)
        compilation._devices = tuple(devices)
        return compilation

    def set_preference(self, preference: int) -> None:
        """Set the preference: power, one answer, or many.

        Notes
        -----
        The placement of operations depends on it, and devices receive it when they prepare the
        model. If it is never called, operations run on the first device that takes them.
        """
        where = "Compilation.set_preference"
        self._check_open(where)
        preference = as_integer(preference, "preference", where)
        # NNAPI lets negative numbers pass; they mean no preference here.
        if preference > max(PreferenceCode):
            raise bad_data(
                "unknown preference",
                where=where,
                expected=", ".join(f"{code.name} ({code})" for code in PreferenceCode),
                actual=str(preference),
            )
        self._preference = preference
        self._preference_said = PREFERENCES.get(preference)

    def set_priority(self, priority: int) -> None:
        """Say how urgent executions are against those of other models.

        Notes
        -----
        It orders executions that were started and wait; none waits without end. Devices receive it
        when they prepare the model.
        """
        where = "Compilation.set_priority"
        self._check_open(where)
        if priority not in tuple(Priority):
            raise bad_data(
                "unknown priority",
                where=where,
                expected=", ".join(f"{code.name} ({code})" for code in Priority),
                actual=str(priority),
            )
        self._priority = Priority(priority)

    def set_timeout(self, duration_ns: int) -> None:
        """Say how long `finish` may take.

        Parameters
        ----------
        duration_ns : int
            Time limit in nanoseconds; 0 for no limit.

        Raises
        ------
        NnapiError
            BAD_DATA unless exactly one device was chosen.

        Notes
        -----
        A device that is not done by then is no longer waited for, and `finish` raises
        MISSED_DEADLINE_PERSISTENT, or the code that the device itself gives.
        """
        where = "Compilation.set_timeout"
        self._check_open(where)
        self.check_one_device("a compilation has a time limit only on one chosen device", where)
        duration_ns = as_integer(duration_ns, "duration", where)
        if duration_ns < 0:
            raise bad_data("a duration is negative", where=where, actual=str(duration_ns))
        self._timeout_ns = duration_ns

    def set_caching(self, directory: str | os.PathLike[str], token: bytes) -> None:
        """Keep what devices compile in a folder of the application's.

        Parameters
        ----------
        directory : path
            Folder that exists; otherwise nothing is kept. Empty for the current one.
        token : bytes, 32
            Names the model. Devices, their versions, preference and priority are distinguished.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without one of them; BAD_DATA if the token has another length.

        Notes
        -----
        Nothing that is wrong with files is an error: the model is compiled anew, and
        `armpy.Placement.cache_uses` of the network says why. Unlike in Android, files that were
        made of another model under the same token are not used.
        """
        where = "Compilation.set_caching"
        if directory is None or token is None:
            raise unexpected_null("the directory or token", where=where)
        self._check_open(where)
        if not isinstance(token, bytes) or len(token) != TOKEN_BYTES:
            raise bad_data(
                "the token has the wrong length"
                if isinstance(token, bytes)
                else "the token is not bytes",
                where=where,
                expected=f"{TOKEN_BYTES} bytes",
                actual=repr(token),
            )
        try:
            self._caching = CompilationCaching(os.fsdecode(directory), token)
        except (TypeError, InvalidArgumentError) as error:
            raise bad_data(
                "the directory is not a path", where=where, actual=repr(directory)
            ) from error

    def finish(self) -> None:
        """Make the model ready to run, as far as that can be done without its inputs.

        Raises
        ------
        NnapiError
            BAD_STATE if that was tried before; BAD_DATA if the devices do not support an
            operation; OP_FAILED if the known properties of an operation's operands break its rules,
            or a device fails to prepare it, MISSED_DEADLINE_PERSISTENT if it takes longer than
            `set_timeout` says, and other codes as that device says.
        """
        where = "Compilation.finish"
        self._check_open(where)
        limit_s = self._timeout_ns / 1e9
        deadline_s = time.perf_counter() + limit_s if self._timeout_ns else None
        self._is_finished = True  # first: NNAPI lets it be tried once, whatever comes of it
        if is_on.compilation:
            names = ", ".join(device.name for device in self._devices or ()) or "all devices"
            count = len(self._description.main.operations)
            vlog("compilation", "%s: %d operations, %s", where, count, names)
        with result_codes(where):
            # Here and not in the constructor: making a runtime loads backends, whose errors belong
            # to finish.
            runtime = self._manager.runtime(self._devices, is_relaxed=self._description.relaxed)
            # For devices that the application chose NNAPI has no fallback, so an operation that
            # none of them has is an error here and not in an execution. Some devices compile to
            # answer, which a compilation in the background does not wait for.
            if self._devices is not None and not self._manager.in_background:
                self._check_support()
            self._properties = self._network_properties(runtime)
            with prepared_by(deadline_s):
                self._prepare(runtime, where)

    def _network_properties(self, runtime: Runtime) -> NetworkProperties:
        """Properties with which the model's networks are loaded."""
        common = runtime.options.optimizer_options()
        devices = self._manager.devices if self._devices is None else self._devices
        preference = self._preference_of(common.preference, devices)
        optimizer = replace(
            common,
            preference=preference,
            # Without a plugin that places layers, a preference is for the devices alone.
            decides_by_preference=preference is Preference.ORDER or bool(self._manager.placers),
            priority=self._priority,
            feature_levels=self._manager.layer_levels(self._description, devices),
            caching=self._caching,
            relaxed=self._description.relaxed,
        )
        # What a device fails to execute others do, unless the application chose the devices.
        on_failure = "next" if self._devices is None else "error"
        return NetworkProperties(optimizer=optimizer, on_failure=on_failure)

    def _preference_of(self, common: Preference, devices: Iterable[Device]) -> Preference:
        """The preference for placement: as given, else by the figures that devices declare."""
        if self._preference_said is not None or common is not Preference.ORDER:
            return self._preference_said or common
        is_chosen = self._devices is not None  # in the order that the application gives
        if is_chosen or not any(device.declares_figures for device in devices):
            return Preference.ORDER
        # By time, and without trials.
        return Preference.SUSTAINED if self._manager.placers else Preference.ORDER

    def _prepare(self, runtime: Runtime, where: str) -> None:
        """Load the network for all inputs, unless that has to wait for an execution."""
        # The runtime is the manager's and outlives this compilation: without the finalizer its
        # networks would stay loaded when the application forgets to close it.
        self._finalizer = weakref.finalize(self, _unload, runtime, self._networks)
        # At the end of the process everything goes anyway, and backends may be gone before.
        self._finalizer.atexit = False
        self._runtime = runtime
        self._signature = ExecutionSignature(self._description.main)
        try:
            network = self.network(())
            shapes = self._signature.input_shapes
            if shapes is not None and self._signature.settle(network.output_infos(shapes)):
                self._whole = network
        except (ArmpyError, MemoryError) as error:
            if self._may_be_for_fewer_inputs(error):
                _log.info("%s: not prepared for all inputs: %s", where, error)
                return
            self._runtime = None
            # A device that has failed at it has its own code; that none takes it is the model's.
            if isinstance(error, BackendCapabilityError) and error.__cause__ is None:
                raise as_bad_data(error, where) from error
            raise

    def _check_support(self) -> None:
        """Check that the chosen devices can run every operation, as far as that is known."""
        is_relaxed = self._description.relaxed
        answers = self._manager.ask(self._description, self._devices or (), is_relaxed=is_relaxed)
        for number, (node, answer) in enumerate(
            zip(self._description.main.operations, answers, strict=True)
        ):
            if answer is not None and not answer:
                names = ", ".join(device.name for device in self._devices or ())
                raise bad_data(
                    f"none of the chosen devices ({names}) supports the operation: {answer.text}",
                    where=f"operation {number} ({operation_name(node.type)})",
                    fix="Choose more devices, or none to let armpy choose",
                )

    def _may_be_for_fewer_inputs(self, error: Exception) -> bool:
        """Return whether the error may go away if an optional input is left out."""
        main = self._description.main
        is_rule = isinstance(error, LayerValidationError)
        # Rules depend on which inputs there are; what a device fails at does not.
        return is_rule and not optional_operands(main).isdisjoint(main.inputs)

    def _lookup(self) -> ExtensionLookup:
        """The function that looks up the devices' extensions."""
        if self._devices is None:
            return self._manager.extensions.lookup()
        return self._manager.extensions.lookup([device.backend_id for device in self._devices])

    @property
    def is_finished(self) -> bool:
        """Return whether it is ready to run."""
        return self._runtime is not None

    @property
    def description(self) -> ModelDescription:
        """The model."""
        return self._description

    @property
    def devices(self) -> tuple[Device, ...] | None:
        """The devices that were chosen; None if armpy chooses."""
        return self._devices

    @property
    def priority(self) -> Priority:
        """Urgency of executions against those of other models."""
        return self._priority

    @property
    def signature(self) -> ExecutionSignature:
        """The inputs and outputs of executions; BAD_STATE before `finish`."""
        if self._signature is None:
            raise bad_state("the compilation is not ready", where="Compilation.signature")
        return self._signature

    @property
    def whole(self) -> LoadedNetwork | None:
        """The network for all inputs, if it can use callers' arrays in place; else None."""
        return self._whole

    def network(self, omitted: Collection[int]) -> LoadedNetwork:
        """The network that runs the model when some inputs are left out.

        Parameters
        ----------
        omitted : collection of int
            Positions of the inputs that have no value.

        Raises
        ------
        ArmpyError
            If the model cannot run so.
        """
        return self.loaded(omitted)[0]

    def network_for(self, arrays: Sequence[Array | None]) -> LoadedNetwork:
        """The network for these inputs, None being those that are left out; see `network`."""
        # An operation without an optional operand is another layer, so there is a network for
        # each set of inputs that are left out; the others move up.
        return self.network([index for index, array in enumerate(arrays) if array is None])

    def loaded(self, omitted: Collection[int]) -> tuple[LoadedNetwork, int]:
        """The network as `network` gives it, and its id in the runtime."""
        if self._runtime is None:
            state = "closed" if self._finalizer is not None else "not ready"
            raise bad_state(f"the compilation is {state}", where="Compilation.network")
        key = frozenset(omitted)
        with self._lock:  # executions in several threads may be the first without an input
            if key not in self._networks:
                extensions = self._lookup()
                graph = lower_model(self._description, sorted(key), extensions=extensions)
                again = _only_here if self._manager.in_background else None
                self._networks[key] = self._runtime.load_network(
                    graph, self._properties, again=again
                )
            return self._runtime.get_network(self._networks[key]), self._networks[key]

    def check_ready(self, where: str) -> None:
        """Check that it can be run.

        Raises
        ------
        NnapiError
            BAD_STATE if it is not finished, failed, or is closed.
        """
        if self._runtime is None:
            problem = "failed or is closed" if self._is_finished else "is not finished"
            fix = "Make another one" if self._is_finished else "Call Compilation.finish first"
            raise bad_state(f"the compilation {problem}", where=where, fix=fix)

    def check_one_device(self, failed: str, where: str) -> None:
        """Check that it is for one device that the application chose.

        Raises
        ------
        NnapiError
            BAD_DATA, which says `failed`, if not.
        """
        require_data(
            self._devices is not None and len(self._devices) == 1,
            failed,
            where=where,
            expected="a compilation for one device",
            actual="none was chosen" if self._devices is None else f"{len(self._devices)} devices",
            fix="Make it with Compilation.create_for_devices",
        )

    def get_preferred_memory_alignment_for_input(self, index: int) -> int:
        """Multiple at which memory for an input best begins.

        Returns
        -------
        int
            Bytes, a power of two: as the devices that read it declare, at least the size of an
            element. Where dimensions are not known, the size of an element.

        Raises
        ------
        NnapiError
            BAD_STATE if it is not finished, failed, or is closed; BAD_DATA if there is no such
            input.

        Notes
        -----
        What lies otherwise is copied.
        """
        where = "Compilation.get_preferred_memory_alignment_for_input"
        return self._preferred(index, where, is_output=False)[0]

    def get_preferred_memory_padding_for_input(self, index: int) -> int:
        """Multiple to which the length of memory for an input is best rounded up.

        Parameters and errors are those of `get_preferred_memory_alignment_for_input`.

        Returns
        -------
        int
            Bytes, a power of two; 1 if there need be no padding, or dimensions are not known.
        """
        where = "Compilation.get_preferred_memory_padding_for_input"
        return self._preferred(index, where, is_output=False)[1]

    def get_preferred_memory_alignment_for_output(self, index: int) -> int:
        """Multiple at which memory for an output best begins; as for inputs."""
        where = "Compilation.get_preferred_memory_alignment_for_output"
        return self._preferred(index, where, is_output=True)[0]

    def get_preferred_memory_padding_for_output(self, index: int) -> int:
        """Multiple for the length of memory for an output, rounded up; as for inputs."""
        where = "Compilation.get_preferred_memory_padding_for_output"
        return self._preferred(index, where, is_output=True)[1]

    def _preferred(self, index: int, where: str, *, is_output: bool) -> tuple[int, int]:
        """Alignment and padding that suit an input or output."""
        self.check_ready(where)
        slots = self.signature.outputs if is_output else self.signature.inputs
        index = check_index(index, len(slots), "output" if is_output else "input", where)
        try:
            return self.network(()).importer().preferred(index, is_output=is_output)
        # Without dimensions, or for fewer inputs alone, it is not known where the model will run.
        except ArmpyError as error:
            _log.debug("%s: %s", where, error)
        return slots[index].operand.data_type.dtype.itemsize, 1

    def free_working_memory(self) -> None:
        """Give back memory that no execution is using; the next execution takes it again.

        Notes
        -----
        What reusable executions have stays theirs, until they idle or are closed.
        """
        runtime = self._runtime
        if runtime is None:
            return
        with self._lock:
            # Only the list is made with the lock held: freeing calls backends, which may take their
            # time.
            numbers = [*self._networks.values()]
        for number in numbers:
            with suppress(InvalidArgumentError):  # another thread has closed it meanwhile
                runtime.get_network(number).free_working_memory()

    def close(self) -> None:
        """Release its networks; executions that run come to their end, others fail."""
        # First, so that no new execution begins with networks that are unloaded below.
        self._runtime = self._whole = None
        if self._finalizer is not None:
            self._finalizer()

    def __call__(self, *inputs: Array | None) -> list[Array]:
        """Run the model once.

        Parameters
        ----------
        *inputs : ndarray or None
            One per input of the model; None for an optional one that is left out.

        Returns
        -------
        list of ndarray
            One per output of the model.

        Raises
        ------
        NnapiError
            As from `Execution.run`.
        """
        where = "Compilation"
        self.check_ready(where)
        arrays = self.signature.read(inputs, where)
        try:
            network = self.network_for(arrays)
            results = network.run([array for array in arrays if array is not None])
            OutputShapes(self.signature.outputs).note_all(results, where)
        except BaseException as error:
            # An interrupt, too, is an end that is logged.
            explained = self.explained(error, where)
            if is_on.execution:
                log_end(
                    explained.code if isinstance(explained, NnapiError) else ResultCode.OP_FAILED
                )
            if explained is error:
                raise
            raise explained from error
        if is_on.execution:
            log_end(ResultCode.NO_ERROR)
        return results

    def explained(self, error: BaseException, where: str) -> BaseException:
        """The error with a result code for what an execution has failed with.

        Returns
        -------
        BaseException
            The same one if it has a code, or is none of armpy's.
        """
        if isinstance(error, ExecutionTimeoutError) and error.fix:  # it is of control flow
            error.fix = "Call set_loop_timeout before if the loop needs longer; at most 15 s"
        # Networks are freed with the compilation; running a freed one is an error.
        if isinstance(error, InvalidArgumentError) and not self.is_finished:
            return bad_state("the compilation is closed", where=where)
        if isinstance(error, (ArmpyError, MemoryError)):
            return as_nnapi_error(error, where)
        return error

    def _check_open(self, where: str) -> None:
        """Check that it can still be changed."""
        if self._is_finished:
            raise bad_state("the compilation is finished", where=where, fix="Make another one")

    def __enter__(self) -> Compilation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _only_here() -> object:
    """Refuse to hand a model to a process that compiles: this one does on a thread."""
    raise UnimplementedError("a model of the Neural Networks API is in no file")


def _unload(runtime: Runtime, networks: dict[frozenset[int], int]) -> None:
    """Unload the networks of a compilation that is gone."""
    while networks:
        # Taken out first: what cannot be unloaded now is not tried a second time.
        _, network_id = networks.popitem()
        if not runtime.is_closed:
            try:
                runtime.unload_network(network_id)
            except ArmpyError as error:
                # Only logged: a finalizer has no caller to raise to, and the others are freed, too.
                _log.warning("%s", error)
