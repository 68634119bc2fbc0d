"""What is hashed is what runs."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy.backend import cache_directory
from armpy.core.file_ownership import links_to
from armpy.plugins import (
    BackendRegistry,
    Candidate,
    CandidateKind,
    CandidateStatus,
    PluginOptions,
    ProbeOutcome,
    ProbeResult,
    probe_candidates,
)
from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.discovery.module_files import (
    module_snapshot,
    read_regular,
)
from armpy.plugins.probe import recall, remember
from armpy.plugins.trust.pinned_code import PinnedCode, SnapshotFinder
from armpy.plugins.trust.policy import Trust
from armpy_testing.backends.dynamic_modules import (
    forget_private_modules,
    module_source,
    private_modules,
    write_module,
)
from armpy_testing.backends.fake_distributions import BACKEND_SOURCE, FakeSite, fake_site
from armpy_testing.systems import (
    NEEDS_LINKS,
    NEEDS_NAMED_PIPES,
    NEEDS_OWNERS,
    NEEDS_ROOT,
    make_file,
)
from tests.support.pins import distribution_pin, file_pin

LATE = """
def late():
    from . import part
    return part.VALUE
"""
"""A backend's module that imports a part when it is asked for it."""


@pytest.fixture(autouse=True)
def removed_modules() -> Iterator[None]:
    yield
    forget_private_modules()
    assert not [f for f in sys.meta_path if isinstance(f, SnapshotFinder) and f.package]


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeSite]:
    with fake_site(tmp_path_factory.mktemp("site")) as fake:
        yield fake


def pinned(folder: Path, *modules: Path) -> BackendRegistry:
    """A registry over a directory that requires pins, with those that the modules have now."""
    lines = [f"'{path}' = '{file_pin(path)}'" for path in modules]
    trust = folder.parent / "trust.toml"
    trust.write_text("\n".join(["require_pins = true", "[files]", *lines]))
    return BackendRegistry.discover(PluginOptions(folder, trust_file=trust))


def pinned_distribution(where: Path) -> BackendRegistry:
    """A registry with a pin for the distribution npu-backend as it is now."""
    trust = where / "trust.toml"
    trust.write_text(f"[distributions]\nnpu-backend = '{distribution_pin('npu-backend')}'")
    return BackendRegistry.discover(PluginOptions(trust_file=trust))


def swapping(monkeypatch: pytest.MonkeyPatch, path: Path, source: str) -> None:
    """Change a file at the moment at which its candidate has been checked."""
    check = Trust.check

    def check_and_swap(self: Trust, candidate: Candidate) -> PinnedCode:
        pinned = check(self, candidate)
        path.write_text(source)
        return pinned

    monkeypatch.setattr(Trust, "check", check_and_swap)


def test_a_file_that_is_swapped_after_it_was_hashed_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "plugins"
    path = write_module(folder, "Arm_Npu_backend", module_source("Npu"))
    registry = pinned(folder, path)
    swapping(monkeypatch, path, "raise ValueError('swapped')")
    assert registry.get("Npu").get_id() == "Npu"


