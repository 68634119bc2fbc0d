"""Backend modules in shared libraries."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from armpy.errors import BackendUnavailableError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.plugins import BackendRegistry, Candidate, CandidateKind, CandidateStatus, PluginOptions
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.dynamic_modules import (
    forget_private_modules,
    module_source,
    private_modules,
    write_module,
)
from armpy_testing.models.networks import ADD, floats, placement_of
from armpy_testing.systems import NEEDS_SO_LIBRARIES
from tests.support.compiled_modules import EXTENSION_SUFFIX, compile_backend, compile_library
from tests.support.pins import file_pin


@pytest.fixture(autouse=True)
def removed_modules() -> Iterator[None]:
    yield
    forget_private_modules()
    assert private_modules() == set()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "plugins"
    path.mkdir()
    return path


def discover(*folders: Path, **options: object) -> BackendRegistry:
    plugin_options = PluginOptions([str(path) for path in folders], **options)  # type: ignore[arg-type]
    return BackendRegistry.discover(plugin_options)


def pinned(folder: Path, *modules: Path, **options: object) -> BackendRegistry:
    """A registry over a folder, all of whose modules are pinned as they are now."""
    lines = [f'"{path}" = "{file_pin(path)}"\n' for path in modules]
    trust = folder.parent / "trust.toml"
    trust.write_text("require_pins = true\n[files]\n" + "".join(lines))
    return discover(folder, trust_file=trust, **options)


def from_directory(registry: BackendRegistry) -> list[Candidate]:
    registry.available()
    return [c for c in registry.candidates if c.kind is CandidateKind.DIRECTORY]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ending", [EXTENSION_SUFFIX, ".abi3.so", ".so", ".so.1.2.3"])
def test_a_compiled_module_runs_layers_whatever_its_ending(folder: Path, ending: str) -> None:
    compile_backend(folder, "Acme_Npu_backend", "Npu", ending=ending)
    runtime = Runtime(RuntimeOptions(registry=discover(folder), backends=["Npu"]))
    net = Network("sum")
    info = TensorInfo((2,), DataType.FLOAT32)
    net.output("y", net.add(ADD, net.input("a", info), net.input("b", info)))
    model = Model(net, runtime)
    assert placement_of(model).layers_by_backend == {"Npu": 1}
    np.testing.assert_array_equal(model(floats(5, 3), floats(10, 8)), floats(15, 11))


def test_links_of_a_versioned_library_count_once(folder: Path) -> None:
    compile_backend(folder, "Arm_CpuAcc_backend", "Npu")
    for link, target in (("1", ""), ("1.2", ".1"), ("1.2.3", ".1.2")):
        os.symlink(f"Arm_CpuAcc_backend.so{target}", folder / f"Arm_CpuAcc_backend.so.{link}")
    os.symlink("nothing", folder / "Arm_no_backend.so")
    registry = discover(folder)
    (candidate,) = from_directory(registry)
    assert (candidate.name, candidate.status.value) == ("Arm_CpuAcc_backend", "registered")
    (skipped,) = registry.skipped_paths
    assert skipped.reason == "it is a link to something that does not exist"


def test_a_library_may_be_linked_under_another_name(folder: Path, tmp_path: Path) -> None:
    compile_backend(tmp_path / "lib", "Acme_Npu_backend", "Npu", ending=".so.4.1")
    os.symlink(tmp_path / "lib" / "Acme_Npu_backend.so.4.1", folder / "Acme_Linked_backend.so")
    (candidate,) = from_directory(discover(folder))
    assert (candidate.label, candidate.reason) == ("Npu", "")
    plain = tmp_path / "lib" / "libacme"
    shutil.move(tmp_path / "lib" / "Acme_Npu_backend.so.4.1", plain)
    (folder / "Acme_Linked_backend.so").unlink()
    os.symlink(plain, folder / "Acme_Npu_backend.so.4")
    (candidate,) = from_directory(discover(folder))
    assert (candidate.label, candidate.reason) == ("Npu", "")
    (candidate,) = from_directory(pinned(folder, plain))
    assert (candidate.label, candidate.reason) == ("Npu", "")


def test_a_library_for_another_python_is_skipped_with_the_reason(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ending = ".cpython-399-x86_64-linux-gnu.so"
    (folder / f"Acme_Npu_backend{ending}").touch()
    (folder / "Acme_Dsp_backend.abi4.so").touch()
    registry = discover(folder)
    assert not from_directory(registry)
    takes = ", ".join(EXTENSION_SUFFIXES)
    assert [s.reason for s in registry.skipped_paths] == [
        f"it is made for another Python: its name ends in {e}, and this one takes {takes}"
        for e in (".abi4.so", ending)
    ]
    assert len(caplog.records) == 2


def test_libraries_for_several_pythons_may_be_side_by_side(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    compile_backend(folder, "Acme_Npu_backend", "Npu", ending=EXTENSION_SUFFIX)
    (folder / "Acme_Npu_backend.cpython-399-x86_64-linux-gnu.so").touch()
    (candidate,) = from_directory(discover(folder))
    assert candidate.status is CandidateStatus.REGISTERED
    assert not caplog.records


NO_LIBRARIES = {
    "no library": (b"not a library", "file too short|invalid ELF header|slice is not valid"),
    "empty": (b"", "file too short|invalid ELF header|slice is not valid"),
}


@NEEDS_SO_LIBRARIES
@pytest.mark.parametrize("case", NO_LIBRARIES)
def test_what_is_no_library_stops_no_other(folder: Path, case: str) -> None:
    content, reason = NO_LIBRARIES[case]
    (folder / "Acme_Bad_backend.so").write_bytes(content)
    write_module(folder, "Acme_Good_backend", module_source("Good"))
    registry = discover(folder)
    assert "Good" in {b.get_id() for b in registry.available()}
    bad = from_directory(registry)[0]
    assert bad.status is CandidateStatus.FAILED
    with pytest.raises(BackendUnavailableError, match=reason):
        registry.get("Bad")


NO_MODULES = {
    "names of C": ('const char* GetBackendId(void) { return "Npu"; }', "neither"),
    "another module": ("void* PyInit_other(void) { return (void*)0; }", "PyInit_other"),
}
"""Sources of libraries without a module's entry point, and what the reason says of them."""


