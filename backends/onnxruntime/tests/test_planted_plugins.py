"""Plugins with a fault each: every one is named, and harms nothing else."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from armpy_testing.backends.fake_distributions import FakeSite

pytest.importorskip("onnxruntime")
pytest.importorskip("armpy_onnxruntime")
nxrt = pytest.importorskip("nxrt_ep_cpu")

SOURCE = Path(__file__).parent / "planted_plugin.c"
FAULTS = {
    "no-symbol": "NO_SYMBOL",
    "newer-version": "NEWER",
    "crashing": "CRASHES",
    "hanging": "HANGS",
    "lying": "LIES",
    "first-namesake": "",
    "second-namesake": "",
    "gone": "",
    "in-use": "",
    "unreadable": "",
    "other-machine": "",
    "chatting": "WRITES",
    "changing": "CHANGES",
    "large": f"LARGE={400 << 20}",
}

PROGRAM = """
import json, os, signal, sys
import numpy as np
import armpy
from armpy.plugins import BackendRegistry, PluginOptions

os.umask(0o22)
registry = BackendRegistry.discover(PluginOptions(probe_timeout_s=3.0))
home = os.environ["HOME"]
names = [backend.get_id() for backend in registry.available()]
after = os.popen('printf "$HOME $PLANTED"').read().split()
answers = {}
for name in names:
    net = armpy.Network("add")
    x = net.input("x", armpy.TensorInfo((2, 3), armpy.DataType.FLOAT32))
    net.output("y", net.add(armpy.ops.Activation(armpy.ops.ActivationFunction.RELU), x))
    settings = armpy.RuntimeOptions(backends=[name], registry=registry, on_fallback="error")
    try:
        with armpy.Model(net.build(), armpy.Runtime(settings)) as model:
            answers[name] = float(model(np.full((2, 3), 3, np.float32)).sum())
    except armpy.errors.ArmpyError as error:
        answers[name] = str(error)
upwards = np.float32(1) + np.float32(1e-10) != 1
with open("/proc/self/status") as status:
    ignored = int(status.read().split("SigIgn:")[1].split()[0], 16) >> signal.SIGUSR1 - 1 & 1
kept = [os.getcwd(), os.umask(0o22), ignored, bool(upwards)]
rows = [(c.source.split()[0], c.backend_id, c.status.value, c.reason) for c in registry.candidates]
skipped = [(os.path.basename(p.path), p.reason) for p in registry.skipped_paths]
said = {"rows": rows, "skipped": skipped, "answers": answers}
print(json.dumps({**said, "home": after == [home], "kept": kept}))
"""


REMOVED = """
import os
import numpy as np
import armpy
from armpy.plugins import BackendRegistry

net = armpy.Network("relu")
x = net.input("x", armpy.TensorInfo((2, 3), armpy.DataType.FLOAT32))
net.output("y", net.add(armpy.ops.Activation(armpy.ops.ActivationFunction.RELU), x))
graph = net.build()
threes = np.full((2, 3), 3, np.float32)


def brought_by(registry):
    return [c.source.split()[0] for c in registry.candidates if c.backend_id == "OrtCpuEp"]


def model_of(registry):
    settings = armpy.RuntimeOptions(backends=["OrtCpuEp"], registry=registry, on_fallback="error")
    return armpy.Model(graph, armpy.Runtime(settings))


registry = BackendRegistry.discover()
with model_of(registry) as model:
    (path,) = [c.path for c in registry.candidates if c.source.startswith("in-use")]
    before = float(model(threes).sum())
    os.unlink(path)
    answers = [before, float(model(threes).sum())]
with model_of(registry) as again:
    answers.append(float(again(threes).sum()))
later = BackendRegistry.discover()
with model_of(later) as other:
    answers.append(float(other(threes).sum()))
