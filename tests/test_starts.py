"""What starts may import: each line of a table is a start and its budget.

Times of starts are not measured here: they are the imports' for the most part, and these do not
depend on what else a machine does.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import armpy
from armpy.core.processes.worker import Worker
from armpy_testing.installed import OLD_METADATA, announces, keeps_entry_points
from tests.support.module_lister import ModuleLister

MODEL = str(Path(__file__).parents[1] / "examples" / "digits" / "digits_int8.tflite")
PICTURE = str(Path(MODEL).parent / "pictures" / "seven.png")

COMPILERS = frozenset({"numba", "llvmlite"})
LIBRARIES = frozenset({"click", "PIL", "pluggy", "tflite", "flatbuffers", "onnx"})
BACKENDS = frozenset({"armpy_numba_acc", "armpy_reference"})
SELDOM = frozenset(
    {
        "asyncio",
        "ssl",
        "socket",
        "email",
        "http",
        "unittest",
        "importlib.metadata",
        "multiprocessing",
    }
)
"""Of the standard library: what takes long, and few programs need."""

HEAVY = COMPILERS | LIBRARIES | BACKENDS | SELDOM

LIGHT = HEAVY - {"armpy_numba_acc"} | {
    "armpy_numba_acc.backend",
    "logging",
    "tempfile",
}
"""What a start from a compiled model does without."""

OF_COMMANDS = frozenset({"click", "dataclasses", "logging"})
"""What every command imports."""


SETTLED_S = 2.0
"""For which a file must not have changed before its checksum is remembered."""


@dataclass(frozen=True)
class Start:
    """A start of a process, and what it may import.

    Parameters
    ----------
    name : str
    code : str
        What is run; a command line begins with ``$ armpy``.
        ``PREPARED`` stands for the path of a compiled model.
    most_modules : int
        Of armpy, its folders not counted.
    without : frozenset of str
        Modules and packages that are not imported, neither they nor their parts.
    keeps_models : bool
        Whether models are kept when they were loaded, as they are where armpy is installed.
    """

    name: str
    code: str
    most_modules: int
    without: frozenset[str]
    keeps_models: bool = False


STARTS = [
    Start(
        "import armpy", "import armpy", 1, HEAVY | {"numpy", "dataclasses", "inspect", "logging"}
    ),
    Start("version", "$ armpy --version", 13, HEAVY - {"click"} | {"numpy"}),
    Start("usage", "$ armpy run", 18, HEAVY - {"click"} | {"numpy"}),
    Start("help of a command", "$ armpy run --help", 17, HEAVY - {"click"} | {"numpy"}),
    # It asks plugins for commands, if some are installed: here armpy's own extensions.
    # NumbaAcc's commands are among them, and nothing else of it.
    Start(
        "help of all",
        "$ armpy --help",
        90,
        (HEAVY | {"armpy_numba_acc.backend"}) - {"click", "pluggy", "armpy_numba_acc"},
    ),
    Start("wrong file", "$ armpy run nowhere.tflite", 18, HEAVY - {"click"} | {"numpy"}),
    Start(
        "missing model",
        "import armpy, contextlib\n"
        "with contextlib.suppress(armpy.ParserError): armpy.load('nowhere.tflite')",
        13,
        COMPILERS | BACKENDS,
    ),
    Start(
        "what is installed",
        "from armpy.plugins.discovery import entry_point_cache as c; "
        "assert c.installed().entry_points",
        6,
        HEAVY | {"numpy", "logging"},
    ),
    Start(
        "digest of the environment",
        "from armpy.plugins.discovery.environment import environment_digest as f; assert f()",
        8,
        HEAVY | {"numpy", "logging"},
    ),
    Start(
        "load what is prepared",
        "import armpy; model = armpy.load('PREPARED'); model.inputs; model.outputs",
        38,
        LIGHT,
    ),
    Start(
        "run what is prepared",
        "$ armpy run PREPARED",
        74,  # and what takes working memory at the first execution, and gives it back
        LIGHT - OF_COMMANDS,
    ),
    Start("check what is prepared", "$ armpy check PREPARED", 79, LIGHT - OF_COMMANDS),
    Start(
        "load what was loaded before",
        f"import armpy; model = armpy.load({MODEL!r}); model.inputs; model.outputs",
        42,
        LIGHT,
        keeps_models=True,
    ),
    Start(
        "run what was run before",
        f"$ armpy run {MODEL}",
        78,
        LIGHT - OF_COMMANDS,
        keeps_models=True,
    ),
    Start(
        "run a picture that was run before",
        f"$ armpy run {MODEL} {PICTURE}",
        92,
        (HEAVY | {"armpy_numba_acc.backend"}) - {"PIL", "armpy_numba_acc", "click", "pluggy"},
        keeps_models=True,
    ),
    Start("a run", f"$ armpy run {MODEL}", 257, COMPILERS | {"PIL"} | SELDOM),
]

WARMING = {
    "run what is prepared",
    "load what was loaded before",
    "run a picture that was run before",
}
"""Keep all that any start keeps: the others find what these have kept, or keep nothing."""


def modules_of(start: Start, cache: Path) -> set[str]:
    """What a process has imported at its end.

    Notes
    -----
    Without the ``site`` module, which imports what the environment's ``.pth`` files say: each path
    is given.
    """
    code = start.code.replace("PREPARED", str(cache / "digits.armpy"))
    if code.startswith("$ armpy "):
        arguments = code.split()[2:]
        code = f"from armpy.cli.__main__ import main; main({arguments!r})"
    packages = [armpy.__file__, *map(_file, sorted(BACKENDS))]
    places = [*sys.path, *(str(Path(file).parents[1]) for file in packages)]
    reporting = "sys.stderr.write('\\n' + ' '.join(sys.modules))"
    whole = f"import sys; sys.path[:] = {places!r}\n{code}\n{reporting}"
    done = subprocess.run(
        [sys.executable, "-S", "-c", whole],
        env={
            **os.environ,
            "ARMPY_CACHE_DIR": str(cache),
            "ARMPY_MODEL_CACHE": "on" if start.keeps_models else "off",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def code_of_armpy(modules: set[str]) -> list[str]:
    """Those of armpy, but its folders, which hold no more than a text each."""
    root = Path(armpy.__file__).parent
    ours = (name for name in modules if name.startswith("armpy."))
    return sorted(name for name in ours if not root.joinpath(*name.split(".")[1:]).is_dir())


def _file(package: str) -> str:
    """A package's first file."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    return str(spec.origin)


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory with what earlier starts keep there."""
    if not announces("armpy.programs"):
        pytest.skip(OLD_METADATA)
    cache = tmp_path_factory.mktemp("cache")
    with armpy.load(MODEL) as model:
        model.save(cache / "digits.armpy")
    for _ in range(2):
        for start in STARTS:
            if start.name in WARMING:
                modules_of(start, cache)
        time.sleep(SETTLED_S + 0.1)  # before that, what was verified is not remembered
    if not keeps_entry_points(cache):
        pytest.skip("something is being installed in this environment just now")
    return cache


def check(start: Start, cache: Path) -> None:
    """Fail where a start imports more than its budget."""
    modules = modules_of(start, cache)
    of_armpy = code_of_armpy(modules)
    modules_loaded = [name for name in sorted(start.without) if name in modules]
    assert not modules_loaded
    assert len(of_armpy) <= start.most_modules, of_armpy


@pytest.mark.slow  # fills the cache twice
@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.name)
def test_a_start_imports_no_more_than_its_budget(start: Start, warm_cache: Path) -> None:
    check(start, warm_cache)


def test_importing_armpy_needs_nothing_that_is_kept(tmp_path: Path) -> None:
    check(STARTS[0], tmp_path)


def test_a_worker_imports_no_more_than_its_budget() -> None:
    worker = Worker(f"{ModuleLister.__module__}:{ModuleLister.__qualname__}")
    try:
        modules = set(worker.request(None, timeout_s=60)["modules"])
    finally:
        worker.stop()
    of_armpy = code_of_armpy(modules)
    assert not modules & (HEAVY - {"socket"} | {"numpy"})
    assert len(of_armpy) <= 12, of_armpy
