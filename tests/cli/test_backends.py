"""Listing backends, and the options that choose and set them."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import armpy
from armpy.backend import (
    BackendOption,
    DeviceFigures,
    DeviceInfo,
    IBackendInternal,
    PerformanceFigures,
)
from armpy.cli.registry import parse_backend_options, split_option
from armpy.errors import DeviceNotFoundError, InvalidArgumentError
from armpy.model import Model
from armpy.plugins import BackendRegistry
from armpy.types import DataType
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.fake_distributions import FakeSite, fake_site
from armpy_testing.command_line import Cli, armpy_command, find_backends_in

for library in ("click", "PIL"):
    pytest.importorskip(library)


def broken() -> IBackendInternal:
    raise OSError("the device is asleep")


@pytest.fixture
def one_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only backend cannot be loaded."""
    monkeypatch.setattr(logging.getLogger("armpy.plugins"), "disabled", True)
    registry = BackendRegistry()
    registry.register("Broken", broken, source="test 1.0")
    find_backends_in(registry, monkeypatch)


@pytest.mark.usefixtures("one_broken")
def test_listing_loads_nothing(cli: Cli) -> None:
    (entry,) = cli.document("backends")["backends"]
    filled = {name: value for name, value in entry.items() if value}
    assert filled == {"id": "Broken", "kind": "code", "source": "test 1.0", "status": "found"}


def test_a_backend_whose_device_is_missing_says_so(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deviceless(FakeBackend):
        def create_backend_context(self, options: object) -> None:
            raise DeviceNotFoundError("there is no NPU", fix="Plug it in")

    registry = registry_of(Deviceless("Npu"))
    find_backends_in(registry, monkeypatch)
    assert cli.document("devices")["unavailable"] == {"Npu": "there is no NPU. Plug it in"}
    assert "Npu cannot be used: there is no NPU. Plug it in" in cli.out("devices")


def test_devices_are_listed_with_their_figures(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Measured(FakeBackend):
        def get_devices(self) -> tuple[DeviceInfo, ...]:
            figures = DeviceFigures({DataType.FLOAT32: PerformanceFigures(exec_time=0.5)})
            return (DeviceInfo(figures=figures),)

    find_backends_in(registry_of(Measured("Npu")), monkeypatch)
    (device,) = cli.document("devices")["devices"]
    assert device["backend"] == "Npu"
    lines = cli.out("devices").splitlines()
    assert lines[0] == "Npu"
    assert lines[1].startswith(f"type {device['type']}, version ")
    assert lines[-1].split()[:2] == ["float32", "0.5"]


def test_a_backend_that_was_not_tried_is_not_said_to_work(cli: Cli) -> None:
    shown = cli.out("backends", "--all")
    assert "installed, not tried" in shown
    assert "armpy doctor tries whether they can be used on this machine" in shown


def test_no_backend_is_said_to_be_none(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    find_backends_in(BackendRegistry(), monkeypatch)
    assert cli.out("backends") == "no backend is installed\n"


def test_a_distributions_version_is_listed_without_loading_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_site(tmp_path) as site:
        site.install_backend("Acme", version="2.5")
        assert armpy_command(["backends"]) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row == ["Acme", "2.5", "installed,", "not", "tried", "acme-backend", "2.5"]


@pytest.mark.slow
def test_listing_fifty_distributions_imports_none_of_them(tmp_path: Path) -> None:
    site = FakeSite(tmp_path)
    for number in range(50):
        site.install_backend(f"Fake{number:02}")
    code = (
        "import sys; from armpy.cli.__main__ import main; main(['backends', '--json']); "
        "print([name for name in sys.modules if name.startswith(('fake', 'armpy_'))])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    document, imported = done.stdout.rsplit("}", 1)
    assert imported.strip() == "[]"
    ids = [b["id"] for b in json.loads(document + "}")["backends"]]
    assert [name for name in ids if name.startswith("Fake")] == [f"Fake{n:02}" for n in range(50)]


MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")


class Tunable(FakeBackend):
    @property
    def options(self) -> tuple[BackendOption, ...]:
        return (
            BackendOption("num_threads", 0, "Threads to use.", minimum=0),
            BackendOption("fast_math", False, "Whether rounding may differ."),
        )


@pytest.fixture
def tunable() -> BackendRegistry:
    return registry_of(Tunable("Acme.Npu"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Acme.num_threads=2", ("Acme", "num_threads", "2")),
        ("Acme.Npu.path=/a.b=c", ("Acme.Npu", "path", "/a.b=c")),
        ("Acme.name=", ("Acme", "name", "")),
    ],
)
def test_an_option_is_split_at_the_first_equals_and_the_last_point_before(
    text: str, parts: tuple[str, str, str]
) -> None:
    assert split_option(text) == parts


@pytest.mark.parametrize("text", ["", "Acme", "Acme.x", "x=1", ".x=1", "Acme.=1"])
def test_what_is_no_option_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"ID.NAME=VALUE; got '{re.escape(text)}'"):
        split_option(text)


def test_values_are_of_the_declared_types(tunable: BackendRegistry) -> None:
    option_texts = [("Acme.Npu", "num_threads", "2"), ("Acme.Npu", "fast_math", "on")]
    values = parse_backend_options(tunable, option_texts)
    assert values == {"Acme.Npu": {"num_threads": 2, "fast_math": True}}


def test_an_option_that_is_given_twice_is_an_error(tunable: BackendRegistry) -> None:
    option_texts = [("Acme.Npu", "num_threads", "2"), ("Acme.Npu", "num_threads", "3")]
    with pytest.raises(InvalidArgumentError, match="num_threads: the option is given twice"):
        parse_backend_options(tunable, option_texts)


SPEAKING = """
from armpy.backend import BackendOption

Backend.options = (BackendOption("greeting", "hello", "What it prints."),)
Backend.create_backend_context = lambda self, options: print("it says", options["greeting"])
"""


@pytest.mark.parametrize("command", ["inspect"])
def test_a_directorys_backend_is_used_with_the_options_given(
    command: str, tmp_path: Path, cli: Cli
) -> None:
    write_module(tmp_path / "m", "acme_npu_backend", module_source("AcmeNpu", extra=SPEAKING))
    arguments = ["--dynamic-backends-path", str(tmp_path / "m")]
    arguments += ["--backend-option", "AcmeNpu.greeting=good morning"]
    out = cli.out(command, MODEL, *arguments)
    assert out.startswith("it says good morning\n")
    assert "\nplacement: 10 layers: AcmeNpu 10;" in out


KEY = "ed25519:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
"""32 bytes of ones."""


def test_whose_code_is_used_reaches_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Model] = []

    def load(*args: object, **options: object) -> Model:
        seen.append(armpy_load(*args, **options))  # type: ignore[arg-type]
        return seen[-1]

    armpy_load = armpy.load
    monkeypatch.setattr(armpy, "load", load)
    assert armpy_command(["run", MODEL, "--trusted-key", KEY, "--code", "signed"]) == 0
    assert armpy_command(["run", MODEL]) == 0
    options = [model.runtime.options for model in seen]
    assert [(option.trusted_keys, option.code) for option in options] == [
        ((b"\1" * 32,), "signed"),
        ((), "trusted"),
    ]
