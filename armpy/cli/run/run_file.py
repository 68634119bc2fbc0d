"""A run of a file on arrays or random numbers, with no other options."""

from __future__ import annotations

import armpy
from armpy.cli.progress import progress_shown
from armpy.cli.run.compile_choice import compile_choice, finish_compiling
from armpy.cli.run.report import show_run
from armpy.cli.run.run_model import RunRequest, run_model
from armpy.plugins.program_loaders import has_plugins


def run_file(path: str, inputs: tuple[str, ...], *, as_json: bool) -> bool:
    """Run a file and print what comes out; whether that was done.

    It is not where plugins are installed: what they print would have to be kept from stdout.
    """
    if has_plugins():
        return False
    choice = compile_choice(is_answer=not as_json)
    with progress_shown(), armpy.load(path, compile=choice) as loaded:
        report = run_model(loaded, RunRequest(inputs=inputs))
        show_run(path, report, as_json=as_json)
        finish_compiling(loaded)
    return True
