from __future__ import annotations

import re
from pathlib import Path

import pytest

import armpy
from armpy.backend import BackendOption
from armpy.cli.__main__ import main
from armpy.cli.registry import parse_backend_options, split_option
from armpy.errors import BackendUnavailableError, InvalidArgumentError
from armpy.model import Model
from armpy.plugins import BackendRegistry
from tests.support.command_line import Cli
from tests.support.dynamic_modules import module_source, write_module
from tests.support.fake_backends import FakeBackend, registry_of

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")


class Tunable(FakeBackend):
    @property
    def options(self) -> tuple[BackendOption, ...]:
        return (
            BackendOption("num_threads", 0, "Threads to use.", minimum=0),
            BackendOption("fast_math", False, "Whether rounding may differ."),
        )


@pytest.fixture
def registry() -> BackendRegistry:
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


def test_values_are_of_the_declared_types(registry: BackendRegistry) -> None:
    given = [("Acme.Npu", "num_threads", "2"), ("Acme.Npu", "fast_math", "on")]
    values = parse_backend_options(registry, given)
    assert values == {"Acme.Npu": {"num_threads": 2, "fast_math": True}}


def test_an_option_that_is_given_twice_is_an_error(registry: BackendRegistry) -> None:
    given = [("Acme.Npu", "num_threads", "2"), ("Acme.Npu", "num_threads", "3")]
    with pytest.raises(InvalidArgumentError, match="num_threads: the option is given twice"):
        parse_backend_options(registry, given)


def test_an_unknown_option_names_the_nearest(registry: BackendRegistry) -> None:
    message = r"Acme.Npu.threads: .* no option 'threads'.*Did you mean 'num_threads'\?"
    with pytest.raises(InvalidArgumentError, match=message):
        parse_backend_options(registry, [("Acme.Npu", "threads", "2")])


def test_a_value_that_is_not_allowed_is_told_with_what_is(registry: BackendRegistry) -> None:
    with pytest.raises(InvalidArgumentError, match="Expected int at least 0; got -1"):
        parse_backend_options(registry, [("Acme.Npu", "num_threads", "-1")])


def test_an_option_of_a_backend_that_is_not_there_names_those_that_are(
    registry: BackendRegistry,
) -> None:
    with pytest.raises(BackendUnavailableError, match=r"no backend 'Acme'.*one of Acme\.Npu"):
        parse_backend_options(registry, [("Acme", "num_threads", "1")])


SPEAKING = """
from armpy.backend import BackendOption

Backend.options = (BackendOption("greeting", "hello", "What it prints."),)
Backend.create_backend_context = lambda self, options: print("it says", options["greeting"])
"""


@pytest.mark.parametrize("command", ["run", "inspect"])
def test_a_directorys_backend_is_used_with_the_options_given(
    command: str, tmp_path: Path, cli: Cli
) -> None:
    write_module(tmp_path / "m", "acme_npu_backend", module_source("AcmeNpu", extra=SPEAKING))
    arguments = ["--dynamic-backends-path", str(tmp_path / "m")]
    arguments += ["--backend-option", "AcmeNpu.greeting=good morning"]
    out = cli.out(command, MODEL, *arguments)
    assert out.startswith("it says good morning\n")
    assert "\nplacement: 10 layers: AcmeNpu 10;" in out


def test_a_wrong_option_on_the_command_line_is_a_usage_error(cli: Cli) -> None:
    assert "the backend has no option 'threads'" in cli.err(
        "run", MODEL, "--backend-option", "CpuRef.threads=1"
    )


KEY = "ed25519:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
"""32 bytes of ones."""


def test_whose_code_is_used_reaches_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Model] = []

    def load(*args: object, **options: object) -> Model:
        seen.append(armpy_load(*args, **options))  # type: ignore[arg-type]
        return seen[-1]

    armpy_load = armpy.load
    monkeypatch.setattr(armpy, "load", load)
    assert main(["run", MODEL, "--trusted-key", KEY, "--code", "signed"]) == 0
    assert main(["run", MODEL]) == 0
    options = [model.runtime.options for model in seen]
    assert [(one.trusted_keys, one.code) for one in options] == [
        ((b"\1" * 32,), "signed"),
        ((), "trusted"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trusted-key", "ed25519:AAAA"], "expected 32 bytes that are not all zero"),
        (["--trusted-key", "absent.pem"], "the key cannot be read: No such file"),
        (["--code", "any"], "'any' is not one of 'trusted', 'signed', 'never'"),
    ],
)
def test_keys_and_choices_that_cannot_be_are_usage_errors(
    arguments: list[str], message: str, cli: Cli
) -> None:
    assert message.lower() in cli.err("run", MODEL, *arguments).lower()
