"""PyArmNN's Optimize: layers of a network on the preferred backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import armpy
from armpy.compiler import Refusal
from armpy.core.dataclass import dataclass
from armpy.errors import BackendCapabilityError
from armpy.graph import Graph
from armpy_compat.backend_names import arm_nn_id
from armpy_compat.pyarmnn.conversion import runtime_errors
from armpy_compat.pyarmnn.lowering import lower_network
from armpy_compat.pyarmnn.network import INetwork
from armpy_compat.pyarmnn.options.backend_options import BackendId, BackendOptions
from armpy_compat.pyarmnn.options.optimizer_options import OptimizerOptions
from armpy_compat.pyarmnn.running.device_spec import IDeviceSpec
from armpy_compat.pyarmnn.running.dot_file import dot_lines
from armpy_compat.pyarmnn.swig import SwigObject, wrong_arguments


@dataclass(frozen=True, slots=True)
class NetworkParts:
    """A network of armpy, and the runtime that loads it.

    Parameters
    ----------
    runtime : Runtime
    network : OptimizedNetwork or Graph
        A graph if shapes depend on the elements of inputs: it is optimised in each call.
    input_ids, output_ids : mapping of str to int
        Binding ids by name.
    """

    runtime: armpy.Runtime
    network: armpy.OptimizedNetwork | Graph
    input_ids: Mapping[str, int]
    output_ids: Mapping[str, int]

    @property
    def graph(self) -> Graph:
        """The layers, before backends have compiled them."""
        return self.network if isinstance(self.network, Graph) else self.network.source

    @property
    def backends(self) -> Mapping[int, str]:
        """The backend of each layer by the layer's id, as far as they are known."""
        return {} if isinstance(self.network, Graph) else self.network.assignment


class IOptimizedNetwork(SwigObject):
    """A network whose layers have their backends; made by `Optimize`, for one `LoadNetwork`."""

    def __init__(self, parts: NetworkParts) -> None:
        self.parts = parts

    def SerializeToDot(self, fileName: str) -> None:
        """Draw the network in Graphviz's language.

        Raises
        ------
        TypeError
            If the name is not a text.
        RuntimeError
            If the file cannot be written.
        """
        if not isinstance(fileName, str):  # `open` takes numbers for descriptors
            raise TypeError(
                "in method 'IOptimizedNetwork_SerializeToDot', argument 2 of type 'std::string'"
            )
        try:
            with open(fileName, "w", encoding="utf-8") as file:
                file.writelines(
                    f"{line}\n" for line in dot_lines(self.parts.graph, self.parts.backends)
                )
        except OSError as error:
            raise RuntimeError(f"Failed to open dot file {fileName}: {error.strerror}") from error


def Optimize(
    network: INetwork,
    backendPreferences: Sequence[BackendId],
    deviceSpec: IDeviceSpec,
    options: OptimizerOptions | None = None,
) -> tuple[IOptimizedNetwork, tuple[str, ...]]:
    """Give each layer of a network to the first preferred backend that takes it.

    Parameters
    ----------
    network : INetwork
    backendPreferences : sequence of BackendId
        Most preferred first. Those that are not there are left out.
    deviceSpec : IDeviceSpec
        Devices of the runtime that is to load the network.
    options : OptimizerOptions, optional

    Returns
    -------
    optimized : IOptimizedNetwork
    messages : tuple of str
        Warnings about layers that go to another backend than the most preferred one.

    Raises
    ------
    RuntimeError
        If there are no preferences, or none of them is there; if no backend takes a layer; if
        layers do not go together.
    """
    options = OptimizerOptions() if options is None else options
    is_listed = isinstance(backendPreferences, list | tuple)
    if not (
        isinstance(network, INetwork)
        and is_listed
        and all(isinstance(backend, BackendId) for backend in backendPreferences)
        and isinstance(deviceSpec, IDeviceSpec)
        and isinstance(options, OptimizerOptions)
    ):
        raise wrong_arguments("Optimize")
    names = [backend.Get() for backend in backendPreferences]
    if not names:
        raise RuntimeError("Invoked Optimize with no backends specified")
    if options.m_ReduceFp32ToBf16:
        raise RuntimeError(
            "BFloat16 optimization is currently ignored. In order to use Bf16 optimization Please"
            " use the FastMathEnabled backend option for CpuAcc or GpuAcc."
        )
    backends = deviceSpec.armpy_ids(names)
    if not backends:
        raise RuntimeError(
            f"None of the preferred backends {_listed(names)} are supported. Current platform"
            f" provides {_listed(deviceSpec.supported)}"
        )
    source = network.parsed or lower_network(network.layers)
    chosen = armpy.OptimizerOptions(reduce_fp32_to_fp16=options.m_ReduceFp32ToFp16)
    optimized: armpy.OptimizedNetwork | Graph
    messages: tuple[str, ...] = ()
    with runtime_errors():
        runtime = deviceSpec.runtime(backends, _num_threads(options.m_ModelOptions))
        try:
            optimized = runtime.optimize_network(source.graph, chosen)
            refusals = optimized.placement.refusals
            messages = tuple(_warning(refusal, optimized.source) for refusal in refusals)
        except BackendCapabilityError as error:
            raise RuntimeError(f"Failed to assign a backend to each layer: {error}") from error
        except armpy.UnimplementedError:
            optimized = source.graph  # its shapes depend on the elements of inputs
    parts = NetworkParts(runtime, optimized, source.input_ids, source.output_ids)
    return IOptimizedNetwork(parts), messages


def _num_threads(options: Sequence[BackendOptions]) -> int | None:
    """Threads of CpuAcc, if options say how many; other options of Arm NN's backends change none.

    Backends of other options are not armpy's.
    """
    for backend in options:
        for option in backend:
            is_for_all = backend.GetBackendId().Get() in ("CpuAcc", "NumbaAcc")
            if is_for_all and option.GetName() == "NumberOfThreads" and option.value:
                return int(option.value)
    return None


def _warning(refusal: Refusal, graph: Graph) -> str:
    """Arm NN's words for a layer that a backend refuses."""
    types = ""
    for layer in graph.layers:
        if layer.id == refusal.layer_id and layer.inputs and layer.inputs[0] is not None:
            source, result = layer.inputs[0].info, layer.outputs[0].info
            types = (
                f" for input data type {source.data_type.name} and output data type"
                f" {result.data_type.name}"
            )
    return (
        f"WARNING: Layer of type {refusal.operation} is not supported on requested backend"
        f" {arm_nn_id(refusal.backend)}{types} (reason: {refusal.text}), falling back to the next"
        " backend."
    )


def _listed(names: Sequence[str]) -> str:
    return f"[{''.join(f'{name} ' for name in names)}]"
