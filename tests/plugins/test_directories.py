from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from armpy.plugins import (
    BackendRegistry,
    Candidate,
    CandidateKind,
    PluginOptions,
    SkippedPath,
)
from armpy_testing.backends.dynamic_modules import write_module
from armpy_testing.systems import NEEDS_LINKS, make_file

BAD_NAME = "its name is not <vendor>_<name>_backend, with .py or .so[.<version>] for a file"
VARIABLE = "ARMPY_DYNAMIC_BACKENDS_PATH"


OTHER_PYTHON = "it is made for another Python"


def found_in(*folders: Path | str) -> tuple[list[Candidate], list[SkippedPath]]:
    """The modules in some directories, or those that the environment names, and skipped paths."""
    registry = BackendRegistry.discover(PluginOptions([str(folder) for folder in folders]))
    modules = [c for c in registry.candidates if c.kind is CandidateKind.DIRECTORY]
    return modules, list(registry.skipped_paths)


@pytest.mark.parametrize(
    "name",
    [
        "Arm_GpuAcc_backend.py",
        "Arm_CpuAcc_backend.py",
        "Arm123_GpuAcc_backend.py",
        "Arm_GpuAcc456_backend.py",
        "1_2_backend.py",
        "backend_backend_backend.py",
        "Arm_GpuAcc_backend",
        "Arm123_GpuAcc456_backend",
        "Arm_GpuAcc_backend.so",
        "Arm_GpuAcc_backend.so.1",
        "Arm_GpuAcc_backend.so.1.2",
        "Arm_GpuAcc_backend.so.1.2.3",
        "Arm_GpuAcc_backend.so.10.1.27",
        "Arm123_GpuAcc_backend.so",
        "Arm_GpuAcc456_backend.so",
        "Arm_CpuAcc_backend.so",
        "Arm_GpuAcc_backend.abi3.so",
        "Arm_GpuAcc_backend.abi3.so.1.2.3",
        "Arm_GpuAcc_backend.cpython-311-x86_64-linux-gnu.so",
        "Arm_GpuAcc_backend.cpython-313t-aarch64-linux-gnu.so.1",
        "Arm_GpuAcc_backend.pypy310-pp73-x86_64-linux-gnu.so",
    ],
)
def test_vendor_name_backend_is_a_name(tmp_path: Path, name: str) -> None:
    if "." in name:
        (tmp_path / name).touch()
    else:
        write_module(tmp_path, name, part="")
    modules, skipped = found_in(tmp_path)
    if modules:
        assert [Path(module.entry).name for module in modules] == [name]
    else:  # its name is one, but of another Python's library
        assert [path.reason.partition(":")[0] for path in skipped] == [OTHER_PYTHON]


@pytest.mark.parametrize(
    "name",
    [
        "Arm_GpuAcc_backend.py.1",  # the module declares its version, not its name
        "Arm_GpuAcc_backend.py.1.2",
        "Arm_GpuAcc_backend.py.1.2.3",
        "Arm_GpuAcc_backend.py.10.1.27",
        "Arm_GpuAcc_backend.py.10.1.33.",
        "Arm_GpuAcc_backend.py.3.4..5",
        "Arm_GpuAcc_backend.py.1,1.1",
        "Arm%Co_GpuAcc_backend.py",
        "Arm_Gpu.Acc_backend.py",
        "GpuAcc_backend.py",
        "_GpuAcc_backend.py",
        "Arm__backend.py",
        "Arm_GpuAcc.py",
        "__backend.py",
        "__.py",
        "Arm_GpuAcc_backend_v1.2.py",
        "Arm_GpuAcc_backend.so.10.1.33.",
        "Arm_GpuAcc_backend.so.3.4..5",
        "Arm_GpuAcc_backend.so.1,1.1",
        "Arm%Co_GpuAcc_backend.so",
        "Arm_Gpu.Acc_backend.so",
        "GpuAcc_backend.so",
        "_GpuAcc_backend.so",
        "Arm__backend.so",
        "Arm_GpuAcc.so",
        "__backend.so",
        "__.so",
        "Arm_GpuAcc_backend_v1.2.so",
        "Arm_GpuAcc_backend.SO",
        "Arm_GpuAcc_backend.so.",
        "Arm_GpuAcc_backend.so.1a",
        "Arm_GpuAcc_backend.so.\u0661",
        "Arm_GpuAcc_backend.v1.so",
        "Arm_GpuAcc_backend.1.so",
        "Arm_GpuAcc_backend.abi3",
        "Arm_GpuAcc_backend.pyc",
        "Arm_GpuAcc_backend_py",
        "Arm_GpuAcc_backend.py\n",
        "Ärm_GpuAcc_backend.py",
        "Arm_Gpu_Acc_backend.py",
        " Arm_GpuAcc_backend.py",
    ],
)
def test_anything_else_is_no_name(tmp_path: Path, name: str) -> None:
    make_file(tmp_path, name)
    modules, skipped = found_in(tmp_path)
    assert modules == []
    assert all(path.reason == BAD_NAME for path in skipped)


