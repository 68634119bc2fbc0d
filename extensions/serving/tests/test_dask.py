"""Dask: `Predictor` as a function of batches and of blocks, beside workers that are killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy_serving import Predictor
from armpy_testing.effort import effort
from armpy_testing.models.row_models import CLASSES, WIDTH, scores, write_row_model

pytest.importorskip("dask", reason="Dask is an engine of its own: the extra 'dask' has it")
pytest.importorskip("distributed", reason="the extra 'dask' has its workers as well")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers on the loopback."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=None,
        ) as cluster,
        Client(cluster) as dask_client,
    ):
        yield dask_client


def rows(count: int, first: int = 0) -> Any:
    """Rows of small whole numbers."""
    return ((np.arange(count * WIDTH) + first) % 11 - 5).reshape(count, WIDTH).astype(np.float32)


def test_batches_are_answered_with_the_threads_that_dask_says(client: Any, tmp_path: Path) -> None:
    predictor = Predictor(write_row_model(tmp_path / "model.tflite", 1))
    batches = [{"x": rows(30, n)} for n in range(6)]
    for batch, answer in zip(batches, client.gather(client.map(predictor, batches)), strict=True):
        np.testing.assert_array_equal(answer["scores"], scores(batch["x"]))
    asked = client.submit(lambda: predictor._source._options().num_threads)
    assert asked.result() == 1


def test_a_process_loads_one_model_for_all_its_tasks(client: Any, tmp_path: Path) -> None:
    predictor = Predictor(write_row_model(tmp_path / "model.tflite", 4))

    def seen(batch: Any) -> tuple[int, int]:
        return os.getpid(), id(predictor.prepare().model)

    pids = client.gather(client.map(seen, range(20), pure=False))
    assert len({*pids}) == len({pid for pid, _ in pids})


def test_blocks_of_an_array_are_answered(client: Any, tmp_path: Path) -> None:
    import dask.array

    predictor = Predictor(write_row_model(tmp_path / "model.tflite", None))
    blocks = dask.array.from_array(rows(100), chunks=(30, WIDTH))
    answered = blocks.map_blocks(
        lambda block: predictor({"x": block})["scores"], dtype=np.float32, chunks=(30, CLASSES)
    )
    np.testing.assert_array_equal(answered.compute(), scores(rows(100)))


@pytest.mark.slow
def test_each_batch_is_answered_where_workers_are_killed(client: Any, tmp_path: Path) -> None:
    predictor = Predictor(write_row_model(tmp_path / "model.tflite", 1))

    def slowly(batch: Any) -> dict[str, Any]:
        time.sleep(0.1)
        return predictor(batch)

    batches = [{"x": rows(30, n)} for n in range(effort(40, 200))]
    futures = client.map(slowly, batches)
    for _ in range(effort(1, 3)):
        time.sleep(effort(1.0, 3.0))
        (victim, *_) = client.run(os.getpid).values()
        os.kill(victim, signal.SIGKILL)
    for batch, answer in zip(batches, client.gather(futures), strict=True):
        np.testing.assert_array_equal(answer["scores"], scores(batch["x"]))
