"""Shared libraries of installed distributions that an installed package opens as backends."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from armpy.plugins import BackendRegistry, Candidate, CandidateKind, CandidateStatus, PluginOptions
from armpy.plugins.discovery import installed_libraries
from armpy.plugins.discovery.environment import environment_digest
from armpy.plugins.discovery.exported_functions import exported_functions
from armpy_testing.backends.fake_distributions import FakeSite, fake_site
from tests.support.compiled_modules import compile_library
from tests.support.pins import distribution_pin

FUNCTION = "OpenToyDevices"

OPENER = """
    import ctypes

    from armpy.errors import DeviceNotFoundError
    from armpy_reference import ReferenceBackend


    def make(name, path):
        class Backend(ReferenceBackend):
            library = path

            def get_id(self):
                return name

        return Backend


    def open_toys(path):
        count = ctypes.CDLL(path).OpenToyDevices()
        if not count:
            raise DeviceNotFoundError("no toy is plugged in", where="Toys")
        return [make(f"Toy{number}", path) for number in range(count)]
"""

EXPORTS = "int OpenToyDevices(void) { return COUNT; }"
CRASHES = "int OpenToyDevices(void) { *(volatile int *)0 = 1; return 1; }"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A folder on ``sys.path`` with a package that opens libraries."""
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "site").mkdir()
    with fake_site(tmp_path / "site") as site:
        entries = {FUNCTION: "toy_opener:open_toys"}
        site.install("toy-opener", entries, source=dedent(OPENER), group="armpy.libraries")
        yield site


def plant(
    site: FakeSite, name: str, source: str = EXPORTS, *, version: str = "1.0", count: int = 1
) -> Path:
    library = compile_library(site.path / f"lib{name}.so", source, COUNT=count)
    return site.install_library(name, library, version=version)


def libraries(registry: BackendRegistry) -> list[Candidate]:
    return [c for c in registry.candidates if c.kind is CandidateKind.LIBRARY]


def test_a_library_is_found_by_the_id_of_its_backend(site: FakeSite) -> None:
    plant(site, "toys")
    registry = BackendRegistry.discover()
    assert registry.get("Toy0").get_id() == "Toy0"
    assert registry.is_registered("Toy0")


def test_a_library_that_crashes_is_left_out_and_harms_no_other(
    site: FakeSite, caplog: pytest.LogCaptureFixture
) -> None:
    plant(site, "bad-toys", CRASHES)
    plant(site, "toys")
    registry = BackendRegistry.discover()
    registry.available()
    bad, good = libraries(registry)
    assert (bad.source, bad.status) == ("bad-toys 1.0", CandidateStatus.CRASHED)
    assert "SIGSEGV" in bad.reason
    assert good.status is CandidateStatus.REGISTERED
    assert "'libbad-toys.so' from bad-toys 1.0 is left out" in caplog.text


def test_a_library_without_a_device_is_left_out_without_a_warning(
    site: FakeSite, caplog: pytest.LogCaptureFixture
) -> None:
    plant(site, "toys", count=0)
    registry = BackendRegistry.discover()
    registry.available()
    (library,) = libraries(registry)
    assert library.reason == "Toys: no toy is plugged in."
    assert "toys" not in caplog.text


def test_a_library_is_named_as_long_as_it_cannot_be_read(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = plant(site, "toys")
    now_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 60_000_000_000)  # an index is kept

    def refused(path: str, names: object) -> frozenset[str]:  # root reads all files
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patched:
        patched.setattr(installed_libraries, "exported_functions", refused)
        registry = BackendRegistry.discover()
    (skipped,) = [path for path in registry.skipped_paths if path.path == str(library)]
    assert skipped.reason == "it cannot be read: Permission denied"
    assert libraries(registry) == []
    assert [c.path for c in libraries(BackendRegistry.discover())] == [str(library)]


def test_a_removed_library_is_left_out_with_the_reason(site: FakeSite) -> None:
    library = plant(site, "toys")
    registry = BackendRegistry.discover()
    library.unlink()
    registry.available()
    (found,) = libraries(registry)
    assert "No such file" in found.reason


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_library_that_comes_back_is_found(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch, is_settled: bool
) -> None:
    library = plant(site, "toys")
    if is_settled:  # so that the index is kept, whose key is the same after all
        now_ns = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 60_000_000_000)
    elsewhere = library.rename(library.with_name("elsewhere"))
    assert libraries(BackendRegistry.discover()) == []
    elsewhere.rename(library)
    assert [c.path for c in libraries(BackendRegistry.discover())] == [str(library)]


