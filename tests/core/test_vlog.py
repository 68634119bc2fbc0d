"""Verbose logging: tags, texts, and receivers."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import armpy
from armpy import DataType, Model, Network, TensorInfo
from armpy.backend import is_vlog_on, vlog
from armpy.core.vlog import TAGS, is_on, set_vlog
from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.types import DeviceType
from armpy_testing.backends.device_memory import BufferDevice
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    set_vlog("")


def tags_on() -> set[str]:
    return {tag for tag in TAGS if getattr(is_on, tag)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        ("1", set(TAGS)),
        ("all", set(TAGS)),
        ("model", {"model"}),
        ("model compilation", {"model", "compilation"}),
        ("cpuexe,driver", {"cpuexe", "driver"}),
        ("execution:manager", {"execution", "manager"}),
        (" execution, manager:model ", {"execution", "manager", "model"}),
        ("model,,driver", {"model", "driver"}),
        ("driver all", set(TAGS)),
    ],
)
def test_tags_are_a_list_by_space_comma_or_colon(text: str, expected: set[str]) -> None:
    set_vlog(text)
    assert tags_on() == expected


def test_the_documents_tags_are_there() -> None:
    assert {"model", "compilation", "execution", "cpuexe", "manager", "driver"} <= set(TAGS)


@pytest.mark.parametrize("text", ["models,driver", "Driver:driver", "driver;model driver"])
def test_what_is_no_tag_is_an_error_in_the_log(text: str, caplog: pytest.LogCaptureFixture) -> None:
    set_vlog(text)
    assert tags_on() == {"driver"}
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.ERROR, "armpy.core.vlog")
    assert "there is no tag" in record.getMessage()
    assert record.getMessage().endswith("Correct the variable, or unset it")


def doubling() -> Network:
    """``y = x + x``."""
    net = Network()
    x = net.input("x", TensorInfo((2,), DataType.FLOAT32))
    net.output("y", net.add(armpy.ops.ElementwiseBinary(), x, x, name="twice"))
    return net


def run(runtime: Runtime) -> None:
    """Load and execute."""
    model = Model(doubling(), runtime)
    inputs = {"x": np.ones(2, np.float32)}
    model.run(inputs)
    model.bind(inputs)()


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("model", ["1 layers, inputs x FLOAT32 (2,), outputs y FLOAT32 (2,)"]),
        ("compilation", ["Npu is offered 1 layers from", "'twice'"]),
        ("execution", ["begins with inputs (2,)", "ended after"]),
        ("manager", ["backend 'Npu' ", "backend 'CpuRef' ", "is set up"]),
        ("driver", ["Npu / optimize_subgraph_view", "Npu / is_layer_supported", "create_workload"]),
    ],
)
def test_a_tag_logs_its_subject(
    tag: str, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    set_vlog(tag)
    with runtime_of(BufferDevice()) as runtime:
        run(runtime)
    assert {record.name for record in caplog.records if "vlog" in record.name} == {
        f"armpy.core.vlog.{tag}"
    }
    messages = "\n".join(r.getMessage() for r in caplog.records if "vlog" in r.name)
    for text in said:
        assert text in messages


def test_nothing_is_said_of_tags_that_are_off(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="armpy.core.vlog"), runtime_of() as runtime:
        run(runtime)
    assert not [record for record in caplog.records if "vlog" in record.name]


def test_layers_that_a_processor_executes_are_logged_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_vlog("cpuexe")
    with Runtime(RuntimeOptions(backends=["CpuRef"])) as runtime:
        run(runtime)
    messages = [record.getMessage() for record in caplog.records if "vlog" in record.name]
    assert len(messages) == 2  # a call, and a bound one
    assert all(text.startswith("CpuRef: ") and "'twice'" in text for text in messages)


def test_layers_of_other_devices_are_not(caplog: pytest.LogCaptureFixture) -> None:
    set_vlog("cpuexe")
    with runtime_of(FakeBackend("Npu", device_type=DeviceType.ACCELERATOR)) as runtime:
        run(runtime)
    assert not [record for record in caplog.records if "Npu" in record.getMessage()]


def test_executions_that_fail_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    set_vlog("execution")
    npu = FakeBackend("Npu", faults={"execute": armpy.BackendError("on fire")})
    with runtime_of(npu) as runtime, pytest.raises(armpy.BackendError, match="on fire"):
        run(runtime)
    messages = [record.getMessage() for record in caplog.records if "vlog" in record.name]
    assert len(messages) == 2
    assert "begins" in messages[0]
    assert "failed after" in messages[1]
    assert "on fire" in messages[1]


PROGRAM = """
import numpy as np
{setup}
from armpy import Runtime
Runtime()
from armpy.core.vlog import vlog
vlog("driver", "hello %d", 7)
vlog("model", "unheard")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        ("", "armpy.core.vlog.driver: hello 7\n"),
        (
            "import logging; logging.basicConfig(format='mine %(message)s', level=10)",
            "mine hello 7\n",
        ),
        ("import logging; logging.basicConfig(format='mine %(message)s')", "mine hello 7\n"),
    ],
)
def test_the_environment_turns_tags_on(setup: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(setup=setup)],
        env={"ARMPY_VLOG": "driver", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if "hello" in line or "unheard" in line]
    assert "\n".join([*lines, ""]) == expected


def test_a_backend_asks_whether_a_tag_is_on() -> None:
    set_vlog("driver")
    assert [is_vlog_on("driver"), is_vlog_on("model")] == [True, False]
    with pytest.raises(InvalidArgumentError, match="got 'acme'"):
        vlog("acme", "text")


def test_a_message_of_a_tag_that_is_off_is_never_put_together() -> None:
    class Loud:
        def __str__(self) -> str:
            raise AssertionError

    vlog("driver", "%s", Loud())