def test_a_path_has_to_exist_be_a_directory_and_be_absolute_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    folder = str(tmp_path / "folder")
    _, skipped = found_in("", "missing", "nul\0", "file", "folder", folder)
    assert [(path.path, path.reason) for path in skipped] == [
        ("", "the path is empty"),
        ("missing", "the path does not exist"),
        ("nul\0", "the path does not exist"),
        ("file", "the path is not a directory"),
        ("folder", "the path is not absolute"),
    ]


@pytest.mark.parametrize(
    ("text", "valid", "num_skipped"),
    [
        ("", [], 0),
        (":::", [], 0),
        ("{A}", ["{A}"], 0),
        ("::{A}:", ["{A}"], 0),
        ("{A}:{A}/missing:", ["{A}"], 1),
        ("{A}:{A}", ["{A}"], 0),
        ("{A}/missing:{A}/missing", [], 1),
        ("{B}:{A}", ["{B}", "{A}"], 0),
        ("{A}/{A}", [], 1),
    ],
)
def test_the_environments_list_of_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, valid: list[str], num_skipped: int
) -> None:
    places = {"A": str(tmp_path / "a"), "B": str(tmp_path / "b")}
    for place in places.values():
        write_module(Path(place), "Arm_Npu_backend")
    monkeypatch.setenv(VARIABLE, text.replace(":", os.pathsep).format(**places))
    modules, skipped = found_in()
    assert [module.directory for module in modules] == [path.format(**places) for path in valid]
    assert [s.reason for s in skipped] == ["the path does not exist"] * num_skipped


def test_an_override_makes_the_environment_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        write_module(folder, "Arm_Npu_backend")
    monkeypatch.setenv(VARIABLE, str(b))
    modules, skipped = found_in(a)
    assert ([module.directory for module in modules], skipped) == ([str(a)], [])
    missing = str(tmp_path / "missing")
    assert found_in(missing) == ([], [SkippedPath(missing, "the path does not exist")])
    failed = f"'{missing}' is skipped: the path does not exist"
    assert f"{failed}. Correct the option dynamic_backends_path, or leave it out" in caplog.text
    monkeypatch.setenv(VARIABLE, missing)
    assert found_in() == ([], [SkippedPath(missing, "the path does not exist")])
    assert f"{failed}. Correct ARMPY_DYNAMIC_BACKENDS_PATH, or unset it" in caplog.text
    assert found_in("") == ([], [SkippedPath("", "the path is empty")])


@NEEDS_LINKS
def test_modules_are_sorted_in_each_directory_and_directories_keep_their_order(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "path1", tmp_path / "path2"
    for name in ("Arm_GpuAcc", "Arm_GpuAcc456", "Arm123_GpuAcc", "Arm_Gpu.Acc", "_GpuAcc"):
        write_module(first, f"{name}_backend")
    for name in ("Arm_GpuAcc_backend", "Arm_CpuAcc_backend", "Arm_Cpu"):
        write_module(second, name)
    os.symlink("Arm_CpuAcc_backend.py", second / "Arm_Link_backend.py")
    os.symlink("Arm_Link_backend.py", second / "Arm_Linked_backend.py")
    os.symlink("nothing", second / "Arm_no_backend.py")
    modules, skipped = found_in(first, second)
    assert [(Path(m.directory).name, m.name) for m in modules] == [
        ("path1", "Arm123_GpuAcc_backend"),
        ("path1", "Arm_GpuAcc456_backend"),
        ("path1", "Arm_GpuAcc_backend"),
        ("path2", "Arm_CpuAcc_backend"),
        ("path2", "Arm_GpuAcc_backend"),
    ]
    assert {Path(s.path).name: s.reason for s in skipped} == {
        "Arm_Gpu.Acc_backend.py": BAD_NAME,
        "_GpuAcc_backend.py": BAD_NAME,
        "Arm_Cpu.py": BAD_NAME,
        "Arm_no_backend.py": "it is a link to something that does not exist",
    }


@NEEDS_LINKS
def test_the_same_file_in_two_directories_counts_once(tmp_path: Path) -> None:
    write_module(tmp_path / "a", "Arm_Npu_backend")
    os.symlink(tmp_path / "a", tmp_path / "b")
    (module,) = found_in(tmp_path / "b", tmp_path / "a")[0]
    assert module.directory == str(tmp_path / "b")


def test_packages_need_an_init_file_and_files_need_to_be_files(tmp_path: Path) -> None:
    write_module(tmp_path, "Arm_Package_backend", part="")
    write_module(tmp_path / "below", "Arm_Deeper_backend")  # where no module is sought
    (tmp_path / "Arm_Empty_backend").mkdir()
    (tmp_path / "Arm_Plain_backend").touch()
    (tmp_path / "Arm_Folder_backend.py").mkdir()
    modules, skipped = found_in(tmp_path)
    assert [m.name for m in modules] == ["Arm_Package_backend"]
    assert {Path(s.path).name: s.reason for s in skipped} == {
        "Arm_Empty_backend": "it is not a package: it has no __init__.py",
        "Arm_Plain_backend": "it is a file without an ending: its name has to end in .py or .so",
        "Arm_Folder_backend.py": "it is not a file",
    }


def test_a_directory_that_is_gone_when_it_is_listed_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listdir = os.listdir

    def listed(path: str) -> list[str]:
        if path == str(tmp_path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", listed)
    expected = SkippedPath(str(tmp_path), "it cannot be read: No such file or directory")
    assert found_in(tmp_path) == ([], [expected])