def test_a_changed_library_is_another_environment(site: FakeSite) -> None:
    library = plant(site, "toys")
    before = environment_digest()
    library.write_bytes(library.read_bytes() + b" ")
    assert environment_digest() != before


def test_a_pinned_library_is_loaded_from_a_copy_of_the_checked_bytes(
    site: FakeSite, tmp_path: Path
) -> None:
    library = plant(site, "toys")
    trust = tmp_path / "trust.toml"
    trust.write_text(f'[distributions]\ntoys = "{distribution_pin("toys")}"\n')
    registry = BackendRegistry.discover(PluginOptions(trust_file=str(trust)))
    backend = registry.get("Toy0")
    copy = Path(type(backend).library)  # type: ignore[attr-defined]
    assert copy != library
    assert copy.read_bytes() == library.read_bytes()
    library.write_bytes(library.read_bytes() + b" ")
    changed = BackendRegistry.discover(PluginOptions(trust_file=str(trust)))
    (found,) = libraries(changed)
    assert "but the trust file pins" in found.reason


def test_exports_are_read_from_libraries_of_other_systems(tmp_path: Path) -> None:
    for name, contents in {"toy.dll": pe_library(), "toy.dylib": mach_library()}.items():
        file = tmp_path / name
        file.write_bytes(contents)
        assert exported_functions(str(file), ["Toy", "Other"]) == {"Toy"}
        for end in range(0, len(contents), 7):  # damaged
            file.write_bytes(contents[:end])
            assert exported_functions(str(file), ["Toy", "Other"]) <= {"Toy"}


def test_offsets_and_counts_of_damaged_libraries_end_the_search(tmp_path: Path) -> None:
    elf = b"\x7fELF" + struct.pack(
        "<BB10x HHIQQQIHHHHHH", 2, 1, *[0] * 5, 2**64 - 1, *[0] * 5, 1, 0
    )
    mach = struct.pack("<8I", 0xFEEDFACF, 0, 0, 6, 2**32 - 1, 0, 0, 0)
    for name, head in {"toy.so": elf, "toy.dylib": mach}.items():
        file = tmp_path / name
        file.write_bytes(head + bytes(64) + b"Toy\0")
        assert exported_functions(str(file), ["Toy"]) == frozenset()


def pe_library() -> bytes:
    """A library in PE with one section, in which it exports ``Toy``, and has the text ``Other``."""
    header = b"MZ" + bytes(58) + struct.pack("<I", 64)
    file_header = b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, 240, 0x2022)
    optional = struct.pack("<H", 0x20B) + bytes(110) + struct.pack("<II", 0x1000, 40) + bytes(120)
    section = b".edata\0\0" + struct.pack("<4I16x", 0x200, 0x1000, 0x200, 0x200)
    directory = struct.pack("<IIHH7I", 0, 0, 0, 0, 0, 1, 1, 1, 0, 0x1028, 0)
    data = directory + struct.pack("<I", 0x102C) + b"Toy\0Other\0"
    return (header + file_header + optional + section).ljust(0x200, b"\0") + data


def mach_library() -> bytes:
    """A library in Mach-O that exports ``_Toy``, and calls ``_Other``."""
    texts = b"\0_Toy\0_Other\0"
    symbols = struct.pack("<IBBHQ", 1, 0x0F, 1, 0, 0x10) + struct.pack("<IBBHQ", 6, 0x01, 0, 0, 0)
    start = 32 + 24
    header = struct.pack("<8I", 0xFEEDFACF, 0x0100000C, 0, 6, 1, 24, 0, 0)
    command = struct.pack("<6I", 2, 24, start, 2, start + len(symbols), len(texts))
    return header + command + symbols + texts


def test_exports_are_read_from_symbols_and_not_from_texts(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("GROUP ( libtoy.so.1 ) OpenToyDevices\0")
    assert exported_functions(str(tmp_path / "text.so"), [FUNCTION]) == frozenset()
    library = compile_library(tmp_path / "libtoy.so", EXPORTS, COUNT=1)
    assert exported_functions(str(library), [FUNCTION, "open"]) == {FUNCTION}
