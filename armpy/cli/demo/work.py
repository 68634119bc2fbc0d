"""Draws a digit, lets a network of the project's own read it, and shows how."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
import webbrowser
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from importlib import resources
from io import StringIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

import armpy
from armpy.backend import CacheUse
from armpy.cli.demo.drawing import draw_digit, label_of
from armpy.cli.demo.pixels import (
    Line,
    bar,
    beside,
    half_blocks,
    has_blocks,
    has_colours,
    print_lines,
)
from armpy.cli.printer import print_json
from armpy.cli.profile_report import steps_of
from armpy.cli.report.command import command as report_command
from armpy.model import Model
from armpy.types import REFERENCE_BACKEND_ID

Pixels = npt.NDArray[np.uint8]

_SHOWN_SIZE = 32
_INPUT_SIZE = 16
_LEAST_RUNS = 20
_MOST_RUNS = 2000
_TIMED_S = 0.3
_BAR = 20
_TOP = 3
_MOST_OPERATIONS = 5


@dataclass(frozen=True, slots=True)
class DigitAnswer:
    """Digit read by the demo's network, with the backends that it ran on.

    Parameters
    ----------
    backends : dict of str to int
        How many layers each took.
    scores : tuple of 10 float
        Of each digit; 1 together, but for rounding.
    load_s : float
        Seconds until the model could be called.
    num_compiled : int
        Kernels that had to be compiled for that.
    run_us : float
        Median of the runs, in microseconds.
    num_runs : int
    """

    backends: dict[str, int]
    scores: tuple[float, ...]
    load_s: float
    num_compiled: int
    run_us: float
    num_runs: int

    @property
    def answer(self) -> int:
        """The digit with the highest score."""
        return max(range(len(self.scores)), key=self.scores.__getitem__)


@dataclass(frozen=True, slots=True)
class OperationTime:
    """Time of all layers of one kind in a run.

    Parameters
    ----------
    operation : str
    run_us : float
        Sum of the medians of its steps.
    share : float
        Of all steps together.
    """

    operation: str
    run_us: float
    share: float


def demo(digit: int, browser: bool, report: str | None, as_json: bool) -> None:
    """See a small network read a digit that is drawn for it."""
    picture = draw_digit(label_of(digit))
    size = picture.width
    pixels = np.asarray(picture.reduce(size // _INPUT_SIZE), np.uint8)
    show = _Show(is_silent=as_json)
    with resources.as_file(resources.files("armpy.cli.demo") / "digits_int8.tflite") as file:
        path = str(file)
        reference = read(path, pixels, (REFERENCE_BACKEND_ID,))
        shown = np.asarray(picture.reduce(size // _SHOWN_SIZE), np.uint8)
        show.answer(digit, shown, reference)
        show.preparing()
        fastest = read(path, pixels, None)
        operations = operation_times(path, pixels)
        show.speed(reference, fastest, operations)
        opens = browser and not as_json and has_browser()
        page = write_report(path, picture, report) if report or opens else None
        show.report(page, opens=opens)
    if as_json:
        readings = {"reference": asdict(reference), "fastest": asdict(fastest)}
        times = [asdict(operation) for operation in operations]
        about = {"digit": digit, "answer": fastest.answer, "is_right": fastest.answer == digit}
        print_json({**about, **readings, "operations": times})


def read(path: str, pixels: Pixels, backends: tuple[str, ...] | None) -> DigitAnswer:
    """Load the network, let it read a picture, and time it.

    Parameters
    ----------
    path : str
        Of the network: int8 with scale 1/255 and zero point -128 in, a score per digit out.
    pixels : ndarray, uint8, shape (16, 16)
        Light ink on a dark ground.
    backends : tuple of str, optional
        All installed ones if left out.
    """
    begin = time.perf_counter()
    with armpy.load(path, backends=backends) as model:
        given = _elements(pixels)
        result = model(given)
        load_s = time.perf_counter() - begin
        quantization = model.outputs[0].info.quantization
        assert quantization is not None  # the network is the project's own
        scale, zero_point = quantization.scales[0], quantization.zero_points[0]
        scores = [(int(stored) - zero_point) * scale for stored in np.asarray(result).reshape(-1)]
        times = _times_us(model, given)
        placement = model.placement
        layers = {} if placement is None else dict(placement.layers_by_backend)
        num_compiled = 0 if placement is None else sum(map(_compiled, placement.cache_uses))
    return DigitAnswer(
        layers, tuple(scores), load_s, num_compiled, statistics.median(times), len(times)
    )


def operation_times(path: str, pixels: Pixels) -> tuple[OperationTime, ...]:
    """What each kind of layer takes, the longest first."""
    with (
        armpy.Runtime(armpy.RuntimeOptions(profiling=True)) as runtime,
        armpy.load(path, runtime=runtime) as model,
    ):
        _times_us(model, _elements(pixels))
        profiler = model.profiler
        assert profiler is not None  # the options ask for one
        names = {(step.name, step.backend) for step in steps_of(profiler)}
        durations: dict[str, list[float]] = {}
        for event in profiler.events:
            if (event.name, event.backend) in names:
                durations.setdefault(event.name, []).append(event.duration_us)
    sums: dict[str, float] = {}
    for name, times in durations.items():
        operation = name.split(" ")[0]
        sums[operation] = sums.get(operation, 0.0) + statistics.median(times)
    whole = sum(sums.values()) or 1.0
    return tuple(
        OperationTime(name, us, us / whole)
        for name, us in sorted(sums.items(), key=lambda pair: -pair[1])
    )


def has_browser() -> bool:
    """Whether there is a browser with windows for somebody who looks at a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    has_windows = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    try:
        return has_windows and webbrowser.get() is not None
    except webbrowser.Error:
        return False


