"""The backends: subgraphs as ONNX models in memory, run by providers of ONNX Runtime itself."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import (
    BackendOption,
    DeviceInfo,
    IBackendContext,
    IEngineBackend,
    Numerics,
    OptionScope,
    OptionValues,
    PreparationRequest,
)
from armpy.errors import DeviceNotFoundError
from armpy.ops import Activation, ActivationFunction
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DataType
from armpy_onnxruntime import differences
from armpy_onnxruntime.engine import (
    PROVIDERS,
    Provider,
    require,
)
from armpy_onnxruntime.export import export_model
from armpy_onnxruntime.programs import OnnxPrograms


class OnnxRuntimeBackend(IEngineBackend):
    """Runs whole subgraphs with one execution provider; by default ONNX Runtime's own, the CPU."""

    _provider: Provider = PROVIDERS[0]
    _suffix = ".onnx"

    version = "0.1.0"
    find_difference = staticmethod(differences.find_difference)
    convert = staticmethod(export_model)

    def get_id(self) -> BackendId:
        """The provider's, such as ``"OrtCpu"``."""
        return self._provider.backend_id

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.8"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """The provider's hardware."""
        # Its maxima drop NaN, as comparisons of the processor do.
        numerics = Numerics(keeps_nan=False)
        return (DeviceInfo(device_type=self._provider.device_type, numerics=numerics),)

    @property
    def options(self) -> Sequence[BackendOption]:
        """Threads."""
        return (
            BackendOption(
                "num_threads",
                0,
                "Threads that one execution uses; 0 is one per core.",
                OptionScope.MODEL,
                minimum=0,
                maximum=256,
            ),
        )

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Check that the engine, its provider and a device are there.

        Raises
        ------
        BackendUnavailableError
            If one of them is not; a DeviceNotFoundError for all providers but the CPU.
        """
        provider = self._provider
        # First, so that packages are asked for only where they would help.
        missing = provider.missing_device()
        if not missing:
            runtime = require("onnxruntime", provider.backend_id)
            if provider.name not in runtime.get_available_providers():
                missing = f"the installed ONNX Runtime was built without {provider.name}"
        if not missing:
            require("onnx", provider.backend_id)
            if provider.is_nvidia:  # ONNX Runtime has these without their libraries, too
                missing = self._refusal_of_relu()
        if missing:
            raise DeviceNotFoundError(missing, where=provider.backend_id, fix=provider.remedy)
        return None

    def _refusal_of_relu(self) -> str:
        """Say why the provider does not run a small layer; asked once in a process."""
        support = self.get_layer_support(PreparationRequest())
        info = TensorInfo((1, 8), DataType.FLOAT32)
        return support.is_layer_supported(Activation(ActivationFunction.RELU), [info], [info]).text

    def get_engine(self) -> OnnxPrograms:
        """The engine, which makes sessions of models."""
        return OnnxPrograms(self._provider)


def _provider_backend(provider: Provider) -> type[OnnxRuntimeBackend]:
    """The backend of one provider."""

    class ProviderBackend(OnnxRuntimeBackend):
        """ONNX Runtime with one execution provider."""

        _provider = provider

    return ProviderBackend


OrtCpu, OrtCuda, OrtTensorRt, OrtCoreMl, OrtDirectMl = map(_provider_backend, PROVIDERS)
