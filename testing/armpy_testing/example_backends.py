"""The example backends and plugins of the checkout: built, installed and run as anybody would.

Outside of a checkout, modules of tests that import this one are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest
from packaging.version import Version

from armpy_testing.checkout import checkout_path
from armpy_testing.effort import IS_CAMPAIGN

EXAMPLES = checkout_path("backends", "dynamic_examples")
PLUGINS = checkout_path("examples", "plugins")


def install(project: str, folder: Path, examples: Path = EXAMPLES) -> Path:
    """Build the wheel of an example and unpack it into a folder; returns the folder.

    Notes
    -----
    Nothing is downloaded: setuptools has to be installed (extra ``test``).
    """
    _require_tool("pip", "1")
    _require_tool("setuptools", "77")
    source = folder / "source"  # building creates folders
    shutil.copytree(examples / project, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    site = folder / "site"
    wheels = folder / "wheels"
    _check([*pip, "wheel", *offline, "--wheel-dir", str(wheels), str(source)])
    (wheel,) = wheels.glob("*.whl")
    _check([*pip, "install", "--no-index", "--no-deps", "--target", str(site), str(wheel)])
    return site


def _require_tool(name: str, least: str) -> None:
    """Skip the test unless a distribution is installed, which need not be imported here."""
    try:
        is_enough = Version(metadata.version(name)) >= Version(least)
    except metadata.PackageNotFoundError:
        is_enough = False
    if not is_enough:
        pytest.skip(f"building wheels needs {name} {least} or later (extra 'test')")


def _check(command: list[str]) -> None:
    """Run a command that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def own_tests(site: Path) -> subprocess.CompletedProcess[str]:
    """Run the tests that an installed example comes with.

    Notes
    -----
    The whole kit is one of them. The kit's own tests run its rules on a device that can be mapped
    (`test_planted_faults.py`). From the wheel they are run in the full form alone.
    """
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(site), "-W", "error"]
    if not IS_CAMPAIGN:
        options += ["-k", "not keeps_to_the_contract"]
    return run_beside(site, "-m", "pytest", *options, str(site.parent / "source" / "tests"))


def run_beside(
    site: Path | None, *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python with an installed example on its path, and with no other one."""
    own_variables = {"ARMPY_CACHE_DIR"}
    environment = {
        k: v for k, v in os.environ.items() if k in own_variables or not k.startswith("ARMPY_")
    }
    environment["PYTHONPATH"] = str(site or "")
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env=environment | dict(variables or {}),
        capture_output=True,
        text=True,
        check=False,
    )
