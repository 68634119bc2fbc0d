"""What the plugin boundary makes of a backend's own errors."""

from __future__ import annotations

import traceback

import pytest

from armpy.errors import ArmpyError, BackendError
from armpy.plugins.proxy.guarded_call import call_backend


def test_an_error_that_is_raised_again_and_again_keeps_the_traceback_of_the_last_time() -> None:
    busy = BackendError("busy", where="queue")

    def fails() -> None:
        raise busy

    lengths = set()
    for _ in range(5):
        with pytest.raises(BackendError, match=r"^A / fails / queue: busy\.$") as caught:
            call_backend("A", fails)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].name == "fails"
        lengths.add(len(frames))
    assert len(lengths) == 1
    assert (busy.__traceback__, busy.where) == (None, "queue")


class ExitingError(BackendError):
    """Leaves the process when it is asked for its text."""

    def __str__(self) -> str:
        raise SystemExit(3)


class UncopiedError(BackendError):
    """Cannot be copied."""

    def __copy__(self) -> str:
        return "no error"


@pytest.mark.parametrize("kind", [ExitingError, UncopiedError])
def test_what_an_errors_own_code_does_is_contained(kind: type[ArmpyError]) -> None:
    def fails() -> None:
        raise kind("oops")

    expected = f"^A / fails: the backend raised {kind.__name__}, which is damaged: "
    with pytest.raises(BackendError, match=expected) as caught:
        call_backend("A", fails)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fails"
