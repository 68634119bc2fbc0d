from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.backend import request_tuning
from armpy.core.file_digest import content_digest
from armpy.model import LoadOptions, LoadRequest, model_files
from armpy.model.archive import model_cache
from armpy.model.archive.kept_models import ModelCache
from armpy.plugins.front_ends.registry import FrontEndProxy
from armpy.store import entries
from armpy.store.archive import checksum_cache as verified
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.models.networks import placement_of
from armpy_testing.systems import NEEDS_NAMED_PIPES, NEEDS_OWNERS, NEEDS_REPLACEABLE_FILES
from tests.support.prepared_models import use_own_model_cache


def changed(contents: bytes) -> bytes:
    """The same model with another description."""
    assert b"MLIR Converted" in contents
    return contents.replace(b"MLIR Converted", b"mlir converted")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, switched on."""
    return use_own_model_cache(monkeypatch, tmp_path / "cache")


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A model file of one's own."""
    return Path(shutil.copy(DIGITS, tmp_path / "digits.tflite"))


def image(seed: int = 0) -> np.ndarray:
    """An input of the model."""
    shape = [size or 1 for size in armpy.load(DIGITS, backends=["CpuRef"]).inputs[0].shape or ()]
    return np.random.default_rng(seed).integers(-128, 127, shape).astype(np.int8)


def files(cache: Path) -> list[Path]:
    """What is kept."""
    return sorted(cache.glob("*.armpy"))


def test_the_second_load_starts_from_what_the_first_has_kept(digits: Path, cache: Path) -> None:
    first = armpy.load(digits)
    assert not first.is_light
    assert len(files(cache)) == 1
    second = armpy.load(digits)
    assert second.is_light
    pixels = image()
    np.testing.assert_array_equal(second(pixels), first(pixels))
    assert second.metadata == first.metadata
    assert second.inputs == first.inputs
    assert second.outputs == first.outputs
    placement = second.placement
    assert placement is not None
    assert [use.is_hit for use in placement.cache_uses] == [True]
    assert placement.layers == placement_of(first).layers


