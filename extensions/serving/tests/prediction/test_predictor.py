"""Batches of tables through models: the same rows, whatever the process and the pieces."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armpy
from armpy.core.file_ownership import HAS_OWNERS
from armpy.errors import ArmpyError, InvalidArgumentError, ParserError
from armpy.frontends.tflite_writer.tflite import write_tflite
from armpy.ops import Gather
from armpy.store.archive.container import open_container
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_serving import Predictor
from armpy_serving.prediction.node_files import compiled_file, node_folder
from armpy_serving.prediction.process_models import ProcessModels
from armpy_serving.prediction.row_model import RowModel
from armpy_serving.prediction.thread_budget import assigned_threads
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.models.row_models import CLASSES, WIDTH, scores, write_row_model

Array = npt.NDArray[Any]  # Any: of whatever type


@pytest.fixture(autouse=True)
def own_models(monkeypatch: pytest.MonkeyPatch) -> ProcessModels:
    """Nothing that another test has loaded."""
    models = ProcessModels()
    monkeypatch.setattr("armpy_serving.predictor.process_models", models)
    return models


@pytest.fixture
def prepared_anew(own_models: ProcessModels) -> Callable[[Predictor], RowModel]:
    """A predictor's model, made as in a process that has none yet."""

    def prepare(predictor: Predictor) -> RowModel:
        own_models.reset()
        return predictor.prepare()

    return prepare


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that another test has compiled."""
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))


def rows(count: int, first: int = 0) -> Array:
    """Read-only rows of small whole numbers."""
    made = ((np.arange(count * WIDTH) + first) % 11 - 5).reshape(count, WIDTH).astype(np.float32)
    made.setflags(write=False)
    return made


@pytest.fixture(params=[1, 4, None], ids=["one row", "four rows", "open"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_row_model(tmp_path / "model.tflite", request.param)


@pytest.mark.parametrize("count", [1, 4, 31, 32, 33, 100])
def test_every_row_has_its_answer_whatever_the_models_batch(file: Path, count: int) -> None:
    answers = Predictor(file)({"x": rows(count)})
    np.testing.assert_array_equal(answers["scores"], scores(rows(count)))


def test_no_more_rows_are_executed_at_once_than_is_said(file: Path) -> None:
    fixed = armpy.load(file).inputs[0].shape
    assert fixed is not None
    assert Predictor(file, max_rows=8).prepare().rows == (4 if fixed[0] == 4 else 8)
    assert Predictor(file).prepare().rows == (4 if fixed[0] == 4 else 32)


def test_other_columns_are_handed_on_as_they_are(file: Path) -> None:
    ids = np.arange(5)
    answers = Predictor(file)({"id": ids, "x": rows(5)})
    assert [*answers] == ["id", "scores"]
    assert answers["id"] is ids


def test_answers_are_in_memory_of_their_own(file: Path) -> None:
    predictor = Predictor(file)
    first = predictor({"x": rows(40)})["scores"]
    kept = first.copy()
    second = predictor({"x": rows(40, 3)})["scores"]
    assert first.flags.owndata
    assert first.flags.writeable
    second[...] = 0
    np.testing.assert_array_equal(first, kept)


def test_no_rows_give_answers_of_no_rows(file: Path) -> None:
    answers = Predictor(file)({"x": rows(0), "id": np.arange(0)})
    assert answers["scores"].shape == (0, CLASSES)
    assert answers["scores"].dtype == np.float32
    assert answers["id"].shape == (0,)


@pytest.mark.parametrize(
    "given",
    [
        rows(5).astype(np.float64),
        rows(5).astype(">f4"),
        rows(5).astype(np.int64),
        rows(5)[:, ::-1][:, ::-1],
        np.array([*map(list, rows(5))], object),
        [*map(list, rows(5))],
    ],
    ids=["float64", "byte order", "whole numbers", "strides", "objects", "lists"],
)
def test_numbers_that_fit_are_taken_whatever_they_are_kept_in(file: Path, given: object) -> None:
    answers = Predictor(file)({"x": given})
    np.testing.assert_array_equal(answers["scores"], scores(rows(5)))


def column_of(*values: object) -> Array:
    """A column of objects."""
    made = np.empty(len(values), object)
    made[:] = values
    return made


def test_rows_that_are_bytes_or_lists_are_elements(file: Path) -> None:
    column = column_of(*[row.tobytes() for row in rows(3)], *map(list, rows(3)))
    answers = Predictor(file)({"x": column})
    np.testing.assert_array_equal(answers["scores"], scores(np.concatenate([rows(3)] * 2)))


def test_flat_rows_are_folded() -> None:
    pixels = np.random.default_rng(1).integers(-128, 128, (5, 16, 16, 1), np.int8)
    predictor = Predictor(DIGITS, signature="serving_default")
    (one,), (other,) = [
        predictor({"image": given}).values() for given in (pixels, pixels.reshape(5, 256))
    ]
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"y": rows(5)}, "columns are missing: 'x'.*got 'y'.*input_columns"),
        ({"x": rows(5), "id": np.arange(4)}, "'x' has 5, 'id' has 4"),
        ({"x": rows(40)[:, :5]}, r"rows 0 to \d+.*rows of \(6,\).*got \d+ rows of \(5,\)"),
        ({"x": rows(5) + np.float64(1e300)}, "float64 of .*1e.300"),
        ({"x": np.full((5, WIDTH), 2**24 + 1)}, "int64 of 16777217 to 16777217"),
        ({"x": np.full((5, WIDTH), "a")}, "float32.*got <U1"),
        ({"x": column_of([1] * WIDTH, [1] * 5)}, r"row 1:.*got \(5,\), where row 0 has \(6,\)"),
        ({"x": column_of([1] * WIDTH, None)}, "row 1:.*NoneType"),
        ({"x": [bytes(4 * WIDTH), bytes(4)]}, r"row 1:.*got \(1,\), where row 0 has \(6,\)"),
        ({"x": [bytes(4 * WIDTH), None]}, "row 1:.*NoneType"),
        ({"x": np.array([b"a" * 24] * 2)}, "column 'x': .*cut.*zeros.*S24.*dtype=object"),
        ({"x": rows(5), "scores": rows(5)}, "has columns 'scores' already.*output_columns"),
        ({"x": rows(5), "n": 3}, "column 'n': the column has no rows"),
        ([rows(5)], "not a table of columns.*got list"),
    ],
)
def test_batches_that_do_not_fit_are_refused_in_words(
    tmp_path: Path, batch: Any, message: str
) -> None:
    predictor = Predictor(write_row_model(tmp_path / "model.tflite", 1))
    with pytest.raises(InvalidArgumentError, match=f"(?s){message}"):
        predictor(batch)


def test_nothing_that_is_masked_is_taken_for_a_number(file: Path) -> None:
    predictor = Predictor(file)
    masked = np.ma.masked_array(rows(5), mask=False)
    answers = predictor({"x": masked})
    np.testing.assert_array_equal(answers["scores"], scores(rows(5)))
    masked[3, 2] = np.ma.masked
    message = r"column 'x', row 3: the mask would be lost.*got 1 of 5 rows.*numpy\.ma\.filled"
    with pytest.raises(InvalidArgumentError, match=f"(?s){message}"):
        predictor({"x": masked})
    for column in ([*masked], column_of(*masked)):
        with pytest.raises(InvalidArgumentError, match=r"row 3: .*got masked elements"):
            predictor({"x": column})


def test_real_numbers_are_quantised_only_if_that_is_said() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (5, 16, 16, 1))
    real, name = pixels / 255.0, "serving_default"
    with pytest.raises(InvalidArgumentError, match="quantize_inputs=True"):
        Predictor(DIGITS, signature=name)({"image": real})
    (made,) = Predictor(DIGITS, quantize_inputs=True, signature=name)({"image": real}).values()
    (stored,) = Predictor(DIGITS, signature=name)(
        {"image": pixels - 128}
    ).values()  # by the file's scale
    np.testing.assert_array_equal(made, stored)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "column 'pixels', row 34: a number cannot be quantised.*'image'; got NaN.*Drop"),
        (-np.inf, "column 'pixels', row 34: a number cannot be quantised.*infinity"),
        (
            1e300,
            r"column 'pixels', rows 32 to 39: .*1e\+300. float32 has no numbers so large. Drop",
        ),
    ],
)
def test_rows_that_cannot_be_quantised_are_named(value: float, message: str) -> None:
    predictor = Predictor(
        DIGITS,
        signature="serving_default",
        input_columns={"pixels": "image"},
        quantize_inputs=True,
    )
    pixels = np.zeros((40, 16, 16, 1))
    pixels[34:36, 3, 3] = value
    with pytest.raises(InvalidArgumentError, match=f"(?s){message}") as failed:
        predictor({"pixels": pixels})
    assert "quantize_inputs" not in str(failed.value)


def test_errors_of_an_execution_name_columns_and_rows(tmp_path: Path) -> None:
    net = armpy.Network()
    value = net.input("x", TensorInfo((None,), DataType.SIGNED32), default_shape=(1,))
    table = net.constant(np.arange(10, dtype=np.float32).reshape(5, 2))
    net.output("y", net.add(Gather(axis=0), table, value))
    write_tflite(net.build(), tmp_path / "table.tflite")
    predictor = Predictor(tmp_path / "table.tflite", input_columns={"id": "x"}, max_rows=4)
    ids = np.array([0, 1, 2, 3, 4, 99, 1], np.int32)
    for _ in range(2):
        with pytest.raises(ArmpyError, match=r"^column 'id', rows 4 to 6, ") as failed:
            predictor({"id": ids})
        assert type(failed.value) is type(failed.value.__cause__)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_columns": {"a": "y"}}, "there is no input 'y'.*'x'"),
        ({"output_columns": {"a": "y"}}, "there is no output 'y'.*'scores'"),
        ({"input_columns": {"a": "x", "b": "x"}}, "two columns are for one input"),
        ({"max_rows": 0}, "max_rows"),
        ({"runtime": None}, "options of armpy.load.*got runtime"),
        ({"no_option": 1}, "options of armpy.load.*got no_option"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: Any, message: str) -> None:
    file = write_row_model(tmp_path / "model.tflite", 1)
    with pytest.raises(InvalidArgumentError, match=f"(?s){message}"):
        Predictor(file, **arguments).prepare()


def test_only_what_names_the_model_is_pickled(file: Path) -> None:
    predictor = Predictor(file)
    predictor.prepare()
    assert len(pickle.dumps(predictor)) < 1000


def test_a_file_that_is_another_by_now_is_refused(tmp_path: Path) -> None:
    file = write_row_model(tmp_path / "model.tflite", 1)
    predictor = Predictor(file)
    write_row_model(file, 4)
    with pytest.raises(ParserError, match="not the one that the predictor was made with"):
        predictor.prepare()


def test_a_file_that_only_the_nodes_have_is_read_there(tmp_path: Path) -> None:
    predictor = Predictor(tmp_path / "model.tflite")
    write_row_model(tmp_path / "model.tflite", 1)
    np.testing.assert_array_equal(predictor({"x": rows(3)})["scores"], scores(rows(3)))


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_bytes_are_written_once_and_readable_by_the_owner_only(tmp_path: Path) -> None:
    file = write_row_model(tmp_path / "model.tflite", 1)
    predictor = Predictor(file.read_bytes())
    np.testing.assert_array_equal(predictor({"x": rows(3)})["scores"], scores(rows(3)))
    folder = node_folder()
    assert folder is not None
    assert folder.stat().st_mode & 0o077 == 0
    (written,) = folder.glob("*.model")
    assert written.read_bytes() == file.read_bytes()
    assert written.stat().st_mode & 0o077 == 0
    assert not [*folder.glob("*.tmp")]


def test_code_in_bytes_is_trusted_no_more_than_by_load(tmp_path: Path) -> None:
    armpy.load(write_row_model(tmp_path / "model.tflite", 1)).save(tmp_path / "model.armpy")
    contents = (tmp_path / "model.armpy").read_bytes()
    with pytest.raises(ParserError) as of_load:
        armpy.load(contents)
    with pytest.raises(ParserError, match="sign") as of_predictor:
        Predictor(contents).prepare()
    assert "sign" in str(of_load.value)
    assert "sign" in str(of_predictor.value)


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("kind", ["code", "constants"])
def test_a_compiled_file_with_a_damaged_section_is_made_anew_once(
    tmp_path: Path,
    kind: str,
    caplog: pytest.LogCaptureFixture,
    prepared_anew: Callable[[Predictor], RowModel],
) -> None:
    file = write_row_model(tmp_path / "model.tflite", 1)
    Predictor(file).prepare()
    folder = node_folder()
    assert folder is not None
    (compiled,) = folder.glob("*.armpy")
    sections = open_container(compiled).sections
    place = next(section.offset for name, section in sections.items() if name.endswith(kind))
    damaged = bytearray(compiled.read_bytes())
    damaged[place] ^= 1
    compiled.write_bytes(damaged)
    for num_warnings in (1, 0):
        caplog.clear()
        again = prepared_anew(Predictor(file))
        assert again.model.is_light
        assert caplog.text.count("is made again") == num_warnings
        np.testing.assert_array_equal(again.run({"x": rows(5)}, {}, 5)["scores"], scores(rows(5)))
    open_container(compiled).check()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The result of loads from now on; an error rather than a model without end."""
    loaded: list[Any] = []

    def load(*given: Any, **options: Any) -> armpy.Model:
        loaded.append((*given, options))
        assert len(loaded) < 8
        return armpy.load(*given, **options)

    monkeypatch.setattr("armpy_serving.prediction.model_source.load", load)
    return loaded


