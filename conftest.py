"""Settings that hold for all tests."""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from armpy_testing.effort import IS_FULL, RUNS_SLOW

# A machine that is busy with something else is no reason for a property to fail.
settings.register_profile("armpy", deadline=None, max_examples=100 if IS_FULL else 25)
settings.load_profile("armpy")

# A suite started in the background of a script ignores interrupts, which processes
# inherit: tests that interrupt themselves, or what they started, would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of processes are started, which would all compile armpy; and so would each worker do with
# all tests, at every run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_KEPT = Path(__file__).parent / ".cache" / "armpy-tests"
"""Compiled kernels, from one run to the next; never the user's own cache."""

_COMPILED = "numba_acc/object-*.entry"
"""Kernels' code, named by all that it depends on, sources included."""

_MOST_KEPT_BYTES = 1 << 30


def _link_all(source: Path, target: Path) -> None:
    """Have the compiled kernels of one folder in another one, too."""
    (target / "numba_acc").mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in source.glob(_COMPILED):
        with suppress(FileExistsError, FileNotFoundError):  # another run may be at it, too
            os.link(path, target / "numba_acc" / path.name)


def _keep_compiled(cache: tempfile.TemporaryDirectory[str]) -> None:
    """Keep what a run has compiled, the newest of it where that is too much."""
    _link_all(Path(cache.name), _KEPT)
    cache.cleanup()
    kept_bytes = 0
    for path in sorted(_KEPT.glob(_COMPILED), key=lambda path: -path.stat().st_mtime):
        kept_bytes += path.stat().st_size
        if kept_bytes > _MOST_KEPT_BYTES:
            path.unlink(missing_ok=True)


# Each run has a cache of its own, beside others of the same checkout, which begins empty but for
# compiled kernels. Workers, and what tests start, inherit it.
if "PYTEST_XDIST_WORKER" not in os.environ and "ARMPY_TESTS_CACHE" not in os.environ:
    _KEPT.mkdir(mode=0o700, parents=True, exist_ok=True)
    _CACHE = tempfile.TemporaryDirectory(prefix="run-", dir=_KEPT.parent)
    os.environ["ARMPY_TESTS_CACHE"] = os.environ["ARMPY_CACHE_DIR"] = _CACHE.name
    _link_all(_KEPT, Path(_CACHE.name))
    atexit.register(_keep_compiled, _CACHE)

# What repeats itself for hours may take long; what hangs must end all the same.
if IS_FULL:
    os.environ.setdefault("PYTEST_TIMEOUT", "7200")

# The suite's processes fill all cores: NumPy's threads would wait for each other, turning.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What is chosen is the same on every machine, and whatever else that machine does.
os.environ["ARMPY_NUMBA_MACHINE"] = "typical"
os.environ["ARMPY_KERNELS"] = "off"  # what is compiled is compiled, whatever is installed


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Run in as many processes as there are cores where folders are run, and in this one else.

    Notes
    -----
    Files and single tests are run to be watched, as is whatever ``-s`` shows. The kit's session
    (``--pyargs``) is judged as one.
    """
    is_watched = config.getoption("capture") == "no" or config.getoption("pyargs")
    return 0 if is_watched or not _are_folders(config) else None


def _are_folders(config: pytest.Config) -> bool:
    """Whether folders are run, and neither files nor single tests."""
    here = config.invocation_params.dir
    return all((here / argument).is_dir() for argument in config.args)


def _leaves_slow_out(config: pytest.Config) -> bool:
    """Whether slow tests are left out: where folders are run and no marker is named."""
    return not RUNS_SLOW and not config.getoption("markexpr") and _are_folders(config)


def _leaves_nightly_out(config: pytest.Config) -> bool:
    """Whether nightly tests are left out: where folders are run and the marker is not named."""
    is_named = "nightly" in (config.getoption("markexpr") or "")
    return not IS_FULL and not is_named and _are_folders(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out single slow and nightly tests; files of slow tests are not even imported."""
    _mark_cases(items)
    markers = {"slow": _leaves_slow_out(config), "nightly": _leaves_nightly_out(config)}
    excluded_markers = [name for name, is_excluded in markers.items() if is_excluded]
    excluded = {item for item in items if any(map(item.get_closest_marker, excluded_markers))}
    if excluded:
        config.hook.pytest_deselected(items=[*excluded])
        items[:] = [item for item in items if item not in excluded]