def write_report(model: str, picture: Image.Image, report: str | None) -> Path:
    """Write the page that ``armpy report`` makes of the model and the picture.

    Parameters
    ----------
    model : str
        Path of the network.
    picture : Image
        What it is run on.
    report : str, optional
        Where the page goes; a new folder for passing files if left out.
    """
    page = Path(report) if report else Path(tempfile.mkdtemp(prefix="armpy-demo-"), "digits.html")
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        drawn = Path(folder, "digit.png")
        picture.save(drawn)
        arguments = [model, "-o", str(page), "--image", str(drawn), "--runs", str(_LEAST_RUNS)]
        report_command.main(arguments, prog_name="armpy report", standalone_mode=False)
    return page


def _elements(pixels: Pixels) -> npt.NDArray[np.int8]:
    """The network's input, shape (1, 16, 16, 1): a pixel less 128."""
    return (pixels.astype(np.int16) - 128).astype(np.int8).reshape(1, *pixels.shape, 1)


def _times_us(model: Model, given: npt.NDArray[np.int8]) -> list[float]:
    """Microseconds of runs one after the other, until there are enough of them."""
    times: list[float] = []
    end = time.perf_counter() + _TIMED_S
    while len(times) < _LEAST_RUNS or (time.perf_counter() < end and len(times) < _MOST_RUNS):
        begin = time.perf_counter()
        model(given)
        times.append((time.perf_counter() - begin) * 1e6)
    return times


def _compiled(use: object) -> int:
    """How many kernels a use of a cache did not find: ``NumbaAcc: 11 kernels: miss (...)``."""
    words = use.what.split() if isinstance(use, CacheUse) and not use.is_hit else []
    return int(words[0]) if len(words) == 2 and words[1] == "kernels" else 0