needs_owners = pytest.mark.skipif(not HAS_OWNERS, reason="needs files with owners")


@pytest.mark.slow
@needs_owners
@pytest.mark.usefixtures("own_cache")
def test_a_cache_that_others_can_write_to_costs_one_compilation_a_process(
    tmp_path: Path,
    loads: list[Any],
    caplog: pytest.LogCaptureFixture,
    prepared_anew: Callable[[Predictor], RowModel],
) -> None:
    file = write_row_model(tmp_path / "model.tflite", 1)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)  # as an emptyDir of Kubernetes
    for _ in range(2):
        loads.clear()
        answers = prepared_anew(Predictor(file)).run({"x": rows(5)}, {}, 5)
        np.testing.assert_array_equal(answers["scores"], scores(rows(5)))
        assert len(loads) == 2  # of the file, and of its compiled form, which is refused
    assert f"the folder {node_folder()} cannot be used" in caplog.text
    assert "ARMPY_CACHE_DIR" in caplog.text


@needs_owners
@pytest.mark.usefixtures("own_cache")
def test_a_compiled_file_that_others_can_have_written_is_made_anew() -> None:
    def save(contents: bytes) -> str:
        path = compiled_file("name", lambda place: bool(place.write_bytes(contents)))
        assert path is not None
        return path

    assert save(b"first") == save(b"not needed")
    compiled = Path(save(b"not needed"))
    assert compiled.read_bytes() == b"first"
    compiled.chmod(0o666)
    assert save(b"second") == str(compiled)
    assert compiled.read_bytes() == b"second"
    assert compiled.stat().st_mode & 0o077 == 0


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_whose_code_may_run_holds_for_compiled_files_as_well(
    tmp_path: Path, loads: list[Any]
) -> None:
    file = write_row_model(tmp_path / "model.tflite", 1)
    chosen: dict[str, Any] = {"code": "never", "trusted_keys": [b"\1" * 32]}
    Predictor(file, **chosen).prepare()
    path, options = loads[-1]
    assert path.endswith(".armpy")
    assert {name: options[name] for name in chosen} == chosen


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_threads_make_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_row_model(tmp_path / "model.tflite", 1)
    loads, together = [], threading.Barrier(4)

    def load(*given: Any, **options: Any) -> armpy.Model:
        loads.append(given)
        return armpy.load(*given, **options)

    monkeypatch.setattr("armpy_serving.prediction.model_source.load", load)

    def predict(first: int) -> Array:
        together.wait()
        answers: Array = Predictor(file)({"x": rows(50, first)})["scores"]
        return answers

    with ThreadPoolExecutor(4) as threads:
        for first, answers in enumerate(threads.map(predict, range(4))):
            np.testing.assert_array_equal(answers, scores(rows(50, first)))
    assert len(loads) == 2  # of the file, and of its compiled form


def test_a_process_that_was_forked_makes_a_model_of_its_own(
    tmp_path: Path, own_models: ProcessModels
) -> None:
    predictor = Predictor(write_row_model(tmp_path / "model.tflite", 1))
    first = predictor.prepare()
    assert predictor.prepare() is first
    own_models.reset()  # as the child does
    assert predictor.prepare() is not first


@pytest.mark.parametrize(("said", "threads"), [("1", 1), ("1,4", 1), ("", None), ("many", None)])
def test_threads_are_those_that_the_engine_says(
    monkeypatch: pytest.MonkeyPatch, said: str, threads: int | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert assigned_threads() == threads