def test_a_part_that_is_imported_later_is_the_one_that_was_hashed(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    package = write_module(
        folder, "Arm_Npu_backend", module_source("Npu", extra=LATE), part="VALUE = 'pinned'"
    )
    registry = pinned(folder, package)
    registry.get("Npu")
    (package / "part.py").write_text("VALUE = 'changed'")
    (name,) = private_modules()
    assert sys.modules[name].late() == "pinned"
    assert sys.modules[f"{name}.part"].__file__ == str(package / "part.py")


def test_a_part_that_came_later_is_not_imported(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    package = write_module(
        folder, "Arm_Npu_backend", module_source("Npu", extra=LATE), other="VALUE = 1"
    )
    registry = pinned(folder, package)
    registry.get("Npu")
    (package / "part.py").write_text("VALUE = 'unpinned'")
    (name,) = private_modules()
    with pytest.raises(ImportError, match="cannot import name 'part'"):
        sys.modules[name].late()


def test_a_folder_without_init_is_a_part_of_a_pinned_package(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    extra = "from .sub.deep.part import VALUE\nfrom .sub import deep\nassert VALUE == 'pinned'"
    package = write_module(folder, "Arm_Npu_backend", module_source("Npu", extra=extra), other="")
    (package / "sub" / "deep").mkdir(parents=True)
    (package / "sub" / "deep" / "part.py").write_text("VALUE = 'pinned'")
    registry = pinned(folder, package)
    registry.get("Npu")
    (name,) = (name for name in private_modules() if name.endswith(".sub"))
    assert list(sys.modules[name].__path__) == [str(package / "sub")]


def test_a_distributions_parts_are_those_that_were_hashed_now_and_later(
    site: FakeSite, tmp_path: Path
) -> None:
    source = BACKEND_SOURCE.format(backend_id="Npu", extra="pass")
    source += "from npu_backend import first\n" + LATE
    parts = {"first": "VALUE = 'pinned'", "part": "VALUE = 'pinned'"}
    reference = {"Npu": "npu_backend:Backend"}
    module = site.install("npu-backend", reference, source=source, record=True, parts=parts)
    registry = pinned_distribution(tmp_path)
    for part in parts:  # a package goes before a module of its name
        (site.path / module / part).mkdir()
        (site.path / module / part / "__init__.py").write_text("VALUE = 'shadow'")
    registry.get("Npu")
    assert sys.modules[f"{module}.first"].VALUE == "pinned"
    (site.path / module / "part.py").write_text("VALUE = 'changed'")
    assert sys.modules[module].late() == "pinned"
    (site.path / module / "extra.py").write_text("VALUE = 'unlisted'")
    with pytest.raises(ModuleNotFoundError, match=r"'npu_backend\.extra' is among the files"):
        __import__(f"{module}.extra")


def test_a_distribution_that_was_imported_before_its_pin_was_checked_is_refused(
    site: FakeSite, tmp_path: Path
) -> None:
    module = site.install_backend("Npu", record=True)
    __import__(module)
    registry = pinned_distribution(tmp_path)
    assert "Npu" not in {backend.get_id() for backend in registry.available()}
    (candidate,) = [c for c in registry.candidates if c.backend_id == "Npu"]
    assert candidate.reason.startswith("its module 'npu_backend' was imported before its pin")


def test_a_pinned_distribution_can_be_loaded_by_one_registry_after_the_other(
    site: FakeSite, tmp_path: Path
) -> None:
    site.install_backend("Npu", record=True)
    for _ in range(2):
        assert pinned_distribution(tmp_path).get("Npu").get_id() == "Npu"
    assert len([f for f in sys.meta_path if isinstance(f, SnapshotFinder)]) == 1


def test_a_pinned_extension_module_is_a_copy_of_what_was_hashed(tmp_path: Path) -> None:
    shared = Path(sysconfig.get_config_var("DESTSHARED") or "nowhere")
    library = next(shared.glob("_heapq.*.so"), None)
    if library is None:
        pytest.skip("this Python has no extension module to copy")
    folder = tmp_path / "plugins"
    source = module_source("Npu", extra="def late():\n    from . import _heapq\n    return _heapq")
    package = write_module(folder, "Arm_Npu_backend", source, part="")
    copy = package / library.name
    shutil.copy(library, copy)
    registry = pinned(folder, package)
    registry.get("Npu")
    copy.write_bytes(b"no library")
    (name,) = private_modules()
    loaded = sys.modules[name].late()
    assert callable(loaded.heappop)
    place = Path(loaded.__file__)
    assert place.read_bytes() == library.read_bytes()
    assert place.parent.parent.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_a_probe_loads_what_is_pinned_and_nothing_else(tmp_path: Path) -> None:
    path = write_module(tmp_path / "plugins", "Arm_Npu_backend", module_source("Npu"))
    candidate = Candidate("", str(path), CandidateKind.DIRECTORY, name=path.stem, path=str(path))
    candidate.pin = file_pin(path)
    (result,) = probe_candidates([candidate], timeout_s=60)
    assert result.outcome is ProbeOutcome.OK
    path.write_text(module_source("Npu", extra="open('ran', 'w')"))
    (result,) = probe_candidates([candidate], timeout_s=60)
    assert result.outcome is ProbeOutcome.REJECTED
    assert result.reason.startswith("its SHA-256 is ")


@pytest.mark.parametrize("name", ["a\nb.py", "a\rb.py", "a\\b.py"])
def test_names_that_could_be_two_lines_have_no_digest(tmp_path: Path, name: str) -> None:
    package = write_module(tmp_path, "Arm_Npu_backend", part="")
    make_file(package, name)
    with pytest.raises(RejectionError, match="has a line end or backslash in its name"):
        module_snapshot(str(package))


@NEEDS_NAMED_PIPES
def test_a_pipe_in_a_package_is_refused_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    source = module_source("Npu", extra="from . import part")
    package = write_module(folder, "Arm_Npu_backend", source, other="")
    os.mkfifo(package / "part.py")
    with pytest.raises(OSError, match=r"part\.py is not a regular file"):
        module_snapshot(str(package))
    trust = tmp_path / "trust.toml"
    trust.write_text(f"[files]\n'{package}' = '{'0' * 64}'")
    for options, status, reason in (
        (PluginOptions(folder, trust_file=trust), "rejected", "part.py is not a regular file"),
        (PluginOptions(folder), "failed", "cannot import name 'part'"),
    ):
        registry = BackendRegistry.discover(options)
        registry.available()
        (candidate,) = [c for c in registry.candidates if c.name == "Arm_Npu_backend"]
        assert candidate.status is CandidateStatus(status)
        assert reason in candidate.reason


@NEEDS_OWNERS
@NEEDS_LINKS
def test_every_link_on_the_way_counts(tmp_path: Path) -> None:
    folder, between, home = (tmp_path / name for name in ("plugins", "between", "home"))
    folder.mkdir()
    between.mkdir()
    target = write_module(home, "target", module_source("Npu"))
    (between / "middle.py").symlink_to(target)
    (folder / "Arm_Npu_backend.py").symlink_to("../between/middle.py")
    entry = str(folder / "Arm_Npu_backend.py")
    assert links_to(entry) == [entry, str(between / "middle.py")]
    assert BackendRegistry.discover(PluginOptions(folder)).get("Npu").get_id() == "Npu"
    between.chmod(0o777)
    registry = BackendRegistry.discover(PluginOptions(folder))
    (candidate,) = [c for c in registry.candidates if c.name == "Arm_Npu_backend"]
    assert candidate.reason.startswith(
        f"on the way to it, its directory {between} can be written by everybody"
    )
    between.chmod(0o1777)  # only the link's owner can put another in its place
    assert BackendRegistry.discover(PluginOptions(folder)).get("Npu").get_id() == "Npu"


@NEEDS_ROOT
def test_a_link_of_another_user_on_the_way_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    target = write_module(tmp_path / "home", "target", module_source("Npu"))
    middle = tmp_path / "middle.py"
    middle.symlink_to(target)
    os.lchown(middle, 12345, 12345)
    (folder / "Arm_Npu_backend.py").symlink_to(middle)
    registry = BackendRegistry.discover(PluginOptions(folder))
    (candidate,) = [c for c in registry.candidates if c.name == "Arm_Npu_backend"]
    expected = f"on the way to it, its link {middle} is owned by another user (id 12345)"
    assert candidate.reason == expected


@NEEDS_LINKS
def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        links_to(str(tmp_path / "a"))


def remembered(path: Path) -> Candidate:
    """A candidate whose probe is remembered as passed."""
    candidate = Candidate("", str(path), CandidateKind.DIRECTORY, name=path.stem, path=str(path))
    remember(candidate, "state", ProbeResult(ProbeOutcome.OK, backend_id="Npu"))
    assert recall(candidate, "state") is not None
    return candidate


@NEEDS_OWNERS
@pytest.mark.parametrize("mode", [0o666, 0o664])
def test_a_remembered_probe_that_others_can_change_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    candidate = remembered(write_module(tmp_path / "plugins", "Arm_Npu_backend"))
    (probe_file,) = (cache_directory() / "probes").iterdir()
    probe_file.chmod(mode)
    assert recall(candidate, "state") is None


@NEEDS_ROOT
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_remembered_probe_of_another_user_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    candidate = remembered(write_module(tmp_path / "plugins", "Arm_Npu_backend"))
    (probe_file,) = (cache_directory() / "probes").iterdir()
    os.chown(probe_file if what == "file" else probe_file.parent, 12345, 12345)
    assert recall(candidate, "state") is None


def test_a_digest_is_read_through_a_descriptor_that_is_no_device() -> None:
    with pytest.raises(OSError, match="/dev/null is not a regular file"):
        read_regular("/dev/null")
