"""The backend: subgraphs as .tflite models in memory, run by LiteRT's interpreter."""

from __future__ import annotations

import os
from collections.abc import Sequence

from armpy.backend import (
    BackendOption,
    DeviceInfo,
    IBackendContext,
    IEngineBackend,
    Numerics,
    OptionScope,
    OptionValues,
)
from armpy.frontends.tflite_writer.tflite import view_bytes
from armpy.types import BackendId, DeviceType
from armpy_litert import differences
from armpy_litert.engine import delegate_options, interpreter_module, load_delegate
from armpy_litert.programs import BACKEND_ID, LiteRtPrograms


class LiteRtBackend(IEngineBackend):
    """Runs whole subgraphs on LiteRT, with XNNPACK or with a delegate.

    Notes
    -----
    With a delegate it takes the layers that the delegate takes; others go to the next backend.
    """

    _backend_id: BackendId = BACKEND_ID
    _library: str = ""  # the delegate's, unless the option names another; XNNPACK if empty
    _device_type = DeviceType.OTHER  # after compiled code of armpy's own, which is faster

    version = "0.1.0"
    get_engine = staticmethod(LiteRtPrograms)
    find_difference = staticmethod(differences.find_difference)
    convert = staticmethod(view_bytes)
    _suffix = ".tflite"
    _may_end_process = True  # failed checks of LiteRT's kernels abort

    def get_id(self) -> BackendId:
        """``"LiteRt"``, or the id that `delegate_backend` was given."""
        return self._backend_id

    def get_api_version(self) -> str:
        """The version of the contract that it was written for."""
        return "2.8"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """The processor, or the delegate's hardware."""
        # XNNPACK's maxima and minima drop NaN, as comparisons of the processor do.
        numerics = Numerics(keeps_nan=False, flushes_subnormals=True)
        return (DeviceInfo(device_type=self._device_type, numerics=numerics),)

    @property
    def options(self) -> Sequence[BackendOption]:
        """Threads, the delegate, and the delegate's own options."""
        library = self._library or os.environ.get("ARMPY_LITERT_DELEGATE", "")
        return (
            BackendOption(
                "num_threads",
                0,
                "Threads that one execution uses; 0 is one per core.",
                OptionScope.MODEL,
                minimum=0,
                maximum=256,
            ),
            BackendOption(
                "delegate",
                library,
                "Path or name of a delegate's shared library; XNNPACK runs if it is empty.",
            ),
            BackendOption(
                "delegate_options",
                "",
                "Options of the delegate, as a JSON object of texts.",
            ),
        )

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Check that the interpreter and the delegate are there.

        Raises
        ------
        BackendUnavailableError
            If one of them is not.
        """
        interpreter_module(self._backend_id)
        if library := str(options["delegate"]):
            chosen = delegate_options(str(options["delegate_options"]), self._backend_id)
            load_delegate(library, chosen, self._backend_id)
        return None


def delegate_backend(
    backend_id: BackendId, library: str, device_type: DeviceType = DeviceType.ACCELERATOR
) -> type[LiteRtBackend]:
    """Make a backend of a delegate, for a vendor's entry point.

    Parameters
    ----------
    backend_id : str
        Id of the backend, such as ``"EdgeTpu"``.
    library : str
        Path or name of the delegate's shared library, such as ``"libedgetpu.so.1"``.
    device_type : DeviceType
        Hardware of the delegate.
    """

    class DelegateBackend(LiteRtBackend):
        """LiteRT with one vendor's delegate."""

    DelegateBackend._backend_id = backend_id
    DelegateBackend._library = library
    DelegateBackend._device_type = device_type
    return DelegateBackend
