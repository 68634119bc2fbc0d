"""Lets backends measure the fastest options for a model on this machine."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import click

from armpy.backend import TunedChoice, TuningRequest, TuningResult, request_tuning
from armpy.cli.cache.caches import clear_caches
from armpy.cli.inputs.complete import prepare_requested
from armpy.cli.inputs.request import InputRequest
from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.printer import Printer, print_json
from armpy.cli.registry import registry_of
from armpy.cli.runtime import make_runtime
from armpy.graph.network import Network
from armpy.model import Model, input_shapes
from armpy.ops import ElementwiseBinary
from armpy.plugins import BackendRegistry, preferred_backends
from armpy.plugins.proxy.guard import BackendProxy
from armpy.tensor import TensorInfo
from armpy.types import DataType

_COLUMNS = (
    *("saves us>", "gain>", "us before>", "us now>"),
    *("model's", "fastest", "choice", "layer"),
)

_LONGEST_NAME = 40

_OF_MACHINES = ("Machine", "BuiltInFigures", "FiguresInForce")
"""Capabilities that describe a machine's speed."""


def tune(
    context: click.Context,
    load_request: CliLoadRequest,
    inputs: InputRequest,
    measures_machine: bool,
    seconds: float,
    shows_all: bool,
    as_json: bool,
) -> None:
    """Measure the fastest options for MODEL on this machine, and store them."""
    if not (load_request.model or measures_machine):
        raise click.MissingParameter(param_type="argument", param_hint="MODEL", ctx=context)
    registry = registry_of(load_request)
    if measures_machine:
        clear_caches(registry, load_request.options.backends, "machine")
    results: list[TuningResult] = []
    open_sizes = ""
    stop = threading.Event()
    if load_request.model:
        # What a compiled model has compiled is decided already: its graph is prepared anew.
        untuned = load_request.with_options(code="never")
        with (
            request_tuning(seconds) as request,
            _stopped_by_interrupt(request) as stop,
            load_model(untuned) as model,
        ):
            results = request.results
            if inputs.says_shapes:
                prepare_requested(model, inputs)
            else:
                open_sizes = input_shapes(model, {}).fix
    else:
        # All is said but which model: any network has backends measure the machine.
        network = Network()
        value = network.input("x", TensorInfo((1,), DataType.FLOAT32))
        network.output("y", network.add(ElementwiseBinary(), value, value))
        with request_tuning(seconds):  # of which backends compare figures that choose kernels
            Model(network, runtime=make_runtime(load_request, registry)).close()
    machines = _machines(registry, load_request.options.backends) if measures_machine else {}
    if as_json:
        document = {
            "model": load_request.model,
            "results": list(map(asdict, results)),
            "is_stopped": stop.is_set(),
        }
        print_json(document | ({"machines": machines} if measures_machine else {}))
    else:
        print_machines(machines)
        if load_request.model:
            print_tuning(results, shows_all=shows_all)
            if open_sizes and not results:
                click.echo(open_sizes)
            if stop.is_set():
                click.echo("stopped: the results so far are stored")
    if any(result.problem for result in results):
        context.exit(1)


def _machines(registry: BackendRegistry, backends: Sequence[str] | None) -> dict[str, str]:
    """Return the backends' knowledge of the machine."""
    guarded = [BackendProxy(backend) for backend in preferred_backends(registry, backends)]
    capabilities = {backend.get_id(): backend.get_capabilities() for backend in guarded}
    return {
        name: "; ".join(str(known[fact]) for fact in _OF_MACHINES if fact in known)
        for name, known in capabilities.items()
        if "Machine" in known
    }


def print_machines(machines: Mapping[str, str]) -> None:
    """Print what backends have measured of the machine."""
    printer = Printer()
    for backend_id, text in machines.items():
        printer.heading(f"{backend_id}: this machine")
        for line in text.split("; "):
            printer.line(line)


@contextmanager
def _stopped_by_interrupt(request: TuningRequest) -> Iterator[threading.Event]:
    """Have the first Ctrl-C end the search and not the command; whether there was one."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread hears of signals
        return

    def end_search(*_: object) -> None:
        stop.set()
        request.extend(-math.inf)
        signal.signal(signal.SIGINT, before)
        click.echo("stopping; the results are stored ... (Ctrl-C again drops them)", err=True)

    before = signal.signal(signal.SIGINT, end_search)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def print_tuning(results: Sequence[TuningResult], *, shows_all: bool = False) -> None:
    """Print the results for each part of a model: gains, the largest first.

    Parameters
    ----------
    shows_all : bool
        Whether there is a row also for what stays as it is.
    """
    printer = Printer()
    if not results:
        printer.line("no backend that runs the model has anything to measure")
    for result in results:
        printer.heading(f"{result.backend_id}: {result.what}")
        choices = sorted(result.choices, key=lambda choice: -_saved_us(choice))
        gains = [choice for choice in choices if _saved_us(choice) > 0]
        shown = choices if shows_all else gains
        if shown:
            printer.table(_COLUMNS, map(_row, shown))
        printer.line(_total(result))
        if not shows_all and (left := _left(choices)):
            printer.line(f"{left}; --all lists them")


def _total(result: TuningResult) -> str:
    """Return the gain in all, or the reason why there was none."""
    if result.problem:
        return f"problem: {result.problem}"
    if not 0 < result.after_us < result.before_us:
        return f"all together: {result.before_us:.4g} us; nothing that is faster was found"
    gain = result.before_us / result.after_us
    return (
        f"all together: {result.before_us:.4g} us before, {result.after_us:.4g} us now"
        f" ({gain:.2f} times as fast)"
    )


def _left(choices: Sequence[TunedChoice]) -> str:
    """Return how many choices stay as they are, and why."""
    num_late = sum(not choice.measured for choice in choices)
    num_same = sum(bool(choice.measured) and _saved_us(choice) <= 0 for choice in choices)
    texts = []
    if num_same:
        choices_stay = "choice stays as it is" if num_same == 1 else "choices stay as they are"
        texts.append(f"{num_same} {choices_stay}, as nothing is certain to be faster")
    if num_late:
        texts.append(f"{num_late} not tried, as there was no time left")
    return "; ".join(texts)


def _saved_us(choice: TunedChoice) -> float:
    """Microseconds that a choice saves."""
    return choice.modelled_us - choice.measured_us if choice.measured else 0.0


def _row(choice: TunedChoice) -> tuple[str, ...]:
    """A line of the table."""
    layer = choice.layer
    if len(layer) > _LONGEST_NAME:  # converters join many names; the last one says most
        layer = f"…{layer[1 - _LONGEST_NAME :]}"
    if not choice.measured:
        tried = ("", "", "", "", choice.modelled, "not tried: no time left")
        return (*tried, choice.what, layer)
    gain = choice.modelled_us / choice.measured_us if choice.measured_us else 1.0
    return (
        f"{_saved_us(choice):.4g}",
        f"{gain:.2f}",
        f"{choice.modelled_us:.4g}",
        f"{choice.measured_us:.4g}",
        choice.modelled,
        choice.measured,
        choice.what,
        layer,
    )
