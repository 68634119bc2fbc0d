"""PyArmNN's IRuntime: loads optimised networks and runs them."""

from __future__ import annotations

import itertools
import logging

from armpy.profiling import ProfilingDetails
from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.options.runtime_options import CreationOptions, INetworkProperties
from armpy_compat.pyarmnn.running.device_spec import IDeviceSpec
from armpy_compat.pyarmnn.running.loaded_model import LoadedModel, Pairs
from armpy_compat.pyarmnn.running.optimized_network import IOptimizedNetwork
from armpy_compat.pyarmnn.running.profiler import IProfiler
from armpy_compat.pyarmnn.swig import SwigObject, wrong_arguments
from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo

_log = logging.getLogger("armpy.pyarmnn")

_DETAILS = {
    constants.ProfilingDetailsMethod_DetailsWithEvents: ProfilingDetails.WITH_EVENTS,
    constants.ProfilingDetailsMethod_DetailsOnly: ProfilingDetails.ONLY,
}


class IRuntime(SwigObject):
    """Loads optimised networks and runs them.

    Parameters
    ----------
    options : CreationOptions

    Raises
    ------
    RuntimeError
        If options do not go together, or the folder of backends cannot be used.
    """

    def __init__(self, options: CreationOptions) -> None:
        if not isinstance(options, CreationOptions):
            raise TypeError(
                "in method 'new_IRuntime', argument 1 of type 'CreationOptions const &'"
            )
        external = options.m_ProfilingOptions
        if external.m_TimelineEnabled and not external.m_EnableProfiling:
            raise RuntimeError(
                "It is not possible to enable timeline reporting without profiling being enabled"
            )
        if external.m_EnableProfiling:
            _log.warning(
                "External profiling is not available. Use IRuntime.GetProfiler(network)"
                ".EnableProfiling(True)."
            )
        self._spec = IDeviceSpec(options.m_DynamicBackendsPath)
        self._models: dict[int, LoadedModel] = {}
        self._numbers = itertools.count()

    def GetDeviceSpec(self) -> IDeviceSpec:
        """Return the backends."""
        return self._spec

    def LoadNetwork(
        self, network: IOptimizedNetwork, properties: INetworkProperties | None = None
    ) -> tuple[int, str]:
        """Prepare a network, which the runtime takes over.

        Returns
        -------
        network_id : int
            0 for the first network.
        messages : str
            Empty: errors are raised.

        Raises
        ------
        RuntimeError
            If it cannot be prepared, or was loaded before.
        """
        if not isinstance(network, IOptimizedNetwork) or not isinstance(
            properties, INetworkProperties | None
        ):
            raise wrong_arguments("IRuntime_LoadNetwork")
        if not network.thisown:
            raise RuntimeError(
                "The optimised network was loaded before. Call Optimize again for another one."
            )
        details = ProfilingDetails.UNDEFINED
        if properties is not None:
            details = _DETAILS.get(properties.m_OutputNetworkDetailsMethod, details)
        model = LoadedModel(network.parts, details)
        if properties is not None and properties.m_ProfilingEnabled:
            model.profile(True)
        network.thisown = False
        network_id = next(self._numbers)
        self._models[network_id] = model
        return network_id, ""

    def EnqueueWorkload(self, networkId: int, inputTensors: Pairs, outputTensors: Pairs) -> None:
        """Run a network; results are written into the tensors for outputs.

        Parameters
        ----------
        networkId : int
        inputTensors : sequence of (int, ConstTensor)
        outputTensors : sequence of (int, Tensor)

        Raises
        ------
        RuntimeError
            If there is no such network; if tensors are missing or do not fit.
        TypeError
            If these are not pairs of ids and tensors.
        """
        model = self._models.get(networkId)
        if model is None:
            raise RuntimeError("Failed to enqueue workload for network.")
        try:
            model.run(inputTensors, outputTensors)
        except (TypeError, AttributeError) as error:
            raise TypeError(
                "in method 'IRuntime_EnqueueWorkload', argument 3 of type 'std::vector< std::pair<"
                " int,armnn::ConstTensor > > const &', or argument 4 of type 'std::vector<"
                " std::pair< int,armnn::Tensor > > const &'"
            ) from error

    def UnloadNetwork(self, networkId: int) -> None:
        """Forget a network.

        Raises
        ------
        RuntimeError
            If there is no such network.
        """
        model = self._models.pop(networkId, None)
        if model is None:
            raise RuntimeError("Failed to unload network.")
        model.unload()

    def GetInputTensorInfo(self, networkId: int, layerId: int) -> TensorInfo:
        """Return the description of an input.

        Raises
        ------
        RuntimeError
            If there is no such network or input.
        """
        return self._model(networkId).input_info(layerId)

    def GetOutputTensorInfo(self, networkId: int, layerId: int) -> TensorInfo:
        """Return the description of an output.

        Raises
        ------
        RuntimeError
            If there is no such network or output.
        """
        return self._model(networkId).output_info(layerId)

    def GetProfiler(self, networkId: int) -> IProfiler:
        """Return the profiler of a network.

        Raises
        ------
        RuntimeError
            If there is no such network.
        """
        if networkId not in self._models:
            raise RuntimeError("Failed to get profiler")
        return IProfiler(self._models[networkId])

    def _model(self, network_id: int) -> LoadedModel:
        if network_id not in self._models:
            raise RuntimeError(f"A Network with an id of {network_id} does not exist.")
        return self._models[network_id]
