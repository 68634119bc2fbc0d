"""Backends of plugins: one for each device that a plugin's library brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import cache
from typing import Any

import numpy as np

from armpy.backend import (
    BackendOption,
    DeviceInfo,
    IBackendContext,
    ILayerSupport,
    Numerics,
    OptimizationViews,
    OptionScope,
    OptionValue,
    OptionValues,
    PreparationRequest,
)
from armpy.errors import (
    ArmpyError,
    BackendUnavailableError,
    InvalidArgumentError,
    UnimplementedError,
)
from armpy.graph import SubgraphView
from armpy.graph.network import Network
from armpy.ops import (
    Activation,
    ActivationFunction,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    FullyConnected,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DataType
from armpy_onnxruntime import differences
from armpy_onnxruntime.backend import OnnxRuntimeBackend
from armpy_onnxruntime.engine import require
from armpy_onnxruntime.export import export_model
from armpy_onnxruntime.known_faults import NEEDED_OPTIONS, sound_parts
from armpy_onnxruntime.plugins import PluginDevice, devices_of
from armpy_onnxruntime.process_state import kept_arithmetic
from armpy_onnxruntime.programs import OnnxPrograms

_WEIGHTED = (Convolution2d, DepthwiseConvolution2d, FullyConnected)
_FINE = 1.0 + 2.0**-13
"""A number of float32 that float16 and bfloat16 round to 1."""
_SIZE = 32
"""Rows and columns of the weights that are measured; some providers leave small ones alone."""


class PluginBackend(OnnxRuntimeBackend):
    """Runs whole subgraphs on one device of a plugin."""

    device: PluginDevice

    # Whether layers with weights are refused, as the provider rounds these.
    _refuses_weights = False

    @property
    def version(self) -> str:  # type: ignore[override]
        """The plugin's version."""
        return self.device.version

    def get_id(self) -> BackendId:
        """``"Ort"`` and the provider's name, such as ``"OrtWebGpu"``."""
        return self.device.backend_id

    def get_devices(self) -> Sequence[DeviceInfo]:
        """The plugin's device."""
        # Nothing is known of the provider's maxima, which may drop NaN and begin at finite numbers.
        numerics = Numerics(keeps_nan=False, keeps_infinity=False, flushes_subnormals=True)
        name = f"{self.device.name} by {self.device.vendor} on {self.device.hardware}"
        return (DeviceInfo(name, self.device.device_type, numerics=numerics),)

    @property
    def options(self) -> Sequence[BackendOption]:
        """Threads, and the provider's own options."""
        return (
            *super().options,
            BackendOption(
                "provider_options",
                "",
                "Options of the provider itself, as NAME=VALUE with commas between them.",
                OptionScope.MODEL,
            ),
        )

    def get_diagnosis(self) -> Sequence[str]:
        """The provider, its device, and where its library lies."""
        runtime = require("onnxruntime", self.get_id())
        device = self.device
        return (
            f"provider {device.name} {device.version} by {device.vendor}, on {device.hardware}",
            f"library {device.library}",
            f"ONNX Runtime {runtime.__version__}",
        )

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Check that the provider computes at least one of three small layers.

        Raises
        ------
        BackendUnavailableError
            If it does not, or the engine is missing.
        """
        require("onnx", self.get_id())
        support = self.get_layer_support(PreparationRequest(relaxed=True))
        info = TensorInfo((1, 8), DataType.FLOAT32)
        constant = TensorInfo((8, 8), DataType.FLOAT32, is_constant=True)
        layers: tuple[tuple[Operation, list[TensorInfo]], ...] = (
            (Activation(ActivationFunction.RELU), [info]),
            (ElementwiseBinary(), [info, info]),
            (FullyConnected(), [info, constant]),
        )
        reasons = []
        for operation, inputs in layers:
            answer = support.is_layer_supported(operation, inputs, [info])
            if answer:
                return None
            reasons.append(answer.text)
        raise BackendUnavailableError(
            f"the device computes none of {len(layers)} small layers ({reasons[0]})",
            where=self.get_id(),
            fix="Report it to the plugin's author",
        )

    def get_engine(self) -> OnnxPrograms:
        """The engine, which makes sessions on the device."""
        return PluginPrograms(self.device)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Ask the engine; unless float32 may be relaxed, weights have to be kept in float32."""
        asked = copy(self)
        if not request.relaxed:
            options = {**self._runtime_options, **request.model_options}
            about = self.get_engine().describe(options)
            asked._refuses_weights = _rounds_weights(self.device, tuple(about.items()))
        return super(PluginBackend, asked).get_layer_support(request)

    def convert(self, view: SubgraphView) -> bytes:
        """Convert a part, unless the provider computes it wrong as a whole."""
        if len([*sound_parts(self.device.name, view)]) > 1:
            raise UnimplementedError(
                f"the provider {self.device.name} computes these layers wrong as one part",
                where=self.get_id(),
            )
        return export_model(view)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Compile the subgraph, in as few parts as the provider computes right."""
        views = OptimizationViews()
        for part in sound_parts(self.device.name, view):
            views.substitutions += super().optimize_subgraph_view(part, request).substitutions
        return views

    def find_difference(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> str:
        """Return how the provider's result of a layer differs from armpy's."""
        if self._refuses_weights and isinstance(operation, _WEIGHTED):
            return (
                f"the provider {self.device.name} rounds weights of float32 to 16 bits. Let it, by "
                "relaxed float32 of the network, or set a provider option that keeps them"
            )
        return differences.find_difference(operation, inputs, outputs)


def open_plugin(path: str) -> tuple[type[PluginBackend], ...]:
    """Register a plugin's library, and make a backend of each device that it brings.

    Parameters
    ----------
    path : str
        Path of a library that exports ``CreateEpFactories``.

    Raises
    ------
    BackendUnavailableError
        If ONNX Runtime is missing or does not take the library; a DeviceNotFoundError if there is
        no device.
    """
    return tuple(
        type(device.backend_id, (PluginBackend,), {"device": device, "__doc__": "A plugin's."})
        for device in devices_of(path)
    )


class PluginPrograms(OnnxPrograms):
    """Makes sessions on a plugin's device.

    Parameters
    ----------
    device : PluginDevice
    """

    def __init__(self, device: PluginDevice) -> None:
        super().__init__()
        self._device = device

    @property
    def backend_id(self) -> BackendId:
        """The plugin's."""
        return self._device.backend_id

    def describe(self, options: Mapping[str, object]) -> dict[str, OptionValue]:
        """Threads, the provider's options, and its version."""
        own = read_provider_options(str(options.get("provider_options", "")), self.backend_id)
        for name, value in NEEDED_OPTIONS.get(self._device.name, {}).items():
            if own.setdefault(name, value) != value:
                raise InvalidArgumentError(
                    f"with {name}={own[name]} results do not depend on the inputs alone",
                    where=f"{self.backend_id}.provider_options",
                    expected=f"'{name}={value}'",
                    actual=f"'{name}={own[name]}'",
                    fix="Leave it out",
                )
        return {
            **super().describe(options),
            "provider_options": ",".join(f"{name}={value}" for name, value in own.items()),
            "provider_version": self._device.version,
        }

    def around(self) -> AbstractContextManager[None]:
        """Leave the thread's rounding as it is, whatever the library does."""
        return kept_arithmetic(self._device.name)

    def choose_provider(self, options: Any, about: Mapping[str, OptionValue]) -> list[str] | None:
        """Have the session compute on the device; nothing is left to the processor's kernels."""
        given = read_provider_options(str(about["provider_options"]), self.backend_id)
        options.add_provider_for_devices([self._device.handle], given)
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        return None


