"""What a release ships: the checks of what wheels hold."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "lab"
NAME = "a_model-1.2.0-py3-none-any.whl"
INFO = "a_model-1.2.0.dist-info"
METADATA = """\
Metadata-Version: 2.4
Name: a-model
Version: 1.2.0
Summary: A model
Requires-Python: >=3.11
License-Expression: Apache-2.0
License-File: LICENSE
License-File: NOTICE
Description-Content-Type: text/markdown
Requires-Dist: numpy>=2.2.5
Requires-Dist: click>=8.1; extra == "cli"
Provides-Extra: cli

# A model
"""
CONTENTS = {
    "a_model/__init__.py": "",
    "a_model/py.typed": "",
    "a_model/packs/some.kernels": "\0code",
    f"{INFO}/METADATA": METADATA,
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/licenses/LICENSE": "Apache License",
    f"{INFO}/licenses/NOTICE": "a model",
}


def recorded(name: str, text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    return f"{name},sha256={digest},{len(text)}"


def write_wheel(wheel: Path, contents: dict[str, str]) -> Path:
    lines = [*(recorded(*item) for item in contents.items()), f"{INFO}/RECORD,,"]
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in {**contents, f"{INFO}/RECORD": "\n".join(lines) + "\n"}.items():
            file.writestr(name, text)
    return wheel


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / f"{script}.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_a_sound_wheel_passes(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / NAME, CONTENTS)
    assert run("wheel_contents", wheel).stdout == "1 wheels are sound\n"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({f"{INFO}/licenses/NOTICE": None}, "licenses/NOTICE is missing"),
        ({f"{INFO}/METADATA": METADATA.replace("License-File: NOTICE\n", "")}, "no line"),
        ({f"{INFO}/METADATA": METADATA.replace("Apache-2.0", "MIT")}, "the licence is MIT"),
        ({f"{INFO}/METADATA": METADATA.replace("1.2.0", "1.2.1")}, "Expected a-model 1.2.0"),
        ({f"{INFO}/METADATA": METADATA.replace(": A model", ": A\n B")}, "METADATA"),
        ({f"{INFO}/METADATA": METADATA.replace("\n# A model\n", "")}, "has no description"),
        ({f"{INFO}/WHEEL": "Root-Is-Purelib: false"}, "not for every system"),
        ({"a_model/py.typed": None}, "a_model has no py.typed"),
        ({"a_model/tests/test_it.py": ""}, "a_model/tests/test_it.py does not belong"),
        ({"a_model/__pycache__/a.pyc": "\0"}, "a.pyc does not belong"),
        ({"a_model/library.so": "\0code"}, "library.so is not text"),
    ],
)
def test_what_is_wrong_in_a_wheel_is_named(
    tmp_path: Path, changes: dict[str, str | None], problem: str
) -> None:
    changed = {**CONTENTS, **changes}
    wheel = write_wheel(
        tmp_path / NAME, {n: text for n, text in changed.items() if text is not None}
    )
    done = run("wheel_contents", wheel)
    assert done.returncode == 1, done.stdout
    assert problem in done.stdout
