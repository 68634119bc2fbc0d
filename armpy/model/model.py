"""Model, the two-line way: load a network, call it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError
from armpy.execution.calls.run import read_inputs, run_by_name, run_in_order
from armpy.execution.exhaustion import tells_of_memory, without_memory
from armpy.model.shaped_model import ShapedModel
from armpy.types import Priority

# A model that was prepared ahead of time starts without what prepares others.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from armpy.execution.calls.debugged_network import DebuggedNetwork
    from armpy.execution.calls.execution import Execution
    from armpy.execution.calls.network_memory import NetworkMemory
    from armpy.execution.calls.quick_network import QuickNetwork
    from armpy.execution.calls.real_numbers import RealOutputs
    from armpy.execution.loaded_network import LoadedNetwork
    from armpy.execution.scheduling.tasks import ExecutionFuture
    from armpy.execution.wrappers.debugging import DebugCallback
    from armpy.ops.operation import Array
    from armpy.store.archive.signing import FileSignature


class Model(ShapedModel):
    """A loaded network that can be called.

    On a runtime that is shared, it stays loaded until `close`, which ``with`` calls.

    Parameters
    ----------
    network : Network, Graph or OptimizedNetwork
    runtime : Runtime, optional
        One with default options if left out.
    closes_runtime : bool
        Whether the runtime is the model's own and is closed with it; always so for one that
        it makes.
    quantize_inputs : bool
        Whether real numbers given for a quantised input are quantised. Otherwise they are
        an error, because they are most often a mistake.
    dequantize_outputs : bool
        Whether quantised outputs are handed over as the real numbers that they stand for (float32).
        Arrays that are given for them take real numbers then. What `bind` gives is stored elements.
    shares_state_with : Model, optional
        A model on the same runtime whose variables it shares: those of the same keys.
    signatures : Signatures, optional
        Ways to call the model's file.
    properties : NetworkProperties, optional
        How the network is loaded.
    read_metadata : callable, optional
        Returns what the model's file says of itself.
    read_source : callable, optional
        Returns the graph as the model's file has it, for `reshape` and `with_outputs`; that of
        `network` if left out.

    Examples
    --------
    >>> model = armpy.load("model.tflite")                          # doctest: +SKIP
    >>> scores = model(image)                                       # doctest: +SKIP
    >>> by_name = model.run({"image": image})                       # doctest: +SKIP
    """

    def __call__(self, *arrays: object) -> Array | tuple[Array, ...]:
        """Run with the inputs in order.

        Parameters
        ----------
        *arrays : array_like
            One per input.

        Returns
        -------
        ndarray, or tuple of ndarray
            The output, or all of them where there are several.

        Raises
        ------
        InvalidArgumentError
            If number, types or shapes do not fit.
        """
        network = self._open or self._loaded  # the latter raises
        try:
            results = run_in_order(network, arrays, self.quantize_inputs)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause
        if self.dequantize_outputs:
            names = [spec.name for spec in self.outputs]
            finish = self._real_outputs(None).finish
            results = [*finish(dict(zip(names, results, strict=True))).values()]
        return results[0] if len(results) == 1 else tuple(results)

    def run(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | Sequence[str] | None = None,
        # By position as well: a parameter by name alone takes 2 % more of a small call.
        memory: NetworkMemory | None = None,
        debug: DebugCallback | None = None,
        deadline_s: float | None = None,
    ) -> dict[str, Array]:
        """Run with the inputs by name.

        Parameters
        ----------
        inputs : mapping of str to array_like
            Every input.
        outputs : mapping of str to ndarray, or sequence of str, optional
            Arrays to write outputs to; the ones missing are made. Other libraries' tensors
            (``__dlpack__``) and buffers are written in place as well. Or names of tensors, any of
            those in the model's file: these are the results then (see `with_outputs`).
        memory : NetworkMemory, optional
            What `create_working_memory` gave for the inputs' shapes; some of the model's own if
            left out. Not with a deadline.
        debug : callable, optional
            Called with a `DebugValue` for every output of every layer, when all are computed and
            before the outputs are handed over. What it raises ends the run, and is raised as it
            is. Such a run takes memory for every value at once, and the first one is prepared for
            that.
        deadline_s : float, optional
            How long it may take. Backends that cannot stop are left alone then: they write to
            none of these arrays any more.

        Returns
        -------
        dict of str to ndarray
            Every output, or what was asked for by name.

        Raises
        ------
        InvalidArgumentError
            If names, types or shapes do not fit, or the model was closed; if two of `memory`,
            `debug` and `deadline_s` are given.
        ExecutionTimeoutError
            If it takes longer.
        """
        network = self._open or self._loaded  # the latter raises
        if outputs is not None and not isinstance(outputs, Mapping):
            variant = self.with_outputs(outputs)
            return variant.run(inputs, None, memory, debug, deadline_s)
        if self.dequantize_outputs:
            real = self._real_outputs(outputs)
            return real.finish(self._run(inputs, real.stored, memory, debug, deadline_s))
        if deadline_s is not None or memory is not None or debug is not None:
            return self._run(inputs, outputs, memory, debug, deadline_s)
        try:
            return run_by_name(network, inputs, outputs, self.quantize_inputs)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause

    def _run(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None,
        memory: NetworkMemory | None,
        debug: DebugCallback | None,
        deadline_s: float | None,
    ) -> dict[str, Array]:
        """`run` that hands over what the network stores."""
        if deadline_s is not None:
            _check_alone(memory, debug)
            return self._run_until(self._loaded, inputs, outputs, deadline_s)
        network: LoadedNetwork | QuickNetwork | NetworkMemory | DebuggedNetwork
        network = self._open or self._loaded  # the latter raises
        if memory is not None or debug is not None:
            network = _chosen(self._loaded, memory, debug)
        return run_by_name(network, inputs, outputs, self.quantize_inputs)

    def _real_outputs(self, given: object) -> RealOutputs:
        """What becomes of outputs that are to be real numbers."""
        from armpy.execution.calls.real_numbers import RealOutputs

        return RealOutputs.of(self.outputs, given)

    def _run_until(
        self,
        network: LoadedNetwork,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None,
        deadline_s: float,
    ) -> dict[str, Array]:
        """`run` with a deadline."""
        from armpy.execution.calls import async_execution as starting

        arrays = read_inputs(network, inputs, self.quantize_inputs)
        return starting.run(network, arrays, outputs, deadline_s=deadline_s)

    @tells_of_memory
    def start(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | Sequence[str] | None = None,
        *,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
    ) -> ExecutionFuture[dict[str, Array]]:
        """Run on a thread of the runtime's, and go on meanwhile.

        Parameters
        ----------
        inputs : mapping of str to array_like
        outputs : mapping of str to array_like, or sequence of str, optional
            As for `run`; arrays are not to be changed before the end.
        priority : Priority
            Which of the runs that wait for a thread come first. Networks that wait with the same
            priority get equal shares of the time.
        deadline_s : float, optional
            How long it may take from now on, with the time that it waits.

        Returns
        -------
        concurrent.futures.Future
            Of every output by name. Its `cancel` stops also a run that is under way: `result`
            raises `ExecutionCancelledError` then.

        Raises
        ------
        InvalidArgumentError
            As for `run`; what is wrong with the outputs, the future tells.

        Examples
        --------
        >>> future = model.start({"image": image}, deadline_s=0.1)  # doctest: +SKIP
        >>> scores = future.result()["scores"]                      # doctest: +SKIP
        """
        if outputs is not None and not isinstance(outputs, Mapping):
            variant = self.with_outputs(outputs)
            return variant.start(inputs, priority=priority, deadline_s=deadline_s)
        from armpy.execution.calls import async_execution as starting

        network = self._loaded
        arrays = read_inputs(network, inputs, self.quantize_inputs)
        finish = None
        if self.dequantize_outputs:
            real = self._real_outputs(outputs)
            outputs, finish = real.stored, real.finish
        return starting.start(
            network,
            arrays,
            outputs,
            priority=priority,
            deadline_s=deadline_s,
            keep_alive=self,
            finish=finish,
        )

    async def run_async(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | Sequence[str] | None = None,
        *,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
    ) -> dict[str, Array]:
        """`start`, and wait in an event loop; who cancels the task stops the run.

        Examples
        --------
        >>> scores = (await model.run_async({"image": image}))["scores"]  # doctest: +SKIP
        """
        from asyncio import wrap_future  # slow to import

        future = self.start(inputs, outputs, priority=priority, deadline_s=deadline_s)
        return await wrap_future(future)

    @tells_of_memory
    def bind(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | Sequence[str] | None = None,
        *,
        debug: DebugCallback | None = None,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
        cancellable: bool = False,
    ) -> Execution:
        """Prepare many runs with the same arrays, which are checked once.

        Parameters
        ----------
        inputs : mapping of str to ndarray
            Every input. Each run reads what is in the arrays by then. Other libraries' tensors
            (``__dlpack__``) and buffers are read in place as well.
        outputs : mapping of str to ndarray, or sequence of str, optional
            Arrays, or other memory as for inputs, that each run writes outputs to; the ones
            missing are made. Or names of tensors, as for `run`.
        debug : callable, optional
            As for `run`.
        priority : Priority
            Of runs that are started and not called; see `start`.
        deadline_s : float, optional
            How long each run may take.
        cancellable : bool
            Whether `Execution.cancel` is to stop calls also where backends do not stop themselves.
            Another thread does their work then, which takes some 30 us more per call, as with a
            deadline. Otherwise such calls end behind the layer that they are in.

        Returns
        -------
        Execution
            To be called any number of times, by one thread at a time. It keeps the model.

        Raises
        ------
        InvalidArgumentError
            If names, types or shapes do not fit, an input could not be read in place, or the model
            was closed.

        Examples
        --------
        >>> image = np.zeros((1, 224, 224, 3), np.float32)          # doctest: +SKIP
        >>> execution = model.bind({"image": image})                # doctest: +SKIP
        >>> camera.read_into(image)                                 # doctest: +SKIP
        >>> scores = execution()["scores"]                          # doctest: +SKIP
        """
        if outputs is not None and not isinstance(outputs, Mapping):
            return self.with_outputs(outputs).bind(
                inputs,
                debug=debug,
                priority=priority,
                deadline_s=deadline_s,
                cancellable=cancellable,
            )
        return self._loaded.bind(
            inputs,
            outputs,
            debug,
            priority=priority,
            deadline_s=deadline_s,
            cancellable=cancellable,
        ).keeping(self)

    def signature(self, name: str) -> Model:
        """The model for a signature of the same file; all of them share their variables.

        Parameters
        ----------
        name : str

        Returns
        -------
        Model
            Opened once, on the same runtime, and closed with the model that `armpy.load` gave.

        Raises
        ------
        InvalidArgumentError
            If there is no such signature, or the model was closed.
        ParserError
            As from `armpy.load`.

        Examples
        --------
        >>> model = armpy.load("model.tflite")                      # doctest: +SKIP
        >>> loss = model.signature("train")(images, labels)         # doctest: +SKIP
        >>> scores = model.signature("infer")(image)                # doctest: +SKIP
        """
        if self._open is None:
            raise self._closed_error()
        return self._signatures.get(name, self)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        targets: Sequence[str] = (),
        sign: Callable[[bytes], FileSignature] | None = None,
    ) -> int:
        """Write the model with all that preparing it has made; `armpy.load` starts from the file.

        Parameters
        ----------
        path : path
            The file appears whole, or not at all.
        targets : sequence of str
            Machines that it is compiled for: ``host`` (this one; the only one if left out) and
            the names that ``armpy compile --target`` lists. The first one's constants are packed
            in the file.
        sign : callable, optional
            Signs it; see `armpy.store.archive.signing`.

        Returns
        -------
        int
            Bytes of the file.

        Raises
        ------
        InvalidArgumentError
            If there is no such target, the model is prepared for no shapes, or the file cannot be
            written.
        UnimplementedError
            If an operation is not one of armpy's own.

        Examples
        --------
        >>> armpy.load("model.tflite").save("model.armpy")          # doctest: +SKIP
        >>> model = armpy.load("model.armpy")                       # doctest: +SKIP
        """
        from armpy.model.archive.save import save_model

        return save_model(self, path, targets=targets, sign=sign)


def _check_alone(memory: object, debug: object) -> None:
    """Check that a run with a deadline is a plain one else."""
    if memory is not None or debug is not None:
        raise InvalidArgumentError(
            "a run with a deadline may have to be left alone with all that it uses",
            where="memory" if debug is None else "debug",
            fix="Leave it out, or deadline_s",
        )


def _chosen(
    network: LoadedNetwork, memory: NetworkMemory | None, debug: DebugCallback | None
) -> NetworkMemory | DebuggedNetwork:
    """What a run that is no plain one asks for."""
    if memory is not None and debug is not None:
        raise InvalidArgumentError(
            "working memory has no room for every value",
            where="debug",
            fix="Leave out memory or debug",
        )
    if debug is not None:
        return network.debugging(debug)
    assert memory is not None
    return memory.of(network)
