from __future__ import annotations

import os
from pathlib import Path

import pytest

from armpy.plugins import SkippedPath
from armpy.plugins.discovery.directories import (
    MODULE_NAME,
    backend_paths,
    find_modules,
    why_invalid,
)
from armpy.plugins.discovery.module_files import module_files
from armpy_testing.backends.dynamic_modules import write_module

BAD_NAME = "its name is not <vendor>_<name>_backend, with .py or .so[.<version>] for a file"


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
def test_vendor_name_backend_is_a_name(name: str) -> None:
    assert MODULE_NAME.fullmatch(name)


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
        "",
    ],
)
def test_anything_else_is_no_name(name: str) -> None:
    assert not MODULE_NAME.fullmatch(name)


def test_a_path_has_to_exist_be_a_directory_and_be_absolute_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert why_invalid("") == "the path is empty"
    assert why_invalid("missing") == "the path does not exist"
    assert why_invalid("nul\0") == "the path does not exist"
    assert why_invalid("file") == "the path is not a directory"
    assert why_invalid("folder") == "the path is not absolute"
    assert why_invalid(str(tmp_path / "folder")) == ""


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
    tmp_path: Path, text: str, valid: list[str], num_skipped: int
) -> None:
    places = {"A": str(tmp_path / "a"), "B": str(tmp_path / "b")}
    for place in places.values():
        Path(place).mkdir()
    environment = text.replace(":", os.pathsep).format(**places)
    paths, skipped = backend_paths((), environment)
    assert paths == [path.format(**places) for path in valid]
    assert [s.reason for s in skipped] == ["the path does not exist"] * num_skipped


def test_an_override_makes_the_environment_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.mkdir()
    b.mkdir()
    assert backend_paths([str(a)], str(b)) == ([str(a)], [])
    missing = str(tmp_path / "missing")
    skipped = [SkippedPath(missing, "the path does not exist")]
    assert backend_paths([missing], str(b)) == ([], skipped)
    assert f"'{missing}' is skipped: the path does not exist" in caplog.text
    assert backend_paths([""], str(b)) == ([], [SkippedPath("", "the path is empty")])


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
    modules, skipped = find_modules([str(first), str(second)])
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


def test_the_links_name_counts_and_not_that_of_its_target(tmp_path: Path) -> None:
    target = write_module(tmp_path, "anything")
    os.symlink("anything.py", tmp_path / "Arm_Npu_backend.py")
    (module,) = find_modules([str(tmp_path)])[0]
    assert (module.name, module.path) == ("Arm_Npu_backend", str(target.resolve()))


def test_the_same_file_in_two_directories_counts_once(tmp_path: Path) -> None:
    write_module(tmp_path / "a", "Arm_Npu_backend")
    os.symlink(tmp_path / "a", tmp_path / "b")
    paths = [str(tmp_path / name) for name in ("b", "a")]
    (module,) = find_modules(paths)[0]
    assert module.directory == str(tmp_path / "b")


def test_packages_need_an_init_file_and_files_need_to_be_files(tmp_path: Path) -> None:
    write_module(tmp_path, "Arm_Package_backend", part="")
    (tmp_path / "Arm_Empty_backend").mkdir()
    (tmp_path / "Arm_Plain_backend").touch()
    (tmp_path / "Arm_Folder_backend.py").mkdir()
    modules, skipped = find_modules([str(tmp_path)])
    assert [m.name for m in modules] == ["Arm_Package_backend"]
    assert {Path(s.path).name: s.reason for s in skipped} == {
        "Arm_Empty_backend": "it is not a package: it has no __init__.py",
        "Arm_Plain_backend": "it is a file without an ending: its name has to end in .py or .so",
        "Arm_Folder_backend.py": "it is not a file",
    }


def test_a_directory_that_is_gone_is_skipped(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    expected = SkippedPath(missing, "it cannot be read: No such file or directory")
    assert find_modules([missing]) == ([], [expected])


def test_the_files_of_a_package_are_sorted_without_bytecode_and_links_are_followed_once(
    tmp_path: Path,
) -> None:
    package = write_module(tmp_path, "Arm_Npu_backend", part="", a="")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "part.pyc").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "more.py").touch()
    os.symlink(elsewhere, package / "linked")
    os.symlink(package, package / "loop")
    names = [name for name, _ in module_files(str(package))]
    assert names == ["__init__.py", "a.py", "linked/more.py", "part.py"]
    assert module_files(str(package / "a.py")) == [("a.py", str(package / "a.py"))]
