"""``armpy tune``, on backends that have something to measure, or nothing."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import armpy
from armpy.ops import Pooling2d, PoolingAlgorithm
from armpy.store.entries import Entries
from armpy_testing.backends.dynamic_modules import (
    forget_private_modules,
    module_source,
    write_module,
)
from armpy_testing.command_line import armpy_command
from armpy_testing.digits import MODEL
from armpy_testing.installed import skip_without_commands_of_backends

for library in ("click", "PIL"):
    pytest.importorskip(library)
skip_without_commands_of_backends()

DIGITS = str(MODEL)

TUNER = """
    import signal

    from armpy.backend import TunedChoice, TuningResult, requested_tuning

    LONG = "many;names;that;a;converter;has;joined;as/it/does"


    def optimize(self, view, asked):
        request = requested_tuning()
        if request is not None:
            assert 0 < request.remaining_s <= 7
            for _ in range(INTERRUPTS):
                signal.raise_signal(signal.SIGINT)
            if INTERRUPTS:
                assert request.remaining_s == 0
            choices = [
                TunedChoice("same", "tile", "5x6", "5x6", 7.0, 7.0),
                TunedChoice("first", "tile", "1x2", "3x4", 30.0, 20.0),
                TunedChoice(LONG, "tile", "1x2"),
            ]
            request.add(TuningResult("Tuner", "a part", 100.0, AFTER, choices, PROBLEM))
        return super(Backend, self).optimize_subgraph_view(view, asked)


    Backend.optimize_subgraph_view = optimize
