"""``armpy cache``, on backends that keep something."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from armpy.backend import CacheEntry, GroupedCacheEntry, IBackendCache
from armpy.graph.network import Network
from armpy.model import Model
from armpy_testing.backends.dynamic_modules import (
    forget_private_modules,
    module_source,
    write_module,
)
from armpy_testing.backends.fake_backends import FakeBackend, registry_of, runtime_of
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration
from armpy_testing.command_line import Cli, armpy_command, find_backends_in
from armpy_testing.models.networks import ADD, RELU, f32

for library in ("click", "PIL"):
    pytest.importorskip(library)

KEEPER = """
    import os
    from pathlib import Path

    from armpy.backend import CacheEntry, GroupedCacheEntry, IBackendCache, cache_directory


    class Kept(IBackendCache):
        name = "models"
        limit_bytes = 4 << 20

        @property
        def location(self):
            return str(cache_directory() / "keeper")

        def _entries(self, problems):
            files = sorted(Path(self.location).glob("*"))
            return [
                CacheEntry(f.name, f.stat().st_size, 0.0, "a model", problems(f)) for f in files
            ]

        def list_entries(self):
            return self._entries(lambda file: "")

        def verify(self):
            return self._entries(lambda file: "" if file.read_text() == "good" else "damaged")

        def clear(self):
            files = list(Path(self.location).glob("*"))
            for file in files:
                file.unlink()
            return len(files)


    Backend.get_caches = lambda self: [Kept()]
"""


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Options that find the backend, which keeps two things."""
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    write_module(tmp_path / "modules", "acme_keeper_backend", module_source("Keeper", extra=KEEPER))
    (tmp_path / "cache" / "keeper").mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / "cache" / "keeper" / name).write_text("good")
    yield ["--dynamic-backends-path", str(tmp_path / "modules"), "--backends", "Keeper"]
    forget_private_modules()


def test_what_is_kept_is_listed(options: list[str], cli: Cli) -> None:
    out = cli.out("cache", "list", *options)
    assert "Keeper models in " in out
    assert "2 entries, 8 B of at most 4 MiB" in out
    # By columns: date and time, size, files, of what, what for.
    (row,) = [line.split()[2:] for line in out.splitlines()[1:2]]
    assert row == ["8", "B", "2", "unknown", "a", "start", "without", "preparing", "(2)"]


def test_verifying_fails_if_something_is_damaged(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], cli: Cli
) -> None:
    assert "all are sound" in cli.out("cache", "verify", *options)
    (tmp_path / "cache" / "keeper" / "two").write_text("bad")
    assert armpy_command(["cache", "verify", *options]) == 1
    captured = capsys.readouterr()
    assert "1 cannot be used" in captured.out
    assert [line.split() for line in captured.out.splitlines()[2:-1]] == [["two", "damaged"]]
    assert captured.err == ""
    (cache,) = cli.document("cache", "verify", *options, code=1)["caches"]
    assert [entry["problem"] for entry in cache["entries"]] == ["", "damaged"]


def test_clearing_deletes_everything(options: list[str], tmp_path: Path, cli: Cli) -> None:
    assert cli.out("cache", "clear", *options) == "Keeper models: 2 deleted\n"
    assert list((tmp_path / "cache" / "keeper").iterdir()) == []
    (entry,) = cli.document("cache", "clear", *options)["caches"]
    assert entry == {"backend": "Keeper", "name": "models", "deleted": 0}


def test_whole_models_that_are_left_are_named(options: list[str], tmp_path: Path, cli: Cli) -> None:
    kept = tmp_path / "cache" / "models" / "0.armpy"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"a model")
    *_, last = cli.out("cache", "clear", *options).splitlines()
    assert last.startswith("whole models: left, ")
    assert kept.exists()


class Cache(IBackendCache):
    """Holds one thing, if a test wants."""

    location = "/somewhere"

    def __init__(self, listed: object, name: str = "things") -> None:
        self._listed = listed
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def list_entries(self) -> Sequence[CacheEntry]:
        if isinstance(self._listed, Exception):
            raise self._listed
        return self._listed  # type: ignore[return-value]  # it may be anything

    def verify(self) -> Sequence[CacheEntry]:
        return self.list_entries()

    def clear(self) -> int:
        return "many"  # type: ignore[return-value]  # on purpose


