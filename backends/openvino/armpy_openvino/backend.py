"""The backend: subgraphs as models in memory, compiled by OpenVINO for one of its devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy.backend import (
    BackendOption,
    DeviceInfo,
    IBackendContext,
    IEngineBackend,
    Numerics,
    OptionScope,
    OptionValues,
)
from armpy.errors import BackendUnavailableError, DeviceNotFoundError
from armpy.frontends.tflite_writer.tflite import view_bytes
from armpy.types import BackendId, DeviceType
from armpy_openvino import differences
from armpy_openvino.engine import BACKEND_ID, available_devices
from armpy_openvino.programs import OpenVinoPrograms

# The processor comes after compiled code of armpy's own, which is faster.
_TYPES = {"CPU": DeviceType.OTHER, "GPU": DeviceType.GPU, "NPU": DeviceType.ACCELERATOR}


class OpenVinoBackend(IEngineBackend):
    """Runs whole subgraphs on one of OpenVINO's devices."""

    version = "0.1.0"
    get_engine = staticmethod(OpenVinoPrograms)
    find_difference = staticmethod(differences.find_difference)
    convert = staticmethod(view_bytes)
    _suffix = ".tflite"

    def get_id(self) -> BackendId:
        """``"OpenVino"``."""
        return BACKEND_ID

    def get_api_version(self) -> str:
        """The version of the contract that it was written for."""
        return "2.8"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """Devices that OpenVINO finds, the processor first."""
        try:
            names = available_devices()
        except BackendUnavailableError:
            names = ("CPU",)  # the context names the missing package
        # Its maxima drop NaN, as comparisons of the processor do, and begin at finite numbers.
        numerics = Numerics(keeps_nan=False, keeps_infinity=False, flushes_subnormals=True)
        return tuple(
            DeviceInfo(
                name=name,
                device_type=_TYPES.get(name.partition(".")[0], DeviceType.OTHER),
                numerics=numerics,
            )
            for name in names
        )

    def compiles_slowly(self, options: Mapping[str, object]) -> bool:
        """Return whether the chosen device is another one than the processor."""
        return options.get("device", "CPU") != "CPU"

    @property
    def options(self) -> Sequence[BackendOption]:
        """Device, and how OpenVINO is to compile for it."""
        model = OptionScope.MODEL
        about = "The device, as 'armpy devices' lists them."
        # Of several devices the core adds the choice by itself.
        is_only = len(self.get_devices()) == 1
        device = (BackendOption("device", "CPU", about),) if is_only else ()
        return (
            *device,
            BackendOption(
                "num_threads",
                0,
                "Threads that one execution uses on the processor; 0 leaves it to OpenVINO.",
                model,
                minimum=0,
                maximum=256,
            ),
            BackendOption(
                "hint",
                "LATENCY",
                "What OpenVINO compiles for.",
                model,
                choices=("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"),
            ),
            BackendOption(
                "precision",
                "f32",
                "The type that float32 is computed in.",
                model,
                choices=("f32", "f16", "bf16"),
            ),
            BackendOption(
                "low_precision",
                False,
                "Whether 8-bit layers use 8-bit instructions on the processor: faster, but their "
                "sums saturate where it has no VNNI.",
                model,
            ),
        )

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Check that OpenVINO and the device are there.

        Raises
        ------
        BackendUnavailableError
            If OpenVINO is not.
        DeviceNotFoundError
            If the device is not.
        """
        names, device = available_devices(), str(options["device"])
        if device not in names:
            raise DeviceNotFoundError(
                f"OpenVINO does not find the device '{device}'",
                where=BACKEND_ID,
                expected=f"one of {', '.join(names)}",
                fix="Install the device's driver, or choose another device",
            )
        return None
