"""No damaged model makes NumbaAcc touch memory that is not its own, hang, or take too much.

Every buffer lies between inaccessible pages; see `tests.support.guarded_runs`. Models are
tried with one thread and with three: a quarter each are small sound ones with odd contents, small
damaged ones, damaged ones with several subgraphs, and real damaged ones. A failure names the
number, which always gives the same bytes.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from armpy_testing.effort import effort

pytest.importorskip("resource", reason="this system has no limits of resources")

from tests.support.guarded_runs import KINDS, maker, run_guarded

pytestmark = pytest.mark.slow

COUNT = effort(80)
WAYS = ((1, "end"), (3, "end"), (3, "begin"))
"""Threads, and where buffers lie within their pages."""

PLANTED = """
import sys
from dataclasses import replace
from armpy_numba_acc.program import emitter
from tests.support import guarded_runs
from tests.support.guard_pages import GuardPages
from tests.support.tflite_cases import operator_models

shift, code, side = int(sys.argv[1]), sys.argv[2], sys.argv[3]
add = emitter.Emitter.__call__

def moved(pointer):
    return pointer.at(shift) if isinstance(pointer, emitter.Buffer) else pointer

def shifted(self, call, label, **named):
    if call.kernel.name == "elementwise":
        inputs = {n: getattr(call, n) for n in ("first", "second", "third")}
        inputs = {n: replace(i, address=moved(i.address)) for n, i in inputs.items()}
        call = replace(call, output=moved(call.output), **inputs)
    add(self, call, label, **named)

emitter.Emitter.__call__ = shifted
pages = GuardPages(side == "end")
guarded_runs.guard(pages)
data = next(case.model().to_bytes() for case in operator_models() if case.operator == code)
print(guarded_runs.try_one(data, 0, guarded_runs.runtime_of(1), pages))
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("num_threads", "side"), WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_models_touch_nothing_but_their_own(kind: str, num_threads: int, side: str) -> None:
    if maker(kind) is None:
        pytest.skip("there are no real models here")
    per_kind = COUNT // len(KINDS)
    numbers = range(per_kind)
    tally = run_guarded(kind, numbers, num_threads, side)
    assert tally.failures == {}
    assert sum(tally.counts.values()) == len(numbers)
    assert any("ran, numba" in outcome for outcome in tally.counts)


@pytest.mark.parametrize(
    ("shift", "side", "is_caught"),
    [
        (0, "end", False),
        (0, "begin", False),
        (1, "end", True),
        (1, "begin", False),  # the page, not the odd address, is what ends the process
        (-1, "begin", True),
    ],
)
def test_an_access_one_byte_beside_a_tensor_is_caught(
    shift: int, side: str, is_caught: bool
) -> None:
    process = _run_planted(shift, "EXP", side)
    if is_caught:
        assert process.returncode == -signal.SIGSEGV
    else:
        assert (process.returncode, process.stdout) == (0, "ran, numba\n"), process.stderr


def _run_planted(shift: int, operator: str, side: str) -> subprocess.CompletedProcess[str]:
    """Run a model of one operator whose elementwise kernels access memory some bytes away."""
    return subprocess.run(
        [sys.executable, "-c", PLANTED, str(shift), operator, side],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
        timeout=300,
    )