@pytest.mark.parametrize("case", NO_MODULES)
def test_a_library_without_the_entry_point_of_python_is_left_out(folder: Path, case: str) -> None:
    source, error = NO_MODULES[case]
    library = folder / "Acme_Npu_backend.so"
    compile_library(library, source)
    (candidate,) = from_directory(discover(folder))
    assert candidate.status is CandidateStatus.REJECTED
    assert candidate.reason == (
        f"its library {library} is not the Python module Acme_Npu_backend. Expected "
        f"PyInit_Acme_Npu_backend() or armpy_backend_v1() of armpy-native; got {error}"
    )
    assert private_modules() == set()


MACHINES = {
    (1, 3): "x86, 32 bits",
    (1, 40): "Arm, 32 bits",
    (2, 243): "RISC-V, 64 bits",
    (2, 4096): "machine 4096, 64 bits",
}
"""What the reason calls a machine, by the class and the machine in the header."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_library_for_another_machine_is_left_out(folder: Path, machine: tuple[int, int]) -> None:
    own = Path(sys.executable).read_bytes()[:20]
    if not own.startswith(b"\x7fELF"):
        pytest.skip("executables of this system are not in ELF")
    bits, number = machine
    library = compile_backend(folder, "Acme_Npu_backend", "Npu")
    contents = bytearray(library.read_bytes())
    contents[4] = bits
    contents[18:20] = number.to_bytes(2, sys.byteorder)
    library.write_bytes(contents)
    (candidate,) = from_directory(discover(folder))
    assert candidate.status is CandidateStatus.REJECTED
    begin, end = candidate.reason.split(". Expected ")
    assert begin == f"its library {library} is compiled for another machine"
    assert end.endswith(f"; got {MACHINES[machine]}. Compile it for this machine")


@pytest.mark.parametrize(("order", "code"), [("little", 1), ("big", 2)])
def test_the_machine_of_a_file_is_read_in_its_own_byte_order(
    order: Literal["little", "big"], code: int, folder: Path
) -> None:
    if not Path(sys.executable).read_bytes().startswith(b"\x7fELF"):
        pytest.skip("executables of this system are not in ELF")
    library = folder / "Acme_Npu_backend.so"
    library.write_bytes(b"\x7fELF" + bytes([2, code]) + bytes(12) + (22).to_bytes(2, order))
    (candidate,) = from_directory(discover(folder))
    assert candidate.status is CandidateStatus.REJECTED
    assert re.search(r"another machine\. .*; got S/390, 64 bits\.", candidate.reason)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("macros", [{}, {"SINGLE_PHASE": None}], ids=["multi", "single"])
def test_a_pinned_library_is_a_private_copy_of_what_was_hashed(
    folder: Path, macros: dict[str, Any]
) -> None:
    path = compile_backend(folder, "Acme_Npu_backend", "Npu", **macros)
    content = path.read_bytes()
    registry = pinned(folder, path)
    registry.get("Npu")
    (name,) = private_modules()
    place = sys.modules[name].__file__
    assert place is not None
    assert Path(place).parent != folder
    assert Path(place).read_bytes() == content
    assert Path(place).parent.stat().st_mode & 0o077 == 0


def test_the_same_bytes_under_two_names_are_two_copies(folder: Path) -> None:
    path = compile_backend(folder, "Acme_Npu_backend", "Npu")
    for ending in (".abi3.so", ".so"):
        moved = path.rename(folder / f"Acme_Npu_backend{ending}")
        pinned(folder, moved).get("Npu")
        path = moved


def test_a_pinned_library_that_has_changed_is_never_loaded(folder: Path) -> None:
    path = compile_backend(folder, "Acme_Npu_backend", "Npu")
    registry = pinned(folder, path)
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(BackendUnavailableError, match="but the trust file pins"):
        registry.get("Npu")
    assert private_modules() == set()


def test_others_must_not_be_able_to_write_to_a_library(folder: Path) -> None:
    path = compile_backend(folder, "Acme_Npu_backend", "Npu")
    path.chmod(0o775)
    (candidate,) = from_directory(discover(folder))
    assert "can be written by its group" in candidate.reason


@pytest.mark.slow
@pytest.mark.parametrize("is_pinned", [False, True])
def test_a_probe_survives_a_library_that_crashes_and_leaves_nothing(
    folder: Path, tmp_path: Path, is_pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    good = compile_backend(folder, "Acme_Good_backend", "Good")
    bad = compile_backend(folder, "Acme_Bad_backend", "Bad", IMPORT="abort()")
    options = {"probe": True, "probe_timeout_s": 60.0}
    registry = pinned(folder, good, bad, **options) if is_pinned else discover(folder, **options)
    statuses = {c.name: c.status for c in from_directory(registry)}
    assert statuses == {
        "Acme_Bad_backend": CandidateStatus.CRASHED,
        "Acme_Good_backend": CandidateStatus.REGISTERED,
    }
    left = [path.name for path in temporary.iterdir()]
    assert len(left) == is_pinned  # the copy that is loaded here, until this process ends


@pytest.mark.slow
@pytest.mark.parametrize("by_rename", [False, True])
def test_a_library_that_was_replaced_since_it_was_mapped_is_not_the_old_one_in_silence(
    folder: Path, tmp_path: Path, by_rename: bool
) -> None:
    library = compile_backend(folder, "Acme_Npu_backend", "Npu")
    with Runtime(RuntimeOptions(registry=discover(folder), backends=["Npu"])):
        pass
    elsewhere = tmp_path / "new"
    elsewhere.mkdir()
    newer = compile_backend(elsewhere, "Acme_Npu_backend", "Npu")
    if by_rename:
        newer.replace(library)
    else:
        library.unlink()
        shutil.copy(newer, library)
    registry = discover(folder)
    with pytest.raises(BackendUnavailableError):
        registry.get("Npu")
    (candidate,) = from_directory(registry)
    assert candidate.status is CandidateStatus.REJECTED
    assert f"its library {library} was replaced since this process mapped it" in candidate.reason
    assert candidate.reason.endswith("Start another process to use the new one")
    # A process of its own has the new one.
    probed = discover(folder, probe=True)
    (result,) = (r for c, r in probed.probe() if c.kind is CandidateKind.DIRECTORY)
    assert result.backend_id == "Npu"


def test_a_part_of_a_package_that_was_replaced_is_noticed_too(folder: Path) -> None:
    package = folder / "Acme_Parts_backend"
    package.mkdir()
    (package / "__init__.py").write_text("from . import part\n" + module_source("Parts"))
    library = compile_backend(package, "part", "Other")
    assert discover(folder).get("Parts") is not None
    copy = library.read_bytes()
    library.unlink()
    library.write_bytes(copy)
    registry = discover(folder)
    registry.available()
    (candidate,) = from_directory(registry)
    assert f"its library {library} was replaced" in candidate.reason


C_BACKEND = """
#include <stdint.h>
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) { abort(); }
const char* GetBackendId(void) { return "CBackend"; }
void GetVersion(uint32_t* major, uint32_t* minor) { *major = 2; *minor = 0; }
void* BackendFactory(void) { return (void*)1; }
"""


def test_a_library_with_arm_nns_c_functions_is_distinguished_from_a_module(folder: Path) -> None:
    """Nothing of it runs: its constructor would end the process."""
    compile_library(folder / "Acme_CBackend_backend.so", C_BACKEND)
    registry = discover(folder)
    with pytest.raises(BackendUnavailableError, match=r"no backend 'CBackend'.*; got neither"):
        registry.get("CBackend")
    (candidate,) = [c for c in registry.candidates if c.kind is CandidateKind.DIRECTORY]
    assert candidate.status is CandidateStatus.REJECTED
