"""Lets atheris (libFuzzer for Python) look for failures, guided by the backend's coverage."""

from __future__ import annotations

import multiprocessing
import os
import re
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from armpy.core.dataclass import dataclass
from armpy_nnapi.conformance.fuzz.judging import BytesJudge, Search

_CONTEXT = multiprocessing.get_context("spawn")
_MOST_BYTES = 512
_MEMORY_MIB = 8192
_SLOW_S = 60
"""A model that takes longer is a failure."""

_START_S = 120.0
_ARTIFACTS = ("crash-", "timeout-", "oom-")
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)|^#(\d+)\s", re.MULTILINE)


class FoundError(Exception):
    """Signals to atheris that an input is a failure."""


@dataclass(frozen=True, slots=True)
class GuidedFindings:
    """Findings of atheris."""

    inputs: tuple[bytes, ...]  # failures, still to be looked at
    num_models: int
    problem: str = ""  # why it has not worked; empty if it has


def is_available() -> bool:
    """Return whether atheris is installed."""
    return find_spec("atheris") is not None


def explore(search: Search, seed: int, count: int | None, seconds: float | None) -> GuidedFindings:
    """Look for a failure in a process of its own, which ends with the first one.

    Parameters
    ----------
    count : int, optional
        Maximum number of models.
    seconds : float, optional
        Time limit; one of both has to be given.
    """
    corpus = search.folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        artifacts, log, current = (Path(place, name) for name in ("artifacts", "log", "current"))
        artifacts.mkdir()
        log.touch()
        flags = [
            f"-seed={seed + 1}",  # 0 is one of libFuzzer's choosing
            f"-artifact_prefix={artifacts}/",
            f"-max_len={_MOST_BYTES}",
            f"-timeout={_SLOW_S}",
            f"-rss_limit_mb={_MEMORY_MIB}",
            "-print_final_stats=1",
            *([] if count is None else [f"-runs={count}"]),
            *([] if seconds is None else [f"-max_total_time={max(int(seconds), 1)}"]),
            str(corpus),
        ]
        process = _CONTEXT.Process(target=_explore, args=(search, flags, str(log), str(current)))
        process.start()
        process.join(None if seconds is None else seconds + _SLOW_S + _START_S)
        is_over = process.exitcode is not None
        process.kill()
        process.join()
        text = log.read_text(errors="replace")
        failures = tuple(_read(artifacts))
        numbers = [int(a or b) for a, b in _EXECUTED.findall(text)]
        problem = ""
        if not failures and process.exitcode != 0 and current.exists():
            failures = (
                current.read_bytes(),
            )  # that ended the process without libFuzzer's knowledge
        elif not failures and (process.exitcode != 0 or not is_over):
            end = f"code {process.exitcode}" if is_over else "no end in time"
            problem = f"atheris ended with {end}: {text.strip()[-500:]}"
        return GuidedFindings(failures, max(numbers, default=0), problem)


def _read(folder: Path) -> Iterator[bytes]:
    """The inputs that were kept as failures."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(_ARTIFACTS):
            yield path.read_bytes()


def _explore(
    search: Search, flags: list[str], log: str, current: str
) -> None:  # pragma: no cover - apart
    """Run atheris, which ends the process; the input that is tried is in a file of its own."""
    import atheris  # noqa: PLC0415 - optional

    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    with atheris.instrument_imports():  # of the backend, which is imported here for the first time
        judge = BytesJudge(search.backend_id, search.options, search.folder)

    place = os.open(current, os.O_WRONLY | os.O_CREAT)

    def try_out(data: bytes) -> None:
        os.ftruncate(place, 0)
        os.pwrite(place, data, 0)
        if judge.is_bad(data):
            raise FoundError

    atheris.Setup(["armpy-fuzz", *flags], try_out)
    atheris.Fuzz()