print(answers, brought_by(registry)[0], brought_by(later))
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> FakeSite:
    """A folder of distributions, one for each fault."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no compiler for C")
    site = FakeSite(tmp_path_factory.mktemp("planted"))
    for name, macro in FAULTS.items():
        library = site.path / f"lib{name}.so"
        macros = [f'-DTARGET="{nxrt.get_library_path()}"', *([f"-D{macro}"] if macro else [])]
        command = [compiler, "-shared", "-fPIC", "-O1", *macros, str(SOURCE), "-o", str(library)]
        subprocess.run([*command, "-ldl", "-lm"], check=True)
        library = site.install_library(name, library)
        if name == "gone":
            library.unlink()
        elif name == "unreadable":
            library.unlink()
            library.mkdir()  # root can read any file
        elif name == "other-machine":
            contents = bytearray(library.read_bytes())
            contents[18:20] = struct.pack("<H", 183 if contents[18] == 62 else 62)
            library.write_bytes(contents)
    return site


def run(site: FakeSite, program: str, cache: Path) -> subprocess.CompletedProcess[str]:
    variables = {"PYTHONPATH": os.pathsep.join([str(site.path), os.environ.get("PYTHONPATH", "")])}
    variables |= {"ARMPY_CACHE_DIR": str(cache), "ORT_GGML_LOG": "error"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_each_planted_fault_is_named_and_harms_nothing(planted: FakeSite, tmp_path: Path) -> None:
    done = run(planted, PROGRAM, tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)  # nothing else is written to standard output
    rows = {source: (name, status, reason) for source, name, status, reason in said["rows"]}
    assert rows["newer-version"][1] == "failed"
    assert "API version 999 is needed" in rows["newer-version"][2]
    assert rows["crashing"][1] == "crashed"
    assert "SIGABRT" in rows["crashing"][2]
    assert rows["hanging"][1] == "hung"
    assert "within 3 s" in rows["hanging"][2]
    assert rows["other-machine"][1] == "rejected"
    assert "is compiled for another machine" in rows["other-machine"][2]
    # All others hand on to one provider: the first by name has the id.
    hidden = "another backend has the id 'OrtCpuEp': changing 1.0"
    for name in ("first-namesake", "second-namesake", "in-use", "large", "chatting", "nxrt-ep-cpu"):
        assert rows[name] == ("OrtCpuEp", "duplicate", hidden)
    assert rows["lying"][:2] == ("OrtCpuEp", "failed")
    assert "the device computes none of 3 small layers" in rows["lying"][2]
    assert "the device is only a drawing" in rows["lying"][2]
    assert rows["changing"][1] == "registered"
    assert "no-symbol" not in rows
    skipped = dict(said["skipped"])
    assert skipped["libunreadable.so"].endswith("libunreadable.so is not a regular file")
    assert said["home"]
    assert said["kept"] == [os.getcwd(), 0o22, 0, False]
    for state in (
        "the environment (HOME, PLANTED)",
        "the handlers of signals (SIGUSR1)",
        "the working folder",
        "the mask of new files (umask)",
        "the rounding mode or other control of floating-point arithmetic",
    ):
        assert f"libchanging.so changed {state}; armpy has set this back" in done.stderr
    assert "changed the locale" not in done.stderr
    assert said["answers"]["OrtCpuEp"] == said["answers"]["CpuRef"] == 18.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gone", ""),
        ("large", ""),
        ("chatting", 'wrote to standard output when it was registered: {"look": "here"}'),
    ],
)
def test_a_plugin_before_a_sound_one_harms_nothing(
    planted: FakeSite, tmp_path: Path, name: str, text: str
) -> None:
    alone = FakeSite(tmp_path / "site")
    alone.path.mkdir()
    for entry in planted.path.glob(f"{name.replace('-', '_')}*"):
        (alone.path / entry.name).symlink_to(entry)
    done = run(alone, PROGRAM, tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert text in done.stderr
    assert said["answers"]["OrtCpuEp"] == said["answers"]["CpuRef"] == 18.0


@pytest.mark.slow
def test_a_plugin_that_is_removed_while_in_use_goes_on(planted: FakeSite, tmp_path: Path) -> None:
    alone = tmp_path / "site"
    alone.mkdir()
    for entry in planted.path.glob("in_use*"):
        shutil.copytree(entry, alone / entry.name)
    done = run(FakeSite(alone), REMOVED, tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[18.0, 18.0, 18.0, 18.0] in-use ['nxrt-ep-cpu']\n"


UNLISTED = """
import sys
import numpy as np
import armpy
from armpy.plugins import BackendRegistry
from armpy_onnxruntime import open_plugin

registry = BackendRegistry.discover()
registry.available()
print([c.source for c in registry.candidates if "unlisted" in c.path + c.source])
print("unlisted_ep" in sys.modules)
import unlisted_ep

registry = BackendRegistry()
for backend in open_plugin(unlisted_ep.get_library_path()):
    registry.register(backend().get_id(), backend)
net = armpy.Network("relu")
x = net.input("x", armpy.TensorInfo((2, 3), armpy.DataType.FLOAT32))
net.output("y", net.add(armpy.ops.Activation(armpy.ops.ActivationFunction.RELU), x))
settings = armpy.RuntimeOptions(backends=["OrtCpuEp"], registry=registry, on_fallback="error")
with armpy.Model(net.build(), armpy.Runtime(settings)) as model:
    print(float(model(np.full((2, 3), 3, np.float32)).sum()))
"""


@pytest.mark.slow
def test_a_library_that_no_distribution_lists_is_registered_by_hand(
    planted: FakeSite, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    alone = FakeSite(tmp_path / "site")
    library = shutil.copy(planted.path / "in_use" / "libin-use.so", tmp_path / "libunlisted.so")
    source = f"def get_library_path():\n    return {str(library)!r}\n"
    alone.install("unlisted-ep", {}, source=source)
    done = run(alone, UNLISTED, tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["[]", "False", "18.0"]
