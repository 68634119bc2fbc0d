"""Ray Data: each row has its answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armpy
import armpy_serving.ray
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.models.row_models import WIDTH, weights, write_row_model

from .ray_node import expected, pixels, ray_node

ray = pytest.importorskip("ray", reason="Ray is an engine of its own: the extra 'ray' has it")

pytestmark = [
    # Ray leaves sockets and files to the end of its processes.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # Reading takes one, what leaves out rows by their checkpoint another one for the whole job.
    with ray_node(ray, num_cpus=3):
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield


def with_pixels(batch: dict[str, Any]) -> dict[str, Any]:
    """A batch of numbers with their pictures."""
    return {"id": batch["id"], "image": pixels(batch["id"])}


def pictures(count: int, blocks: int) -> Any:
    """A data set of pictures with their numbers."""
    numbers = ray.data.range(count, override_num_blocks=blocks)
    return numbers.map_batches(with_pixels, batch_format="numpy")


def in_order(parts: list[dict[str, Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Numbers and answers of all rows, by their numbers."""
    ids = np.concatenate([part["id"] for part in parts])
    answers = np.concatenate([part["output_0"] for part in parts])
    order = np.argsort(ids, kind="stable")
    return ids[order], answers[order]


def of_digits(**arguments: Any) -> dict[str, Any]:
    """Arguments of `map_batches`: half a processor each, as reading takes one as well."""
    options = {"num_cpus": 0.5, "signature": "serving_default", **arguments}
    return armpy_serving.ray.predictor(DIGITS, **options)


def test_a_table_is_answered_row_by_row() -> None:
    data = pictures(500, 4).map_batches(**of_digits(num_actors=2, batch_size=64))
    ids, answers = in_order([*data.iter_batches(batch_format="numpy")])
    np.testing.assert_array_equal(ids, np.arange(500))
    np.testing.assert_array_equal(answers, expected(500))


def test_a_devices_unit_is_taken_and_its_lack_ends_the_job() -> None:
    arguments = of_digits(device="NumbaAcc")
    assert arguments["resources"] == {"armpy_NumbaAcc": 1}
    assert len(pictures(50, 1).map_batches(**arguments).take_all()) == 50
    with pytest.raises(Exception, match="NoSuch"):
        pictures(50, 1).map_batches(**of_digits(device="NoSuch")).take_all()


@pytest.mark.parametrize(("num_cpus", "threads"), [(1, 1), (2, 2), (0.5, 1)])
def test_threads_are_the_processors_of_a_task(num_cpus: float, threads: int) -> None:
    def assigned() -> int | None:
        from armpy_serving.prediction.thread_budget import assigned_threads

        return assigned_threads()

    num_threads = ray.get(ray.remote(num_cpus=num_cpus)(assigned).remote())
    assert num_threads == min(threads, os.cpu_count() or 1)
    assert assigned() is None  # this process is none of Ray's


def test_a_node_without_the_file_gets_it_once(tmp_path: Path) -> None:
    file = write_row_model(tmp_path / "model.tflite", 1)
    arguments = armpy_serving.ray.predictor(file, num_actors=2, num_cpus=0.5, batch_size=10)
    file.unlink()  # as on a node of other disks
    x = (np.arange(100 * WIDTH) % 7).reshape(100, WIDTH).astype(np.float32)
    data = ray.data.from_numpy(x).rename_columns({"data": "x"}).map_batches(**arguments)
    answers = np.concatenate([part["scores"] for part in data.iter_batches()])
    np.testing.assert_array_equal(answers, x @ weights().T)


def test_code_of_a_sent_model_is_judged_where_it_is_sent_from(tmp_path: Path) -> None:
    file, place = write_row_model(tmp_path / "model.tflite", 1), tmp_path / "model.armpy"
    armpy.load(file).save(place)

    def code(model: object, **arguments: Any) -> object:
        stage = armpy_serving.ray.predictor(model, **arguments)
        return stage["fn_constructor_args"][1].get("code")

    assert (code(place), code(file), code(file.read_bytes())) == (None, None, None)
    assert code(place.read_bytes()) == "signed"
    assert code(place.read_bytes(), code="never") == "never"
    place.chmod(0o666)
    assert code(place) == "signed"
