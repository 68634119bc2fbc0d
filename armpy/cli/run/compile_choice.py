"""Whether a run waits for what is compiled, and what it does behind its answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from armpy.errors import ArmpyError

if TYPE_CHECKING:
    from armpy.model.model import Model


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
