from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy.errors import BackendUnavailableError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.plugins import BackendRegistry, Candidate, CandidateKind, CandidateStatus, PluginOptions
from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.discovery.discover import is_own
from armpy.plugins.discovery.module_files import (
    distribution_snapshot,
    why_insecure,
)
from armpy.plugins.trust.policy import read_trust
from armpy_testing.backends.dynamic_modules import (
    forget_private_modules,
    module_source,
    private_modules,
    write_module,
)
from armpy_testing.backends.fake_distributions import FakeSite, fake_site
from armpy_testing.systems import NEEDS_LINKS, NEEDS_OWNERS, NEEDS_ROOT
from tests.support.pins import distribution_pin, file_pin

STRANGER = 12345
"""The id of a user that does not exist here."""


@pytest.fixture(autouse=True)
def removed_modules() -> Iterator[None]:
    yield
    forget_private_modules()


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeSite]:
    with fake_site(tmp_path_factory.mktemp("site")) as fake:
        yield fake


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A directory with one sound module and one sound package."""
    folder = tmp_path / "plugins"
    write_module(folder, "Arm_File_backend", module_source("File"))
    write_module(folder, "Arm_Package_backend", module_source("Package"), part="")
    return folder


def discover(folder: Path | None = None, trust: str = "", **options: object) -> BackendRegistry:
    """A registry over a directory, with the contents of a trust file."""
    if trust:
        path = (folder.parent if folder else Path(options.pop("where"))) / "trust.toml"  # type: ignore[arg-type]
        path.write_text(trust)
        options["trust_file"] = path
    paths = () if folder is None else folder
    return BackendRegistry.discover(PluginOptions(paths, **options))  # type: ignore[arg-type]


def reasons(registry: BackendRegistry) -> dict[str, str]:
    """Why candidates are rejected, by module or id."""
    return {
        c.name if c.kind is CandidateKind.DIRECTORY else c.backend_id: c.reason
        for c in registry.candidates
        if c.status is CandidateStatus.REJECTED
    }


@NEEDS_OWNERS
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("place", "who", "mode"),
    [
        (".", "its group", 0o775),
        (".", "everybody", 0o777),
        (".", "everybody", 0o1777),
        ("Arm_File_backend.py", "its group", 0o664),
        ("Arm_File_backend.py", "everybody", 0o646),
        ("Arm_Package_backend", "everybody", 0o757),
        ("Arm_Package_backend/part.py", "its group", 0o660),
        ("Arm_Package_backend/__init__.py", "everybody", 0o666),
    ],
)
def test_what_others_can_write_is_refused_without_being_imported(
    plugins: Path, place: str, who: str, mode: int
) -> None:
    (plugins / place).chmod(mode)
    registry = discover(plugins)
    refused = reasons(registry)
    names = {"Arm_File_backend", "Arm_Package_backend"}
    assert set(refused) == {name for name in names if place == "." or place.startswith(name)}
    (reason,) = set(refused.values())
    kind = "directory" if (plugins / place).is_dir() else "file"
    checked = plugins if place == "." else plugins / place
    assert reason == (
        f"its {kind} {checked} can be written by {who}. "
        "Run chmod go-w on it, or set trust_insecure_paths"
    )
    available = {backend.get_id() for backend in registry.available()}
    assert len(available & {"File", "Package"}) == 2 - len(refused)
    assert len(private_modules()) == 2 - len(refused)
    allowed = discover(plugins, trust_insecure_paths=True)
    assert {backend.get_id() for backend in allowed.available()} >= {"File", "Package"}


@NEEDS_LINKS
@NEEDS_OWNERS
def test_a_links_target_counts(plugins: Path, tmp_path: Path) -> None:
    target = write_module(tmp_path / "open", "target")
    (plugins / "Arm_Link_backend.py").symlink_to(target)
    target.parent.chmod(0o777)
    assert "open can be written by everybody" in reasons(discover(plugins))["Arm_Link_backend"]


@NEEDS_OWNERS
@pytest.mark.parametrize("place", ["__pycache__", "sub", "sub/inner"])
def test_directories_of_a_package_count_without_files_in_them(plugins: Path, place: str) -> None:
    folder = plugins / "Arm_Package_backend" / place
    (folder / "inner").mkdir(parents=True)
    folder.chmod(0o777)
    refused = reasons(discover(plugins))
    assert set(refused) == {"Arm_Package_backend"}
    assert f"its directory {folder} can be written by everybody" in refused["Arm_Package_backend"]


@NEEDS_LINKS
@NEEDS_OWNERS
@pytest.mark.parametrize("is_folder", [False, True])
def test_the_directory_that_a_link_in_a_package_leads_into_counts(
    plugins: Path, tmp_path: Path, is_folder: bool
) -> None:
    target = tmp_path / "open" / "target"
    target.parent.mkdir()
    if is_folder:
        target.mkdir()
    else:
        target.touch()
    (plugins / "Arm_Package_backend" / "link.py").symlink_to(target)
    assert reasons(discover(plugins)) == {}
    target.parent.chmod(0o777)
    reason = reasons(discover(plugins))["Arm_Package_backend"]
    assert f"its directory {target.parent} can be written by everybody" in reason


def test_a_directory_above_that_others_can_write_is_no_reason(plugins: Path) -> None:
    plugins.parent.chmod(0o1777)
    assert reasons(discover(plugins)) == {}


@NEEDS_OWNERS
def test_what_belongs_to_another_user_is_insecure(plugins: Path) -> None:
    only_stranger = frozenset({STRANGER})
    path = plugins / "Arm_File_backend.py"
    reason = why_insecure(str(path), owners=only_stranger)
    assert reason == f"its directory {plugins} is owned by another user (id {os.geteuid()})"


@NEEDS_ROOT
@pytest.mark.parametrize("place", ["Arm_File_backend.py", "Arm_Package_backend/part.py", "."])
def test_what_belongs_to_another_user_is_refused(plugins: Path, place: str) -> None:
    os.chown(plugins / place, STRANGER, STRANGER)
    refused = reasons(discover(plugins))
    assert len(refused) == (2 if place == "." else 1)
    assert {"owned by another user (id 12345)" in reason for reason in refused.values()} == {True}


@NEEDS_OWNERS
def test_files_that_were_changed_after_they_were_found_are_checked_again(plugins: Path) -> None:
    registry = discover(plugins)
    (plugins / "Arm_File_backend.py").chmod(0o666)
    with pytest.raises(BackendUnavailableError, match="can be written by everybody"):
        registry.get("File")


def test_files_that_are_gone_are_refused(plugins: Path) -> None:
    registry = discover(plugins)
    (plugins / "Arm_File_backend.py").unlink()
    with pytest.raises(BackendUnavailableError, match="No such file"):
        registry.get("File")


def test_only_allowed_ids_are_loaded(plugins: Path, site: FakeSite) -> None:
    module = site.install("npu-backend", {"Npu": "npu_backend:Backend"}, source="1 / 0")
    registry = discover(plugins, "allow = ['CpuRef', 'File']")
    ids = {backend.get_id() for backend in registry.available()}
    assert {"CpuRef", "File"} == ids
    refused = reasons(registry)
    assert refused["Npu"] == "the trust file does not allow the id 'Npu'"
    assert refused["Arm_Package_backend"] == "the trust file does not allow the id 'Package'"
    assert module not in sys.modules
    assert len(private_modules()) == 1
    registry.register("Mine", lambda: registry.get("File"))
    assert "Mine" in registry.backend_ids


def test_pinned_modules_are_loaded_only_unchanged(plugins: Path) -> None:
    file, package = plugins / "Arm_File_backend.py", plugins / "Arm_Package_backend"
    digests = {str(path): file_pin(path) for path in (file, package)}
    lines = "".join(f"'{path}' = '{digest}'\n" for path, digest in digests.items())
    capitals = "".join(f"'{path}' = '{digest.upper()}'\n" for path, digest in digests.items())
    assert reasons(discover(plugins, "[files]\n" + lines)) == {}
    assert reasons(discover(plugins, "[files]\n" + capitals)) == {}
    (package / "part.py").write_text("changed = True")
    refused = reasons(discover(plugins, "[files]\n" + lines))
    assert refused == {
        "Arm_Package_backend": f"its SHA-256 is {file_pin(package)}, "
        f"but the trust file pins {digests[str(package)]}"
    }
    file.write_text("1 / 0")
    assert set(reasons(discover(plugins, "[files]\n" + lines))) == {
        "Arm_File_backend",
        "Arm_Package_backend",
    }


@NEEDS_LINKS
def test_a_pin_may_name_a_link(plugins: Path, tmp_path: Path) -> None:
    (tmp_path / "link.py").symlink_to(plugins / "Arm_File_backend.py")
    refused = reasons(discover(plugins, f"[files]\n'{tmp_path}/link.py' = '{'0' * 64}'"))
    assert set(refused) == {"Arm_File_backend"}


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_digests_are_those_of_sha256sum(plugins: Path) -> None:
    file, package = plugins / "Arm_File_backend.py", plugins / "Arm_Package_backend"
    assert file_pin(file) == hashlib.sha256(file.read_bytes()).hexdigest()
    command = "LC_ALL=C sha256sum __init__.py part.py | sha256sum"
    out = subprocess.run(command, shell=True, cwd=package, capture_output=True, check=True).stdout
    assert file_pin(package) == out.decode().split()[0]


def test_a_pinned_distribution_is_loaded_only_unchanged(site: FakeSite, tmp_path: Path) -> None:
    module = site.install_backend("Npu", record=True)
    digest = distribution_pin("npu-backend")
    trust = f"[distributions]\nNPU_Backend = '{digest}'"
    assert reasons(discover(None, trust, where=tmp_path)) == {}
    with (site.path / f"{module}.py").open("a") as file:
        file.write("\n1 / 0\n")
    refused = reasons(discover(None, trust, where=tmp_path))
    assert f"but the trust file pins {digest}" in refused["Npu"]


def test_how_a_distribution_was_installed_does_not_change_its_digest(site: FakeSite) -> None:
    module = site.install_backend("Npu", record=True)
    before = distribution_pin("npu-backend")
    record = site.path / f"{module}-1.0.dist-info" / "RECORD"
    (record.parent / "INSTALLER").write_text("pip")
    record.write_text(record.read_text() + f"{record.parent.name}/INSTALLER,,\n")
    assert distribution_pin("npu-backend") == before


@pytest.mark.parametrize("name", ["npu-backend", "not-there"])
def test_a_distribution_without_a_list_of_files_cannot_be_pinned(site: FakeSite, name: str) -> None:
    site.install_backend("Npu")
    with pytest.raises(RejectionError, match=f"distribution '{name}' lists no installed files"):
        distribution_snapshot(name)


def test_pins_can_be_required(plugins: Path, site: FakeSite) -> None:
    site.install_backend("Npu", record=True)
    file = plugins / "Arm_File_backend.py"
    trust = f"require_pins = true\n[files]\n'{file}' = '{file_pin(file)}'"
    registry = discover(plugins, trust)
    without_pin = "the trust file has no pin for it, and requires one"
    refused = reasons(registry)
    assert set(refused.values()) == {without_pin}  # engines' backends may be installed, too
    assert refused.keys() >= {"Npu", "Arm_Package_backend"}
    ids = {backend.get_id() for backend in registry.available()}
    assert {"CpuRef", "NumbaAcc", "File"} == ids


def test_a_distribution_is_not_armpys_own_by_its_name_alone(site: FakeSite, tmp_path: Path) -> None:
    metadata = "Metadata-Version: 2.1\nName: armpy\nVersion: 1.0\n"
    module = site.install("evil", {"Evil": "evil:Backend"}, source="1 / 0", metadata=metadata)
    registry = discover(None, "require_pins = true", where=tmp_path)
    assert reasons(registry)["Evil"] == "the trust file has no pin for it, and requires one"
    assert registry.get("CpuRef").get_id() == "CpuRef"
    assert module not in sys.modules
    assert registry.get("NumbaAcc").get_id() == "NumbaAcc"
    modules = ("evil:Backend", "armpy_numba_acc:NumbaBackend", "armpy_reference:ReferenceBackend")
    evil, *both = (
        Candidate("Npu", "", CandidateKind.ENTRY_POINT, name=name, distribution="armpy")
        for name in modules
    )
    assert [is_own(candidate) for candidate in (evil, *both)] == [False, True, True]
    own = both[0]
    own.distribution = "npu-backend"
    assert not is_own(own)


def test_a_module_that_hides_a_pinned_distributions_is_refused(
    site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = site.install_backend("Npu", record=True)
    trust = f"[distributions]\nnpu-backend = '{distribution_pin('npu-backend')}'"
    hiding = tmp_path / "earlier" / module / "__init__.py"
    hiding.parent.mkdir(parents=True)
    hiding.write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path / "earlier")
    refused = reasons(discover(None, trust, where=tmp_path))
    assert refused["Npu"] == (
        f"its module '{module}' is {hiding}, which the pin of its distribution does not cover. "
        "An editable installation cannot be pinned"
    )
    hiding.unlink()  # what is left is a namespace, which counts less than a module
    assert reasons(discover(None, trust, where=tmp_path)) == {}


def test_a_pinned_distribution_whose_module_is_elsewhere_is_refused(
    site: FakeSite, tmp_path: Path
) -> None:
    site.install("npu-backend", {"Npu": "nowhere_to_be_found:Backend"}, record=True)
    trust = f"[distributions]\nnpu-backend = '{distribution_pin('npu-backend')}'"
    reason = reasons(discover(None, trust, where=tmp_path))["Npu"]
    assert reason.startswith("its module 'nowhere_to_be_found' is in no file, which the pin")


MALFORMED = {
    "no TOML": ("allow = [", "is not TOML"),
    "no text": ("\udcff", "is not TOML"),
    "unknown key": ("alow = []", r"has an unknown key 'alow'\. Expected allow"),
    "very unknown key": (
        "x = 1",
        "has an unknown key 'x'. Expected allow, plugins, require_pins, files, distri",
    ),
    "ids as text": ("allow = 'CpuRef'", r"has allow = 'CpuRef'\. Expected a list of backend ids"),
    "ids as numbers": ("allow = [1]", r"has allow = \[1\]\. Expected a list of backend ids"),
    "requirement": ("require_pins = 1", "has require_pins = 1. Expected true or false"),
    "no table": ("files = []", r"has files = \[\]\. Expected a table"),
    "no digest": ("[files]\n'/a' = 1", "pins '/a' to 1. Expected 64 hexadecimal digits"),
    "short digest": ("[distributions]\na = 'abc'", "pins 'a' to 'abc'. Expected 64 hexadecimal"),
    "relative path": (f"[files]\na = '{'0' * 64}'", "pins 'a'. Expected an absolute path"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_trust_file_stops_the_runtime(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, failed = MALFORMED[case]
    path = tmp_path / "trust.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(
        InvalidArgumentError, match=f"^{re.escape(str(path))}: the trust file {failed}"
    ):
        BackendRegistry.discover(PluginOptions(trust_file=path))
    monkeypatch.setenv("ARMPY_TRUST_FILE", str(path))
    with pytest.raises(InvalidArgumentError, match="the trust file"):
        BackendRegistry.discover()
    with pytest.raises(InvalidArgumentError, match="the trust file"):
        Runtime(RuntimeOptions(["CpuRef"]))


def test_a_missing_trust_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read: No such file"):
        read_trust(PluginOptions(trust_file=tmp_path / "missing.toml"))


@NEEDS_OWNERS
def test_a_trust_file_that_others_can_change_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "trust.toml"
    path.touch()
    path.chmod(0o666)
    with pytest.raises(InvalidArgumentError, match=r"changed by others: its file .* by everybody"):
        read_trust(PluginOptions(trust_file=path))
    trust = read_trust(PluginOptions(trust_file=path, trust_insecure_paths=True))
    assert trust.insecure_paths
    assert trust.allow is None


def test_the_options_trust_file_comes_before_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.toml").write_text("allow = ['A']")
    (tmp_path / "b.toml").write_text("allow = ['B']")
    monkeypatch.setenv("ARMPY_TRUST_FILE", str(tmp_path / "a.toml"))
    assert read_trust(PluginOptions()).allow == frozenset("A")
    assert read_trust(PluginOptions(trust_file=tmp_path / "b.toml")).allow == frozenset("B")


def test_a_distribution_whose_files_are_gone_is_refused(site: FakeSite, tmp_path: Path) -> None:
    module = site.install_backend("Npu", record=True)
    trust = f"[distributions]\nnpu-backend = '{distribution_pin('npu-backend')}'"
    (site.path / f"{module}.py").unlink()
    assert "Npu" in reasons(discover(None, trust, where=tmp_path))
