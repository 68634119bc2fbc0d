"""The example plugins as wheels: one brings a format and a command, the broken ones do no harm."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.example_backends import PLUGINS, install, own_tests, run_beside

pytestmark = pytest.mark.slow

for library in ("click", "PIL"):
    pytest.importorskip(library)

TWO_THREADS = """
import sys, threading
import numpy as np
import armpy

start = threading.Barrier(2)
results = []

def load():
    start.wait()
    with armpy.load(sys.argv[1], backends=["CpuRef"]) as model:
        results.append(model(np.array([-3, 0, 1], np.float32)).tolist())

threads = [threading.Thread(target=load) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results)
"""


@pytest.fixture(scope="module")
def chain_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install("chain", tmp_path_factory.mktemp("chain"), PLUGINS)


@pytest.fixture(scope="module")
def both(chain_site: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A path on which the chain plugin and all broken ones are installed."""
    broken = install("broken", tmp_path_factory.mktemp("broken"), PLUGINS)
    return os.pathsep.join(map(str, (broken, chain_site)))


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "sum.chain"
    path.write_text("chain 1\ninput 3\nadd 1\nmultiply 2\nrelu\n")
    return path


def test_the_example_passes_its_own_tests(chain_site: Path) -> None:
    done = own_tests(chain_site)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_installed_format_is_loaded_by_two_threads_at_once(
    chain_site: Path, chain: Path
) -> None:
    done = run_beside(chain_site, "-c", TWO_THREADS, str(chain))
    assert (done.stdout, done.stderr) == ("[[0.0, 2.0, 4.0], [0.0, 2.0, 4.0]]\n", "")


@pytest.mark.parametrize(("command", "model"), [("run", "digits"), ("inspect", "chain")])
def test_broken_plugins_hurt_neither_armpys_format_nor_anothers(
    both: str, chain: Path, command: str, model: str
) -> None:
    path = chain if model == "chain" else DIGITS
    done = run_beside(Path(both), "-m", "armpy", command, str(path), "--json")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    document = json.loads(done.stdout)  # though one of them prints while it is imported
    assert "NumbaAcc" in document["placement"]["text"]
    if command == "inspect":
        assert document["format"]["front_end"] == ("chain" if model == "chain" else "tflite")


def test_each_broken_plugin_is_named_with_its_reason(both: str, chain: Path) -> None:
    done = run_beside(Path(both), "-m", "armpy", "inspect", str(chain))
    left_out = "from armpy-broken 1.0.0 is left out:"
    for text in (
        f"armpy_register_front_end of plugin 'answers_nonsense' {left_out} "
        "it returned 'chain'. Expected FrontEnd",
        f"armpy_configure_runtime of plugin 'answers_nonsense' {left_out} "
        "trust_insecure_paths: this option is none that plugins answer",
        "armpy_report_sections of plugin 'answers_nonsense'",
        f"plugin 'exits_at_import' {left_out} SystemExit: 2",
        f"armpy_register_front_end of plugin 'exits_when_asked' {left_out} SystemExit: 3",
        f"armpy_configure_runtime of plugin 'exits_when_asked' {left_out} SystemExit: 3",
        f"plugin 'lacks_a_module' {left_out} ModuleNotFoundError",
        f"of plugin 'takes_tflite' {left_out} the front-end name 'tflite' is",
        f"of plugin 'takes_tflite' {left_out} the suffix '.tflite' is taken",
        f"of plugin 'takes_tflite' {left_out} the magic number b'TFL3' is",
        f"plugin 'wraps_others' {left_out} its armpy_register_front_end is",
    ):
        assert done.stderr.count(text) == 1, (text, done.stderr)
