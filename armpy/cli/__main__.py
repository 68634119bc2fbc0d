"""Entry of the `armpy` command: handles errors, interrupts and closed pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from armpy.cli.settings import CommandSettings
from armpy.errors import ArmpyError, InvalidArgumentError, ends_in_command

# The gate to all commands: libraries may be missing, and errors and debugging are rare.
# ruff: noqa: PLC0415

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `armpy` command, with the process's arguments if none are given.

    Returns the exit code: 0, 1 for a failure, 2 for a command line that cannot be followed, 130
    after an interrupt.
    """
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks must not stop the output.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    settings = CommandSettings()
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        code = _run(words, settings)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget(sys.stdout)
        return EXIT_FAILURE
    except Exception as error:  # noqa: BLE001  # the command's boundary: one line, no traceback
        if settings.debug:
            import traceback

            traceback.print_exc()
        _complain(_describe(error, settings))
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:  # of a full disk: it would be written once more at exit
            _forget(sys.stdout)
        return EXIT_USAGE if isinstance(error, InvalidArgumentError) else EXIT_FAILURE
    return code


def _run(arguments: list[str], settings: CommandSettings) -> int:
    """Run the click application; usage errors are printed here."""
    try:
        import click
    except ModuleNotFoundError:
        from armpy.core.installation import install_command

        _complain(f"click not found. Run: {install_command({'armpy[cli]': '.'})}")
        return EXIT_USAGE
    from armpy.cli.app import app

    try:
        # app.main would print a line of its own after an interrupt.
        with (
            _logging_to_stderr(settings),
            app.make_context("armpy", arguments, obj=settings) as context,
        ):
            app.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            error.show()  # the whole help, as click 8.1 does
            return error.exit_code
        from armpy.cli.usage import usage_message

        _complain(usage_message(error))
        return error.exit_code
    return 0


def _describe(error: Exception, settings: CommandSettings) -> str:
    if isinstance(error, ArmpyError):
        from armpy.cli.written_option import written_option

        return error.text(written_option)
    if isinstance(error, OSError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"out of memory. {error}".rstrip(". ") + "."
    if isinstance(error, ImportError):
        return str(error) if ends_in_command(str(error)) else f"{error}. Run: pip check"
    more = "" if settings.debug else " (--debug shows where)"
    return f"{type(error).__name__}: {error}{more}"


def _complain(text: str) -> None:
    from armpy.core.units import printable  # nothing goes wrong as a rule

    if sys.stderr is not None:
        print("armpy: error:", printable(" ".join(text.split())), file=sys.stderr)


def _forget(stream: TextIO) -> None:
    """Discard the rest of the output to a closed pipe, also at exit."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


@contextmanager
def _logging_to_stderr(settings: CommandSettings) -> Iterator[None]:
    """Send log records to stderr as long as a block runs."""
    import logging

    from armpy.core.units import printable

    class LineFormatter(logging.Formatter):
        """One line per record; tracebacks only where they were asked for."""

        def format(self, record: logging.LogRecord) -> str:
            message = printable(" ".join(record.getMessage().split()))
            text = f"armpy: {record.levelname.lower()}: {message}"
            if settings.debug and record.exc_info:
                text += "\n" + self.formatException(record.exc_info)
            return text

    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    before = root.level
    settings.root_logger = root
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


if __name__ == "__main__":
    sys.exit(main())
