"""Settings that hold for the tests of armpy, of its backends and of its extensions.

Loaded by ``-p armpy_testing.pytest_plugin`` in each project's ``pyproject.toml``, and by the
``conftest.py`` at the root of a checkout.
"""

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
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from armpy_testing.checkout import ROOT
from armpy_testing.effort import EFFORT, FULL, IS_CAMPAIGN, LANDING

# A machine that is busy with something else is no reason for a property to fail.
settings.register_profile(
    "armpy",
    deadline=None,
    max_examples=100 if IS_CAMPAIGN else 25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("armpy")

# A suite started in the background of a script ignores interrupts, which processes
# inherit: tests that interrupt themselves, or what they started, would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of processes are started, which would all compile armpy; and so would each worker do with
# all tests, at every run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_MARKERS = (
    "slow: takes half a second, or repeats what others test; run by ARMPY_TEST_EFFORT=1, and where "
    "a file or the marker is named",
    "nightly: takes many seconds; run by ARMPY_TEST_EFFORT=2, and where a file or the marker is "
    "named",
    "sampled(every): has many cases that hold one rule: of so many, all but the first are nightly",
)

_COMPILED = "numba_acc/object-*.entry"
"""Kernels' code, named by all that it depends on, sources included."""

_MOST_KEPT_BYTES = 1 << 30


def _link_all(source: Path, target: Path) -> None:
    """Have the compiled kernels of one folder in another one, too."""
    (target / "numba_acc").mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in source.glob(_COMPILED):
        with suppress(FileExistsError, FileNotFoundError):  # another run may be at it, too
            os.link(path, target / "numba_acc" / path.name)


def _keep_compiled(cache: tempfile.TemporaryDirectory[str], kept: Path) -> None:
    """Keep what a run has compiled, the newest of it where that is too much."""
    _link_all(Path(cache.name), kept)
    cache.cleanup()
    kept_bytes = 0
    for path in sorted(kept.glob(_COMPILED), key=lambda path: -path.stat().st_mtime):
        kept_bytes += path.stat().st_size
        if kept_bytes > _MOST_KEPT_BYTES:
            path.unlink(missing_ok=True)


# Installed, armpy keeps compiled models; tests are about loading, as in a checkout.
if not (ROOT / "testing").is_dir():
    os.environ.setdefault("ARMPY_MODEL_CACHE", "off")

# What repeats itself for hours may take long; what hangs must end all the same.
if IS_CAMPAIGN:
    os.environ.setdefault("PYTEST_TIMEOUT", "7200")

# The suite's processes fill all cores: NumPy's threads would wait for each other, turning.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What is chosen is the same on every machine, and whatever else that machine does.
os.environ["ARMPY_NUMBA_MACHINE"] = "typical"
os.environ["ARMPY_KERNELS"] = "off"  # what is compiled is compiled, whatever is installed


def _make_cache(rootpath: Path) -> None:
    """Make this run's cache, which begins empty but for compiled kernels of earlier runs.

    Runs of one checkout have one folder of compiled kernels, never the user's own cache, or that
    which ARMPY_TESTS_KEPT names. Workers, and what tests start, inherit the run's cache.
    """
    if "PYTEST_XDIST_WORKER" in os.environ or "ARMPY_TESTS_CACHE" in os.environ:
        return
    folders = (rootpath, *rootpath.parents)
    projects = [folder for folder in folders if (folder / "pyproject.toml").exists()]
    own = (projects[-1] if projects else rootpath) / ".cache" / "armpy-tests"
    kept = Path(os.environ.get("ARMPY_TESTS_KEPT", own))
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    cache = tempfile.TemporaryDirectory(prefix="run-", dir=kept.parent)
    os.environ["ARMPY_TESTS_CACHE"] = os.environ["ARMPY_CACHE_DIR"] = cache.name
    _link_all(kept, Path(cache.name))
    atexit.register(_keep_compiled, cache, kept)


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
    return EFFORT < LANDING and not config.getoption("markexpr") and _are_folders(config)


def _leaves_nightly_out(config: pytest.Config) -> bool:
    """Whether nightly tests are left out: where folders are run and the marker is not named."""
    is_named = "nightly" in (config.getoption("markexpr") or "")
    return EFFORT < FULL and not is_named and _are_folders(config)


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
            if counts[test] % sampled.args[0]:
                item.add_marker("nightly")
            counts[test] += 1
        if item.get_closest_marker("nightly"):
            item.add_marker("slow")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, make the cache, and keep options from the runs that tests start.

    Options such as coverage and its threshold are for this run.
    """
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    _make_cache(config.rootpath)
    if not config.getoption("numprocesses", None):  # whose workers need them
        os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ["PYTEST_XDIST_AUTO_NUM_WORKERS"] = "0"  # what a test starts shares its core


_SLOW_FILE = re.compile(r"^pytestmark = .*pytest\.mark\.slow", re.MULTILINE)
_SLOW_FILES: list[Path] = []
"""Files of slow tests that were not collected."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of slow tests, which are not even imported."""
    if collection_path.suffix != ".py" or not _leaves_slow_out(config):
        return None
    if not _SLOW_FILE.search(collection_path.read_text("utf-8")):
        return None
    _SLOW_FILES.append(collection_path)
    return True


def pytest_report_collectionfinish() -> list[str]:
    """Say how many files were left out."""
    if not _SLOW_FILES:
        return []
    return [
        f"not collected: {len(_SLOW_FILES)} files of slow tests, which ARMPY_TEST_EFFORT=1 runs"
    ]


def pytest_collection_finish() -> None:
    """Keep the collected tests, which stay, out of every later search for garbage."""
    gc.collect()
    gc.freeze()