def read_provider_options(text: str, where: str) -> dict[str, str]:
    """Values by name; InvalidArgumentError if the text is not of that form."""
    values = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise InvalidArgumentError(
                "this is not an option of a provider",
                where=f"{where}.provider_options",
                expected="NAME=VALUE",
                actual=f"'{part}'",
            )
        values[name.strip()] = value.strip()
    return values


@cache
def _rounds_weights(device: PluginDevice, about: tuple[tuple[str, OptionValue], ...]) -> bool:
    """Measure whether weights of float32 lose digits; False where it cannot be measured."""
    net = Network("weights")
    x = net.input("x", TensorInfo((1, _SIZE), DataType.FLOAT32))
    weights = net.constant(np.full((_SIZE, _SIZE), _FINE, np.float32))
    net.output("y", net.add(FullyConnected(), x, weights))
    graph = net.build()
    result = np.zeros((1, _SIZE), np.float32)
    one = np.zeros((1, _SIZE), np.float32)
    one[0, 0] = 1.0
    try:
        model = export_model(SubgraphView.of(graph, graph.layers))
        PluginPrograms(device).compile(model, dict(about)).execute([one], [result])
    except ArmpyError:  # the layer is refused, with the reason
        return False
    return bool(np.any(result != np.float32(_FINE)))