class _Show:
    """Prints what is found, as it is found.

    Parameters
    ----------
    is_silent : bool
        Print nothing at all.
    """

    def __init__(self, *, is_silent: bool) -> None:
        self._is_silent = is_silent
        self._coloured = has_colours()
        self._blocks = has_blocks()

    def answer(self, digit: int, pixels: Pixels, reading: DigitAnswer) -> None:
        """Show the picture, and what was read."""
        style = "bold green" if reading.answer == digit else "bold red"
        right: list[Line] = [
            [("A small network reads it as ", ""), (label_of(reading.answer), style), (":", "")],
            [],
        ]
        best = sorted(range(10), key=lambda number: -reading.scores[number])[:_TOP]
        for number in best:
            score = reading.scores[number]
            length = bar(score, _BAR, blocks=self._blocks)
            is_best = number == reading.answer
            line = [(f"{number}  ", "bold" if is_best else ""), (f"{score:6.1%}  ", "")]
            right.append([*line, (length, style if is_best else "")])
        right += [[], [(f"CpuRef, with NumPy: {_duration(reading.run_us)} a run", "dim")]]
        left = half_blocks(pixels, coloured=self._coloured, blocks=self._blocks)
        self._print([[(f"A {label_of(digit)}, drawn just now", "")], [], *_fitted(left, right), []])

    def preparing(self) -> None:
        """Say what takes time now."""
        text = "Preparing it for this processor; compiling takes up to a minute, the first time ..."
        self._print([[(text, "")]])

    def speed(
        self, reference: DigitAnswer, fastest: DigitAnswer, operations: tuple[OperationTime, ...]
    ) -> None:
        """Show where it ran, how fast, and where the time goes."""
        where = ", ".join(f"{name} {count}" for name, count in fastest.backends.items())
        how = (
            f"{fastest.num_compiled} kernels compiled, and kept for the next time"
            if fastest.num_compiled
            else "from what earlier runs have kept"
        )
        is_same = fastest.scores == reference.scores
        ratio = reference.run_us / fastest.run_us
        lines: list[Line] = [
            [("Ready:   ", "bold"), (f"in {fastest.load_s:.2g} s, {how}", "")],
            [("Layers:  ", "bold"), (where, "")],
            [
                ("Speed:   ", "bold"),
                (
                    f"{_duration(fastest.run_us)} a run, {1e6 / fastest.run_us:,.0f} in a second; ",
                    "",
                ),
                (f"{ratio:.0f} times CpuRef's", "bold green" if ratio > 1 else ""),
            ],
            [
                ("Answer:  ", "bold"),
                (
                    "every score the same as CpuRef's" if is_same else "other scores than CpuRef's",
                    "",
                ),
            ],
            [],
            [("Where the time of a run goes", "bold")],
        ]
        for each in operations[:_MOST_OPERATIONS]:
            length = bar(each.share, _BAR, blocks=self._blocks)
            lines.append([(f"{each.operation:<23}{each.share:4.0%}  ", ""), (length, "cyan")])
        self._print([*lines, []])

    def report(self, page: Path | None, *, opens: bool) -> None:
        """Tell of the report, open it, and say how to go on."""
        if page is not None:
            self._print([[("Report:  ", "bold"), (str(page), "")], []])
        if page is not None and opens:
            webbrowser.open(page.resolve().as_uri())
        lines: list[Line] = [
            [("Now with models and pictures of yours:", "bold")],
            [("  armpy run MODEL PICTURES", "")],
            [("  armpy inspect MODEL", "")],
            [("  armpy report MODEL -o report.html", "")],
            [("  armpy benchmark MODEL", "")],
        ]
        self._print(lines)

    def _print(self, lines: list[Line]) -> None:
        """Print lines at once, also where stdout is a pipe."""
        if not self._is_silent:
            print_lines(lines, coloured=self._coloured)
            sys.stdout.flush()


def _fitted(left: list[Line], right: list[Line]) -> list[Line]:
    """Lines beside others, or under them where a terminal is narrow."""
    width = max(sum(len(text) for text, _ in line) for line in right) + 4 + _SHOWN_SIZE
    if width <= shutil.get_terminal_size().columns:
        return beside(left, right)
    return [*left, [], *right]


def _duration(microseconds: float) -> str:
    """A time for people."""
    if microseconds < 1000:
        return f"{microseconds:.3g} µs"
    return f"{microseconds / 1000:.3g} ms"
