"""Rules about a process from the backend's import to the interpreter's end."""

from __future__ import annotations

from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NothingToKeepError, ViolationError, check
from armpy_conformance.contract.networks import samples
from armpy_conformance.processes.own_process import FIRST_STAGES, OwnProcess, observe

_MOST_IDLE = 0.03
"""Processor time per second that a process without executions may take."""

_LONGEST_END_S = 5.0

_MOST_SHOWN = 5


def imports_change_nothing(subject: BackendUnderTest) -> None:
    """Importing the backend changes neither settings nor functions that other libraries share."""
    _check_stage(observed(subject), FIRST_STAGES[0])


def a_whole_life_changes_nothing(subject: BackendUnderTest) -> None:
    """Settings are as before after the first use of a backend, and after it was closed."""
    own = observed(subject)
    for stage in FIRST_STAGES[1:]:
        _check_stage(own, stage)


def no_files_are_left(subject: BackendUnderTest) -> None:
    """A process leaves no files in its working, home and temporary directories, or shared memory.

    What is kept for later goes to a folder below ``~/.cache``, or where an option says.
    """
    for place, names in observed(subject).files.items():
        shown = ", ".join(names[:_MOST_SHOWN])
        check(
            not names,
            f"{len(names)} files are left in {place}: {shown}. Delete them, or keep them in "
            "~/.cache or where an option says",
        )


def nothing_is_printed_at_any_time(subject: BackendUnderTest) -> None:
    """Neither the import nor the end of the interpreter writes to standard output or error."""
    text = observed(subject).output.strip()
    check(not text, f"the process writes {text[:200]!r}. Use logging")


def idle_backends_use_no_processor(subject: BackendUnderTest) -> None:
    """Half a second after an execution no thread of the backend keeps a processor busy."""
    share = observed(subject).idle_share
    check(
        share <= _MOST_IDLE,
        f"without executions the process uses {share:.0%} of a processor. Expected at most "
        f"{_MOST_IDLE:.0%}. Wait on a lock or a descriptor, not in a loop",
    )


def the_interpreter_ends(subject: BackendUnderTest) -> None:
    """The process ends by itself, soon, with exit code 0, and with all that it has started."""
    own = observed(subject)
    check(
        own.end_s is not None,
        "the interpreter does not end: an exit handler or a thread that is not a daemon waits",
    )
    code = own.exit_code
    end = f"with code {code}" if code >= 0 else f"by signal {-code}"
    check(code == 0, f"the process ends {end} after the backend was closed: {own.output[-300:]!r}")
    check(
        own.end_s is not None and own.end_s <= _LONGEST_END_S,
        f"the interpreter takes {own.end_s:.1f} s to end. Expected at most {_LONGEST_END_S:g} s",
    )
    check(
        not own.children,
        f"processes are left after the interpreter's end: {', '.join(own.children)}. End them",
    )


def observed(subject: BackendUnderTest) -> OwnProcess:
    """The life of the backend in a process of its own, which is observed once."""
    if subject.own_options is None:
        raise NothingToKeepError("it was given as an object, which another process cannot make")
    if subject.is_isolated:
        raise NothingToKeepError("it runs in a process of its own, which armpy starts and ends")
    own = subject.own_process
    if own is None:
        cases = samples(subject)
        own = observe(subject.backend_id, subject.own_options, cases, subject.environment)
        subject.own_process = own
    if own.problem:
        end = f", exit code {own.exit_code}" if own.exit_code else ""
        raise ViolationError(f"in a process of its own: {own.problem}{end}. {own.output[-300:]}")
    return own


def _check_stage(own: OwnProcess, stage: str) -> None:
    """Raise a `ViolationError` if a stage has changed something."""
    changes = own.changes[stage]
    shown = "; ".join(changes[:_MOST_SHOWN])
    check(not changes, f"{stage} changes {shown}. Leave it to the application, or restore it")