"""

Tune = Callable[..., int]


@pytest.fixture
def tune(tmp_path: Path) -> Iterator[Tune]:
    """Runs the command with the backend, which says that there is a problem."""

    def run(*options: str, problem: str = "", after: float = 80, interrupts: int = 0) -> int:
        settings = f"    PROBLEM, AFTER, INTERRUPTS = {problem!r}, {after}, {interrupts}\n"
        source = module_source("Tuner", extra=f"{settings}{TUNER}")
        write_module(tmp_path, "acme_tuner_backend", source)
        where = ["--dynamic-backends-path", str(tmp_path), "--backends", "Tuner"]
        return armpy_command(["tune", DIGITS, *where, "--seconds", "7", *options])

    yield run
    forget_private_modules()


def test_what_was_found_is_shown(tune: Tune, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune() == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines[0] == "Tuner: a part"
    assert re.split(r"\s{2,}", lines[1])[:4] == ["saves us", "gain", "us before", "us now"]
    assert lines[2].split() == ["10", "1.50", "30", "20", "1x2", "3x4", "tile", "first"]
    assert lines[3] == "all together: 100 us before, 80 us now (1.25 times as fast)"
    assert lines[4] == (
        "1 choice stays as it is, as nothing is certain to be faster; "
        "1 not tried, as there was no time left; --all lists them"
    )


def test_every_choice_is_listed_on_request_what_saves_most_first(
    tune: Tune, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune("--all") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert [line.split()[:2] for line in lines[2:4]] == [["10", "1.50"], ["0", "1.00"]]
    assert "not tried: no time left" in lines[4]
    assert lines[4].endswith("…;that;a;converter;has;joined;as/it/does")
    assert "--all" not in lines[5]


def test_what_was_found_is_given_as_json(tune: Tune, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune("--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["model"] == DIGITS
    (result,) = document["results"]
    assert (result["backend_id"], result["before_us"], result["after_us"]) == ("Tuner", 100, 80)
    assert document["is_stopped"] is False
    assert result["choices"][1] == {
        "layer": "first",
        "what": "tile",
        "modelled": "1x2",
        "measured": "3x4",
        "modelled_us": 30,
        "measured_us": 20,
    }


def test_what_is_not_faster_in_the_end_is_no_failure(
    tune: Tune, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(after=100) == 0
    assert "all together: 100 us; nothing that is faster was found" in capsys.readouterr().out


def test_an_interrupt_ends_the_search_and_keeps_what_was_found(
    tune: Tune, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert tune(interrupts=1) == 0
    captured = capsys.readouterr()
    assert "all together: 100 us before, 80 us now" in captured.out
    assert captured.out.endswith("stopped: the results so far are stored\n")
    assert "Ctrl-C again drops them" in captured.err
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_ends_the_command(
    tune: Tune, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(interrupts=2) not in (0, 1, 2)
    assert "all together" not in capsys.readouterr().out


def test_a_problem_is_printed_and_fails(tune: Tune, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(problem="the disk is full") == 1
    assert "problem: the disk is full" in capsys.readouterr().out


def test_backends_that_have_nothing_to_measure_do_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert armpy_command(["tune", DIGITS, "--backends", "CpuRef"]) == 0
    assert "no backend that runs the model has anything to measure" in capsys.readouterr().out


def test_open_sizes_are_measured_as_they_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = armpy.Network()
    image = network.input("image", armpy.TensorInfo((1, None, None, 1), armpy.DataType.FLOAT32))
    window = Pooling2d(PoolingAlgorithm.MAX, (3, 3))
    network.output("most", network.add(window, image))
    path = tmp_path / "open.armpy"
    with armpy.Model(network) as model:
        model.prepare({"image": (1, 8, 8, 1)})
        model.save(path)
    assert armpy_command(["tune", str(path), "--backends", "CpuRef"]) == 0
    assert "The model takes several sizes: " in capsys.readouterr().out
    assert (
        armpy_command(["tune", str(path), "--backends", "NumbaAcc", "--shapes", "image=1,9,9,1"])
        == 0
    )
    assert capsys.readouterr().out.count("NumbaAcc: 1 layer ") == 2  # for 8 x 8 as well


def test_an_unlikely_time_is_no_division_by_zero(
    tune: Tune, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(after=0) == 0
    assert "nothing that is faster was found" in capsys.readouterr().out


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "nan"])
def test_other_times_are_usage_errors(seconds: str) -> None:
    assert armpy_command(["tune", DIGITS, "--seconds", seconds]) == 2


GAUGE = """
    from pathlib import Path

    from armpy.store.entries import Entries

    KEPT = Entries(Path(FOLDER), 1 << 20, "machine")


    def figures(self):
        parts = KEPT.read("speed", "key")
        return {"Machine": "unknown" if parts is None else bytes(parts[0]).decode()}


    def optimize(self, view, asked):
        if KEPT.read("speed", "key") is None:
            KEPT.write("speed", "key", [b"clock 3 GHz; memory 4 GB/s"], "")
        return super(Backend, self).optimize_subgraph_view(view, asked)


    Backend.get_caches = lambda self: (KEPT,)
    Backend.get_capabilities = figures
    Backend.optimize_subgraph_view = optimize
"""


def test_a_machine_is_measured_again_without_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = Entries(tmp_path / "kept", 1 << 20, "machine")
    entries.write("speed", "key", [b"clock 1 GHz"], "")
    extra = GAUGE.replace("FOLDER", repr(str(tmp_path / "kept")))
    write_module(tmp_path, "acme_gauge_backend", module_source("Gauge", extra=extra))
    where = ["--dynamic-backends-path", str(tmp_path), "--backends", "Gauge"]
    assert armpy_command(["tune", "--machine", *where]) == 0
    assert capsys.readouterr().out == "\nGauge: this machine\nclock 3 GHz\nmemory 4 GB/s\n"
    assert armpy_command(["tune", "--machine", "--json", *where]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["machines"] == {"Gauge": "clock 3 GHz; memory 4 GB/s"}
    forget_private_modules()


def test_a_model_is_missing_unless_the_machine_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert armpy_command(["tune"]) == 2
    assert "Missing argument MODEL" in capsys.readouterr().err