def change_unseen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change a file so that the system shows the state of before, as for a dirty mapped page."""
    before = path.stat()
    path.write_bytes(changed(path.read_bytes()))
    stat, fstat = os.stat, os.fstat

    def shown(info: os.stat_result) -> os.stat_result:
        return before if os.path.samestat(info, before) else info

    monkeypatch.setattr(os, "stat", lambda *args, **options: shown(stat(*args, **options)))
    monkeypatch.setattr(os, "fstat", lambda handle: shown(fstat(handle)))


@NEEDS_REPLACEABLE_FILES
def test_a_change_that_no_time_shows_is_another_model(
    digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_year_ago_s = time.time() - 365 * 86400
    os.utime(digits, (a_year_ago_s, a_year_ago_s))
    monkeypatch.setattr(verified, "SETTLED_NS", 0)
    time.sleep(0.02)  # the resolution of file systems' times
    armpy.load(digits)
    assert armpy.load(digits).is_light
    change_unseen(digits, monkeypatch)
    assert not armpy.load(digits).is_light


@NEEDS_NAMED_PIPES
def test_a_digest_of_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match=r"regular file|directory"):
            content_digest(os.fspath(path))


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_not_looked_up(name: str) -> None:
    assert model_cache.cached_path(LoadRequest(name, LoadOptions())) is None


@pytest.mark.parametrize("name", ["ARMPY_DUMP_GRAPHS", "ARMPY_SYSTEM_TRACE", "ARMPY_VLOG"])
def test_what_only_ordinary_networks_do_is_not_kept(
    name: str, digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert model_cache.cached_path(LoadRequest(digits, LoadOptions())) is not None
    monkeypatch.setenv(name, "x")
    assert model_cache.cached_path(LoadRequest(digits, LoadOptions())) is None


def test_the_switch_is_heard(digits: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("ARMPY_MODEL_CACHE", "off")
    armpy.load(digits)
    assert not armpy.load(digits).is_light
    assert not files(cache)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("damage", ["shorter", "empty", "another byte", "another model"])
def test_a_damaged_entry_costs_time_alone(digits: Path, cache: Path, damage: str) -> None:
    expected = armpy.load(digits)(image())
    (entry,) = files(cache)
    contents = bytearray(entry.read_bytes())
    if damage == "shorter":
        entry.write_bytes(contents[:-100])
    elif damage == "empty":
        entry.write_bytes(b"")
    elif damage == "another byte":
        contents[len(contents) // 2] ^= 255
        entry.write_bytes(contents)
    else:
        other = digits.with_name("other.tflite")
        other.write_bytes(changed(digits.read_bytes()))
        armpy.load(other).save(entry)
        entry.write_bytes(entry.read_bytes()[:200] + contents[200:])
    again = armpy.load(digits)
    np.testing.assert_array_equal(again(image()), expected)
    assert not again.is_light
    assert armpy.load(digits).is_light  # it was replaced


@NEEDS_OWNERS
def test_a_cache_that_others_can_write_to_is_not_used(
    digits: Path, cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "_REASONS", set())
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(cache.parent))
    armpy.load(digits)
    (kept,) = cache.glob("*.armpy")
    cache.chmod(0o777)
    kept_at = kept.stat().st_mtime_ns
    for _ in range(2):
        assert not armpy.load(digits).is_light
    assert kept.stat().st_mtime_ns == kept_at
    (warning,) = [line for line in caplog.messages if line.startswith("whole models are not kept")]
    assert f"its directory {cache} can be written by everybody" in warning
    assert f"run: chmod -R go-w {cache.parent}" in warning
    (entry,) = ModelCache().verify()
    assert entry.problem == f"its directory {cache} can be written by everybody"


@pytest.mark.slow
def test_tuning_goes_by_no_kept_model_and_makes_them_old(digits: Path) -> None:
    armpy.load(digits)
    with request_tuning(0.01):
        assert not armpy.load(digits).is_light
    assert not armpy.load(digits).is_light
    assert armpy.load(digits).is_light


@NEEDS_REPLACEABLE_FILES
@pytest.mark.parametrize("name", ["big.onnx", "big.tflite", "big.ONNX", "big"])
def test_elements_in_other_files_are_not_taken_for_known(
    tmp_path: Path, cache: Path, name: str
) -> None:
    weights = np.arange(4096, dtype=np.float32)
    path = save_sum(tmp_path / name, weights, location="weights.data")
    armpy.load(path)
    weights[::-1].tofile(tmp_path / "weights.data")
    output = armpy.load(path)(np.zeros(4096, np.float32))
    np.testing.assert_array_equal(output, weights[::-1])
    assert not files(cache)


def test_a_model_whose_front_end_may_read_other_files_is_not_kept(
    digits: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FrontEndProxy, "notes_other_files", False)
    armpy.load(digits)
    assert not files(cache)


@pytest.mark.slow
def test_links_that_are_exchanged_lead_to_other_models(digits: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tflite"
    other.write_bytes(shifted(digits.read_bytes()))
    os.utime(other, ns=(digits.stat().st_atime_ns, digits.stat().st_mtime_ns))
    expected = [armpy.load(path.read_bytes())(image()) for path in (digits, other)]
    link = tmp_path / "link.tflite"
    for path, answer in [(digits, 0), (other, 1)] * 2:
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        np.testing.assert_array_equal(armpy.load(link)(image()), expected[answer])


def save_sum(path: Path, weights: np.ndarray, location: str = "") -> Path:
    """An ONNX model that adds weights, which lie in a file beside it if that has a name."""
    pytest.importorskip("armpy_onnx")
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    shape = list(weights.shape)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
        "location",
        [value("x", 1, shape)],
        [value("y", 1, shape)],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    options = {"location": location, "size_threshold": 0} if location else {}
    onnx.save(model, path, save_as_external_data=bool(location), format="protobuf", **options)
    return path


@pytest.mark.slow
def test_the_oldest_go_when_there_is_no_room(
    digits: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armpy.load(digits)
    (first,) = files(cache)
    os.utime(first, (1, 1))
    monkeypatch.setattr("armpy.model.archive.kept_models.LIMIT_BYTES", 5 * first.stat().st_size)
    # More than find room: one is not kept if what it depends on changes while it is loaded, and
    # other tests install packages.
    for number in range(8):
        armpy.load(digits, num_threads=1, memory_limit_bytes=(1 << 30) + number)
    assert first not in files(cache)
    assert len(files(cache)) == 5


def shifted(contents: bytes) -> bytes:
    """A model of the same layout that answers otherwise: its largest constant has other signs."""
    model = bytearray(contents)
    longest = max(re.finditer(rb"[^\0]{64,}", contents), key=lambda match: len(match.group()))
    begin, end = longest.span()
    model[begin:end] = bytes(model[begin:end])[::-1]
    return bytes(model)


@NEEDS_REPLACEABLE_FILES
@pytest.mark.sampled(2)
@pytest.mark.parametrize("in_place", [False, True])
def test_what_took_a_models_place_while_it_was_loaded_is_not_kept_for_it(
    digits: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    contents = digits.read_bytes()
    load_file = model_files.load_file

    def replace_and_load(request: LoadRequest, load: Callable[..., object]) -> armpy.Model:
        if not in_place:
            digits.unlink()
        digits.write_bytes(shifted(contents))
        return load_file(request, load)

    with monkeypatch.context() as patches:
        patches.setattr(model_files, "load_file", replace_and_load)
        other = armpy.load(digits)(image())
    digits.write_bytes(contents)
    expected = armpy.load(contents)(image())
    assert not np.array_equal(other, expected)
    np.testing.assert_array_equal(armpy.load(digits)(image()), expected)
    np.testing.assert_array_equal(armpy.load(digits)(image()), expected)
    assert not list(cache.glob("*.tmp"))


@pytest.mark.slow
def test_an_entry_under_anothers_name_is_not_used(digits: Path, cache: Path) -> None:
    other = digits.with_name("other.tflite")
    other.write_bytes(shifted(digits.read_bytes()))
    armpy.load(other)
    (entry,) = files(cache)
    expected = armpy.load(digits)(image())
    (own,) = set(files(cache)) - {entry}
    entry.replace(own)
    again = armpy.load(digits)
    assert not again.is_light
    np.testing.assert_array_equal(again(image()), expected)
