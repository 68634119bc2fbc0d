"""Backends that use what the next major version of the contract will not have are told so."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from armpy_numba_acc import NumbaBackend
from armpy_reference import ReferenceBackend

from armpy.backend import Capabilities, Capability, IBackendInternal, PerformanceFigures
from armpy.plugins.proxy.deprecated import DEPRECATED_CAPABILITIES
from armpy.plugins.proxy.guard import BackendProxy
from armpy.types import DataType
from tests.support.fake_backends import FakeBackend

SOURCES = Path(__file__).parents[2] / "armpy"


class Listing(FakeBackend):
    """Lists capabilities."""

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__()
        self._capabilities = capabilities

    def get_capabilities(self) -> Capabilities:
        return self._capabilities


class Boasting(FakeBackend):
    """Says how fast it is."""

    def get_performance(self, data_type: DataType) -> PerformanceFigures:
        return PerformanceFigures(0.5, 0.5)


@pytest.mark.parametrize("capability", DEPRECATED_CAPABILITIES)
def test_a_deprecated_capability_is_a_warning_that_names_the_backend(
    capability: Capability,
) -> None:
    backend = Listing({capability: True})
    text = rf"^{backend.backend_id}: the capability {capability} is deprecated, as "
    with pytest.warns(DeprecationWarning, match=text):
        guarded = BackendProxy(backend)
    assert guarded.get_capabilities() == {capability: True}  # it keeps working


def test_performance_figures_are_a_warning_that_names_the_backend() -> None:
    backend = Boasting()
    text = rf"^{backend.backend_id}: get_performance is deprecated"
    with pytest.warns(DeprecationWarning, match=text):
        guarded = BackendProxy(backend)
    assert guarded.get_performance(DataType.FLOAT32).exec_time == 0.5


@pytest.mark.parametrize("backend", [ReferenceBackend(), NumbaBackend(), FakeBackend()])
def test_backends_that_use_nothing_of_it_are_not_warned(backend: IBackendInternal) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BackendProxy(backend)


def test_a_backends_own_capability_of_the_same_name_is_no_warning() -> None:
    BackendProxy(Listing(json.loads('{"HasFp16": true}')))


def test_the_core_asks_about_every_other_capability() -> None:
    own = {SOURCES / "backend" / "capabilities.py", SOURCES / "plugins" / "proxy" / "deprecated.py"}
    own.add(
        SOURCES / "execution" / "isolation" / "backend.py"
    )  # which names those that it does not hand on
    text = "".join(path.read_text() for path in sorted(SOURCES.rglob("*.py")) if path not in own)
    unasked = {one for one in Capability if f"Capability.{one.name}" not in text}
    assert unasked == set(DEPRECATED_CAPABILITIES)


def test_nothing_that_authors_copy_lists_a_deprecated_capability() -> None:
    root = Path(__file__).parents[2]
    templates = root / "armpy" / "cli" / "new_backend" / "templates"
    folders = [root / "backends", templates, root / "examples"]
    files = [f for d in folders for f in d.rglob("*") if f.suffix in (".py", ".template", ".c")]
    assert len(files) > 100
    names = [n for key in DEPRECATED_CAPABILITIES for n in (str(key), f"Capability.{key.name}")]
    listing = {f.name for f in files if any(name in f.read_text() for name in names)}
    assert listing == set()


def test_the_deprecated_ones_are_told_with_what_takes_their_place() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "compatibility.md").read_text()
    for key, instead in DEPRECATED_CAPABILITIES.items():
        assert f"| `{key}` |" in page
        assert instead
