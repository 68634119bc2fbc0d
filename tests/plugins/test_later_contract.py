"""A backend for a later version of the contract is left out with that reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy.backend import BACKEND_API_VERSION
from armpy.plugins import BackendRegistry, Candidate, PluginOptions
from armpy_testing.backends.dynamic_modules import NEXT_MINOR, OTHER_MAJOR, write_module
from armpy_testing.backends.fake_distributions import FakeSite, fake_site
from armpy_testing.command_line import Cli
from armpy_testing.installed import skip_without

SOURCE = """
{imports}
def get_backend_id(): return "Later"
def get_version(): return {version}
def backend_factory(): return None
"""

NEW_NAMES = [
    "from armpy.backend import ILaterName",
    "import armpy.backend.later",
    "import armpy.backend; Base = armpy.backend.ILaterName",
    "from armpy.backend import Capability; name = Capability.LATER",
]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    skip_without("click", "rich", "pillow")
    return Cli(capsys)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    with fake_site(tmp_path) as fake:
        yield fake


def left_out(folder: Path, imports: str, version: str) -> Candidate:
    """The candidate of a directory's module after it was tried."""
    write_module(folder, "Acme_Later_backend", SOURCE.format(imports=imports, version=version))
    registry = BackendRegistry.discover(PluginOptions(folder))
    registry.available()
    return next(c for c in registry.candidates if c.path)


@pytest.mark.parametrize("imports", NEW_NAMES)
@pytest.mark.parametrize("version", [repr(NEXT_MINOR), f"({OTHER_MAJOR.replace('.', ', ')})"])
def test_a_literal_version_says_what_a_missing_name_means(
    tmp_path: Path, imports: str, version: str
) -> None:
    candidate = left_out(tmp_path, imports, version)
    declared = NEXT_MINOR if NEXT_MINOR in version else OTHER_MAJOR
    start = f"it is made for API version {declared}, which does not fit {BACKEND_API_VERSION}. Ins"
    assert candidate.reason.startswith(start)
    assert "Error: " in candidate.reason
    assert candidate.fix == ""  # the reason says it


def test_without_a_literal_version_a_missing_name_may_be_a_later_one(tmp_path: Path) -> None:
    candidate = left_out(tmp_path, NEW_NAMES[0], "'.'.join('26')")
    assert f"made for a later API version than {BACKEND_API_VERSION}. Install" in candidate.reason
    assert "ILaterName" in candidate.reason
    assert candidate.fix == ""


def test_a_name_that_its_own_version_has_not_is_its_author_s_mistake(tmp_path: Path) -> None:
    candidate = left_out(tmp_path, NEW_NAMES[0], repr(BACKEND_API_VERSION))
    assert candidate.reason.startswith("ImportError: cannot import name 'ILaterName'")


def test_the_version_is_found_in_any_module_of_a_distribution(site: FakeSite) -> None:
    part = f"""
        from armpy.backend import IBackendInternal, ILaterName
        class Later(IBackendInternal):
            def get_api_version(self) -> str:
                '''The version of the contract.'''
                return "{NEXT_MINOR}"
    """
    source = "from acme_later.npu import Later"
    site.install("acme-later", {"Later": "acme_later:Later"}, source=source, parts={"npu": part})
    registry = BackendRegistry.discover()
    registry.available()
    (candidate,) = [c for c in registry.candidates if c.backend_id == "Later"]
    assert candidate.reason.startswith(f"it is made for API version {NEXT_MINOR}")
