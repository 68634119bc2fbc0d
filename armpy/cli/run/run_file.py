"""A run of a file on arrays or random numbers, with no other options."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import armpy
from armpy.cli.progress import progress_shown
from armpy.cli.run.report import show_run
from armpy.cli.run.run_model import RunRequest, run_model
from armpy.errors import ArmpyError
from armpy.model import archive
from armpy.model.load_options import LoadOptions
from armpy.model.load_request import LoadRequest, begins_prepared
from armpy.plugins.discovery.entry_point_cache import installed_entry_points
from armpy.plugins.program_loaders import has_plugins

if TYPE_CHECKING:
    from armpy.model.model import Model


def run_file(
    path: str,
    inputs: tuple[str, ...],
    num_threads: int | None,
    logs: Callable[[], AbstractContextManager[None]],
    *,
    as_json: bool,
) -> bool:
    """Run a file and print what comes out; whether that was done.

    It is not where plugins are installed: what they print would have to be kept from stdout.

    Parameters
    ----------
    path : str
    inputs : tuple of str
        As of `RunRequest`.
    num_threads : int, optional
    logs : callable
        Shows what is logged in a block.
    as_json : bool
    """
    if has_plugins(installed_entry_points()):
        return False
    choice = compile_choice(is_answer=not as_json)
    options = LoadOptions(num_threads=num_threads, compile=choice)

    def run(loaded: Model) -> None:
        report = run_model(loaded, RunRequest(inputs=inputs))
        show_run(path, report, as_json=as_json)
        finish_compiling(loaded)

    # Random numbers are of the shapes that a prepared file is for: there is nothing to be logged,
    # nor to wait for.
    light = None
    if not inputs and begins_prepared(path):
        light = archive.light_loading.load_light(LoadRequest(path, options))
    if light is not None:
        with light:
            run(light)
    else:
        with logs(), progress_shown(), armpy.load(path, **options.given()) as loaded:
            run(loaded)
    return True


def compile_choice(*, is_answer: bool) -> str:
    """Choose for a command that does not say it; a value of `armpy.load`'s ``compile``.

    Parameters
    ----------
    is_answer : bool
        Whether the command gives one answer of whatever backend, and measures nothing.

    Notes
    -----
    Programs that read the answer are to get the same one each time, to the last bit.
    """
    is_for_people = is_answer and sys.stdout is not None and sys.stdout.isatty()
    return "background" if is_for_people else "wait"


def finish_compiling(model: Model) -> None:
    """Let what is compiled in the background come to its end, or the next run begins with it."""
    if not model.handle.is_compiling:
        return
    if sys.stdout is not None:
        sys.stdout.flush()  # the answer, before anything is waited for
    if sys.stderr is not None:
        text = "compiling for the next time (Ctrl-C leaves the rest to that)"
        print(f"armpy: {text}", file=sys.stderr, flush=True)
    try:
        model.handle.loaded.wait_compiled()
    except KeyboardInterrupt:
        return  # the answer is there, and what has been compiled is kept
    except ArmpyError:
        return  # the log has told it, and the answer is there