class Keeping(FakeBackend):
    """A backend with the caches that it is given."""

    def __init__(self, *caches: object, backend_id: str = "Keeping") -> None:
        super().__init__(backend_id)
        self._caches = caches

    def get_caches(self) -> Sequence[IBackendCache]:
        return self._caches  # type: ignore[return-value]  # it may be anything


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has the command find some backends, and no others."""
    return lambda *backends: find_backends_in(registry_of(*backends), monkeypatch)


@pytest.mark.parametrize(
    ("cache", "text"),
    [
        ("no cache", "Keeping / get_caches: .*Expected IBackendCache"),
        (Cache(OSError("the disk is away")), "Keeping / list_entries: .*the disk is away"),
        (Cache(7), "Keeping / list_entries: .*Expected Sequence"),
        (Cache(["a"]), "Keeping / list_entries: .*must list CacheEntry only"),
    ],
)
def test_what_a_cache_does_wrong_names_the_backend(
    cache: object, text: str, cli: Cli, use: Callable[..., None]
) -> None:
    use(Keeping(cache))
    assert re.search(text, cli.err("cache", "list", code=1))


def grouped(name: str, group: str, size: int, last_used_s: float) -> GroupedCacheEntry:
    return GroupedCacheEntry(name, size, last_used_s, f"about {name}", "", group)


def test_what_is_kept_is_summed_up_per_model(cli: Cli, use: Callable[..., None]) -> None:
    entries = [
        grouped("1", "mobilenet", 1024, 30.0),
        grouped("2", "kernels", 100, 40.0),
        grouped("3", "mobilenet", 1024, 20.0),
        grouped("4", "", 5, 10.0),
    ]
    use(Keeping(Cache(entries)))
    lines = cli.out("cache", "list", "--backends", "Keeping").splitlines()
    # By columns: date and time, size, how many, of what, what for; the last used first.
    rows = [line.split()[2:] for line in lines[1:4]]
    assert rows == [
        ["100", "B", "1", "kernels", "things"],
        ["2", "KiB", "2", "mobilenet", "things", "(2)"],
        ["5", "B", "1", "unknown", "things"],
    ]
    assert lines[4].split() == ["2.1", "KiB", "4", "all", "together"]


@pytest.fixture
def compiled_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the compiled parts of two models of one backend, and of one of another."""
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    for backend_id, name in (("Npu", "first"), ("Npu", "second"), ("Npu.2", "third")):
        net = Network(name)
        x = net.input("x", f32(4))
        net.output("y", net.add(RELU, net.add(ADD, x, x, name=f"{name} sum")))
        declared = declaration(keeps_programs=True)
        Model(net, runtime_of(ScriptedBackend(backend_id, declared=declared)))
    return tmp_path / "compiled"


def test_compiled_parts_are_listed_and_cleared_too(
    compiled_parts: Path, cli: Cli, use: Callable[..., None]
) -> None:
    assert len([*compiled_parts.iterdir()]) == 6
    use(FakeBackend("Npu"), FakeBackend("Npu.2"))
    out = cli.out("cache", "list")
    assert f"armpy compiled parts in {compiled_parts}: 6 entries" in out
    assert [out.count(name) for name in ("first", "second", "third")] == [1, 1, 1]
    of_npu = ("--backends", "Npu")
    (cache,) = cli.document("cache", "verify", *of_npu)["caches"]
    assert (cache["backend"], len(cache["entries"])) == ("Npu", 4)
    assert {entry["problem"] for entry in cache["entries"]} == {""}
    assert cli.out("cache", "clear", *of_npu) == "Npu compiled parts: 4 deleted\n"
    assert models_of(cli) == ["third"]
    assert cli.out("cache", "clear") == "armpy compiled parts: 2 deleted\n"
    assert [*compiled_parts.iterdir()] == []


def models_of(cli: Cli, *options: str) -> list[str]:
    """The models of which something is kept."""
    return [model["model"] for model in cli.document("cache", "list", *options)["models"]]
