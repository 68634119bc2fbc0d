from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from armpy.backend import BACKEND_API_VERSION, IBackendInternal
from armpy.cli.__main__ import main
from armpy.cli.backends.work import BackendReport, list_backends, print_backends
from armpy.plugins import BackendRegistry
from tests.support.command_line import Cli
from tests.support.dynamic_modules import module_source, write_module
from tests.support.fake_distributions import FakeSite, fake_site

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)


def broken() -> IBackendInternal:
    raise OSError("the device is asleep")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> BackendRegistry:
    monkeypatch.setattr(logging.getLogger("armpy.plugins"), "disabled", True)
    registry = BackendRegistry()
    registry.register("Broken", broken, source="test 1.0")
    return registry


def test_listing_loads_nothing(registry: BackendRegistry) -> None:
    assert list_backends(registry) == [BackendReport("Broken", "", "code", "test 1.0", "found")]


def test_a_backend_that_cannot_be_loaded_is_listed_with_the_reason(
    registry: BackendRegistry,
) -> None:
    (report,) = list_backends(registry, load=True)
    assert report.status == "failed"
    assert "the device is asleep" in report.reason


def test_the_whole_table_tells_the_reason(
    registry: BackendRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    print_backends(list_backends(registry, load=True), with_rejected=True)
    assert "the device is asleep" in capsys.readouterr().out


def test_the_short_table_tells_how_many_are_left_out(
    registry: BackendRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    print_backends(list_backends(registry, load=True))
    assert capsys.readouterr().out == (
        "no backend can be used\nleft out: 1 (armpy backends --all says why)\n"
    )


def test_no_backend_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_backends([])
    assert capsys.readouterr().out == "no backend is installed\n"


def test_a_distributions_version_is_listed_without_loading_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_site(tmp_path) as site:
        site.install_backend("Acme", version="2.5")
        assert main(["backends"]) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row == ["Acme", "2.5", "found", "acme-backend", "2.5"]


def test_a_loaded_backends_own_words_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_site(tmp_path) as site:
        site.install_backend("Acme", extra='version = "7"')
        assert main(["backends", "--load", "--json"]) == 0
    (found,) = (b for b in json.loads(capsys.readouterr().out)["backends"] if b["id"] == "Acme")
    assert (found["version"], found["api_version"]) == ("7", BACKEND_API_VERSION)
    assert (found["device_type"], found["status"]) == ("ACCELERATOR", "registered")


def test_modules_of_a_directory_are_listed_by_name_until_they_are_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "modules"
    write_module(folder, "acme_npu_backend", module_source("AcmeNpu"))
    write_module(folder, "acme_bad_backend", "raise SystemExit(3)")
    (folder / "my_backend.py").write_text("")
    arguments = ["backends", "--dynamic-backends-path", str(folder)]
    listed = cli.out(*arguments)
    assert "(acme_npu_backend)" in listed
    assert "(acme_bad_backend)" in listed
    assert main([*arguments, "--load", "--all"]) == 0
    captured = capsys.readouterr()
    rows = {line.split()[0]: line for line in captured.out.splitlines() if line}
    assert "registered" in rows["AcmeNpu"]
    assert "SystemExit: 3" in rows["(acme_bad_backend)"]
    assert "its name is not" in rows[str(folder / "my_backend.py")]
    assert captured.err == ""


def test_a_directory_may_be_given_relative_to_the_current_one(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module(tmp_path / "modules", "acme_npu_backend")
    monkeypatch.chdir(tmp_path)
    assert "(acme_npu_backend)" in cli.out("backends", "--dynamic-backends-path", "modules")


def test_listing_fifty_distributions_imports_none_of_them(tmp_path: Path) -> None:
    site = FakeSite(tmp_path)
    for number in range(50):
        site.install_backend(f"Fake{number:02}")
    code = (
        "import sys; from armpy.cli.__main__ import main; main(['backends', '--json']); "
        "print([name for name in sys.modules if name.startswith(('fake', 'armpy_'))])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    document, imported = done.stdout.rsplit("}", 1)
    assert imported.strip() == "[]"
    found = [b["id"] for b in json.loads(document + "}")["backends"]]
    assert [name for name in found if name.startswith("Fake")] == [f"Fake{n:02}" for n in range(50)]
