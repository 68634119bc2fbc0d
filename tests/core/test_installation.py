"""Commands that install more of armpy: from a checkout, a wheel's folder, or the package index."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from armpy.core.installation import install_command, restore_command
from armpy.core.shell import shell_command

PROJECTS = {"armpy-onnx": "extensions/onnx", "armpy[sign]": "."}


def checkout(folder: Path) -> Path:
    """A folder that looks like a checkout of armpy."""
    (folder / "extensions").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    return folder


def installed(site: Path, record: object) -> Path:
    """A package that was installed, with the record of what it was installed from, if any."""
    (site / "armpy").mkdir(parents=True)
    (site / "armpy-0.1.0.dist-info").mkdir()
    if record is not None:
        path = site / "armpy-0.1.0.dist-info" / "direct_url.json"
        path.write_text(json.dumps(record))
    return site / "armpy"


def test_a_checkout_that_runs_is_installed_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = checkout(tmp_path / "a checkout")
    places = [str(root / "extensions" / "onnx"), f"{root}[sign]"]
    assert install_command(PROJECTS, root / "armpy") == shell_command(["pip", "install", *places])
    monkeypatch.chdir(root)
    places = [os.path.join(".", "extensions", "onnx"), ".[sign]"]
    assert install_command(PROJECTS, root / "armpy") == shell_command(["pip", "install", *places])


def test_a_damaged_file_is_restored_from_where_it_came_from(tmp_path: Path) -> None:
    root = checkout(tmp_path / "source")
    path = str(root / "armpy" / "a file")
    words = ["git", "-C", str(root), "checkout", "--", path]
    assert restore_command(path, {"armpy": "."}, root / "armpy") == shell_command(words)
    again = ["pip", "install", "--force-reinstall", "--no-deps"]
    place = str(root / "extensions" / "onnx")
    projects = {"armpy-onnx": "extensions/onnx"}
    elsewhere = str(tmp_path / "site" / "armpy_onnx" / "file")
    assert restore_command(elsewhere, projects, root / "armpy") == shell_command([*again, place])
    package = installed(tmp_path / "site", None)
    assert restore_command(elsewhere, projects, package) == shell_command([*again, "armpy-onnx"])


def test_what_was_installed_from_a_checkout_goes_on_from_there(tmp_path: Path) -> None:
    root = checkout(tmp_path / "source")
    record = {"url": root.as_uri(), "dir_info": {}}
    package = installed(tmp_path / "site", record)
    place = str(root / "extensions" / "onnx")
    assert install_command({"armpy-onnx": "extensions/onnx"}, package) == (
        shell_command(["pip", "install", place])
    )


def test_beside_a_wheel_s_file_others_are_looked_for(tmp_path: Path) -> None:
    wheel = tmp_path / "my wheels" / "armpy-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"")
    package = installed(tmp_path / "site", {"url": wheel.as_uri(), "archive_info": {}})
    words = ["pip", "install", "--find-links", str(wheel.parent), "armpy-onnx", "armpy[sign]"]
    assert install_command(PROJECTS, package) == shell_command(words)


@pytest.mark.parametrize(
    "record",
    [
        None,
        {"url": "file:///nowhere/armpy"},
        {"url": "https://index.example/armpy-0.1.0-py3-none-any.whl"},
    ],
)
def test_otherwise_the_index_is_asked(record: object, tmp_path: Path) -> None:
    package = installed(tmp_path / "site", record)
    command = shell_command(["pip", "install", "armpy-onnx", "armpy[sign]"])
    assert install_command(PROJECTS, package) == command
