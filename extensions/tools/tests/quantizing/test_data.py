"""Calibration data from arrays and files: accepted and refused ones."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from armpy import DataType, InvalidArgumentError, Network, TensorInfo, ops
from armpy.graph import Graph
from armpy_tools.quantize.data import read_samples

SAMPLES = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def graph() -> Graph:
    net = Network("data")
    value = net.input("x", TensorInfo((1, 4), DataType.FLOAT32))
    net.output("y", net.add(ops.Softmax(), value, name="softmax"))
    return net.build()


def archive() -> bytes:
    written = io.BytesIO()
    np.savez_compressed(written, anything=SAMPLES)
    return written.getvalue()


def member(content: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression) as file:
        file.writestr("x.npy", content)
    return written.getvalue()


def objects() -> bytes:
    written = io.BytesIO()
    np.save(written, np.array([{}], object), allow_pickle=True)
    return written.getvalue()


def header_without_elements() -> bytes:
    """An array of 1.6 TB, as its header says."""
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000, 4), }"
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117).encode() + b"\n1234"


def altered() -> bytes:
    """An archive whose compressed elements are not what their checksum says."""
    content = bytearray(archive())
    start = content.index(b"anything.npy") + len("anything.npy") + 20
    content[start + 8 : start + 24] = bytes(16)
    return bytes(content)


DAMAGED = {
    "objects": member(objects()),
    "cut": archive()[:-30],
    "altered": altered(),
    "larger than memory": member(header_without_elements()),
    "only the magic": member(b"\x93NUMPY"),
    "no header": member(b"\x93NUMPY\x01\x00\x05\x00{[(-\n"),
    "empty file": b"",
    "a pickle": b"\x80\x04]\x94K\x01a.",
}


@pytest.mark.parametrize(("name", "is_logged"), [("other", True), ("x", False)])
def test_an_only_array_is_taken_for_the_only_input_which_is_logged(
    name: str, is_logged: bool, graph: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, allow_pickle=False, **{name: SAMPLES[:, np.newaxis]})
    text = f"{path}: its only array 'other' is taken for the model's only input 'x'."
    samples = read_samples(graph, path)
    assert [record.getMessage() for record in caplog.records] == [text] * is_logged
    np.testing.assert_array_equal(np.concatenate([array for (array,) in samples]), SAMPLES)
    caplog.clear()
    read_samples(graph, path, is_quiet=True)
    assert not caplog.records


def test_arrays_of_other_names_are_refused_where_there_are_several(
    graph: Graph, tmp_path: Path
) -> None:
    np.savez(tmp_path / "data.npz", x=SAMPLES, other=SAMPLES)
    with pytest.raises(InvalidArgumentError, match=r"Expected 'x'; got 'x', 'other'"):
        read_samples(graph, tmp_path / "data.npz")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_is_damaged_is_named(graph: Graph, tmp_path: Path, name: str) -> None:
    path = tmp_path / "data.npz"
    path.write_bytes(DAMAGED[name])
    with pytest.raises(InvalidArgumentError, match=r"data\.npz: the file cannot be read: \w+"):
        read_samples(graph, path)


def test_an_archive_among_a_folders_arrays_is_refused(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "data.npy").write_bytes(archive())
    with pytest.raises(InvalidArgumentError, match="the file is an archive"):
        read_samples(graph, tmp_path)


@pytest.mark.parametrize("spoilt", [[2], [1, 2], [0, 1, 2]])
def test_the_first_file_of_a_folder_that_does_not_fit_is_named(
    graph: Graph, tmp_path: Path, spoilt: list[int]
) -> None:
    for index, sample in enumerate(SAMPLES):
        np.save(tmp_path / f"{index}.npy", sample[np.newaxis, : 3 if index in spoilt else 4])
    message = rf"{spoilt[0]}\.npy, input 'x': the shape does not match\. .* got \(1, 3\)"
    with pytest.raises(InvalidArgumentError, match=message):
        read_samples(graph, tmp_path)


def test_what_is_no_number_is_refused_with_the_sample_that_holds_it(graph: Graph) -> None:
    samples = SAMPLES.copy()
    samples[1, 2] = np.nan
    with pytest.raises(InvalidArgumentError, match=r"input 'x': sample 2 of the data .* 1 of 4"):
        read_samples(graph, {"x": samples})


def test_samples_after_the_limit_are_not_read(graph: Graph) -> None:
    samples = SAMPLES.copy()
    samples[2] = np.nan
    assert len(read_samples(graph, {"x": samples}, 2)) == 2