def _mark_cases(items: list[pytest.Item]) -> None:
    """Mark the cases of `sampled` tests by tier; nightly tests are slow as well."""
    counts: Counter[tuple[str, str]] = Counter()
    for item in items:
        if sampled := item.get_closest_marker("sampled"):
            test = str(item.path), getattr(item, "originalname", item.name)
            rest = counts[test] % sampled.args[0]
            if rest:
                is_next = rest == 1 and not item.get_closest_marker("slow")
                item.add_marker("slow" if is_next else "nightly")
            counts[test] += 1
        if item.get_closest_marker("nightly"):
            item.add_marker("slow")


def pytest_configure(config: pytest.Config) -> None:
    """Keep options for this run (coverage and its threshold) from the runs that tests start."""
    if not config.getoption("numprocesses", None):  # whose workers need them
        os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ["PYTEST_XDIST_AUTO_NUM_WORKERS"] = "0"  # what a test starts shares its core


_ROOT = Path(__file__).parent
_MISSING = {
    module.parent.name: module.parents[1]
    for module in sorted(_ROOT.glob("extensions/*/armpy_*/__init__.py"))
    if find_spec(module.parent.name) is None
}
"""Extensions that are not installed, with their folders."""

_IMPORT = re.compile(r"^([ ]*)(?:from|import) ([\w.]+)", re.MULTILINE)
_SLOW_FILE = re.compile(r"^pytestmark = .*pytest\.mark\.slow", re.MULTILINE)
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n|\n)+", re.MULTILINE)
_LEFT_OUT: Counter[str] = Counter()


@cache
def _imported(path: Path) -> tuple[str, ...]:
    """The modules that a module of tests imports when it is imported; when it runs, if it helps."""
    is_test = path.name.startswith("test_")  # whose functions may skip before they import
    text = _FOR_TYPES.sub("", path.read_text(encoding="utf-8"))
    return tuple(name for indent, name in _IMPORT.findall(text) if not (is_test and indent))


def _lacks(path: Path) -> str:
    """The missing extension that a module of tests needs, itself or by another; empty if none."""
    modules, seen = [path], {path}
    for module in modules:  # which grows
        for name in _imported(module):
            if name.partition(".")[0] in _MISSING:
                return name.partition(".")[0]
            other = _ROOT / (name.replace(".", "/") + ".py")
            if "tests" in name.split(".") and other not in seen and other.is_file():
                modules.append(other)
                seen.add(other)
    return ""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of slow tests, and what needs an extension that is missing.

    A file needs what it imports itself, or what its folder's conftest imports.
    """
    if collection_path.suffix != ".py":
        return None
    if _leaves_slow_out(config) and _SLOW_FILE.search(collection_path.read_text("utf-8")):
        _LEFT_OUT["slow tests"] += 1
        return True
    if not _MISSING:
        return None
    parents = collection_path.parents
    lacked = next((name for name, folder in _MISSING.items() if folder in parents), "")
    conftest = collection_path.parent / "conftest.py"
    lacked = lacked or _lacks(collection_path)
    if not lacked and conftest.is_file():
        lacked = _lacks(conftest)
    if lacked:
        _LEFT_OUT[lacked] += 1
    return bool(lacked) or None


def pytest_report_collectionfinish() -> list[str]:
    """Say how many files were left out, and why."""
    return [
        f"not collected: {count} files of slow tests, which ARMPY_SLOW_TESTS=1 runs"
        if name == "slow tests"
        else f"not collected: {count} files of tests, as {name} is not installed"
        for name, count in sorted(_LEFT_OUT.items())
    ]


def pytest_collection_finish() -> None:
    """Keep the collected tests, which stay, out of every later search for garbage."""
    gc.collect()
    gc.freeze()
