"""The preference for NPUs: which backend comes first, and what is reported without one."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.backend import DeviceInfo, OptionValues
from armpy.errors import BackendCapabilityError, BackendUnavailableError
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import LoadOptions, Model
from armpy.ops import ElementwiseBinary
from armpy.types import DeviceType, Preference
from armpy_testing.backends.fake_backends import registry_of, runtime_of
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration
from armpy_testing.models.networks import chain, diamond, floats

X = floats(1, 2, 3, 4)
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def device(name: str, kind: DeviceType, **others: object) -> ScriptedBackend:
    return ScriptedBackend(name, declared=declaration(device_type=kind), **others)  # type: ignore[arg-type]


def test_without_an_npu_the_preference_is_an_error() -> None:
    gpu = device("Gpu", DeviceType.GPU)
    text = (
        "preference='npu': no backend has an NPU. Expected a device of type ACCELERATOR; "
        "got Gpu: GPU, CpuRef: CPU_REFERENCE. Install its backend"
    )
    with runtime_of(gpu, preference="npu") as runtime:
        with pytest.raises(BackendUnavailableError, match=text):
            Model(chain(), runtime)
        with pytest.raises(BackendUnavailableError, match=text):
            armpy.optimize(chain(), runtime)
    with pytest.raises(BackendUnavailableError, match="no backend has an NPU"):
        armpy.load(DIGITS, backends=["NumbaAcc", "CpuRef"], preference="npu")


def test_layers_that_run_elsewhere_are_a_warning_or_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    npu = device("Npu", DeviceType.ACCELERATOR, operations=[ElementwiseBinary])
    with runtime_of(npu, preference="npu") as runtime, caplog.at_level(logging.WARNING, "armpy"):
        model = Model(diamond(), runtime)
        np.testing.assert_array_equal(model(X), Model(diamond(), runtime_of())(X))
    assert "Npu does not do Activation" in caplog.text
    with (
        runtime_of(npu, preference="npu", on_fallback="error") as runtime,
        pytest.raises(BackendCapabilityError, match="1 layer does not run on Npu"),
    ):
        Model(diamond(), runtime)


class Cards(ScriptedBackend):
    """A backend with a GPU and an NPU, which records its options."""

    def __init__(self) -> None:
        super().__init__("Cards")
        self.chosen: list[object] = []

    def get_devices(self) -> tuple[DeviceInfo, ...]:
        return DeviceInfo("gpu", DeviceType.GPU), DeviceInfo("npu", DeviceType.ACCELERATOR)

    def create_backend_context(self, options: OptionValues) -> None:
        self.chosen.append(options["device"])


@pytest.mark.parametrize(
    ("preference", "given", "chosen"),
    [("preference", {}, "gpu"), ("npu", {}, "npu"), ("npu", {"device": "gpu"}, "gpu")],
)
def test_of_a_backends_devices_the_npu_is_chosen(
    preference: str, given: dict[str, str], chosen: str
) -> None:
    cards = Cards()
    options = RuntimeOptions(
        ["Cards"],
        registry=registry_of(cards),
        preference=Preference(preference),
        backend_options={"Cards": given},
    )
    with Runtime(options) as runtime:
        assert cards.chosen == [chosen]
        assert [backend.device.name for backend in runtime.backends] == [chosen]
        if (preference, chosen) == ("npu", "gpu"):
            with pytest.raises(BackendUnavailableError, match="got Cards: GPU"):
                Model(chain(), runtime)


def test_a_model_that_prefers_an_npu_is_not_kept() -> None:
    """Else a second load would report neither a missing NPU nor layers that run elsewhere."""
    assert LoadOptions(preference="npu").cache_key() is None
    assert LoadOptions(preference="fastest").cache_key() is not None
