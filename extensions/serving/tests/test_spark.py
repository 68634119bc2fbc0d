"""Spark: each row once and each answer right, whatever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.effort import effort
from armpy_testing.models.row_models import CLASSES, WIDTH, weights, write_row_model

pytest.importorskip("pyspark", reason="Spark is an engine of its own: the extra 'spark' has it")
pytest.importorskip("pandas", reason="Spark's functions of arrays need it: the extra 'spark'")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """Two workers on the loopback, whose tasks are tried four times."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # it takes python3 of the path else
    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


def rows(count: int) -> Any:
    """Rows of small whole numbers."""
    return ((np.arange(count * WIDTH) % 11) - 5).reshape(count, WIDTH).astype(np.float64)


def table(session: Any, count: int, partitions: int) -> Any:
    """The same as a table with their numbers, as Spark has numbers: of 64 bits."""
    numbered = [(number, row) for number, row in enumerate(rows(count).tolist())]
    return session.createDataFrame(numbered, "id long, x array<double>").repartition(partitions)


def test_a_table_is_answered_row_by_row(session: Any, tmp_path: Path) -> None:
    from armpy_serving.spark import predict_udf

    scores = predict_udf(write_row_model(tmp_path / "model.tflite", 1), batch_size=16)
    answered = table(session, 100, 4).withColumn("scores", scores("x")).sort("id").collect()
    assert [row.id for row in answered] == [*range(100)]
    answers = np.array([row.scores for row in answered])
    np.testing.assert_array_equal(answers, rows(100) @ weights().T)


def test_types_follow_from_the_model(tmp_path: Path) -> None:
    from pyspark.sql import types

    from armpy_serving.spark import _return_type, predict_udf

    udf_made = predict_udf(write_row_model(tmp_path / "one.tflite", None, classes=1))
    assert udf_made.returnType == types.FloatType()
    several = predict_udf(write_row_model(tmp_path / "several.tflite", None, classes=CLASSES))
    assert several.returnType == types.ArrayType(types.FloatType())
    assert predict_udf(DIGITS).returnType == types.ArrayType(types.ByteType())
    assert predict_udf(DIGITS, dequantize_outputs=True).returnType == types.ArrayType(
        types.FloatType()
    )
    from armpy_serving import Predictor

    (spec,) = Predictor(DIGITS).outputs
    struct = _return_type({"a": spec, "b": spec}, real=False)
    assert struct.names == ["a", "b"]


def test_rows_of_no_fixed_shape_are_refused(tmp_path: Path) -> None:
    from armpy import Network
    from armpy.frontends.tflite_writer.tflite import write_tflite
    from armpy_serving.spark import predict_udf
    from armpy_testing.models.networks import RELU, f32

    net = Network()
    value = net.input("x", f32(None, None), default_shape=(1, 4))
    net.output("y", net.add(RELU, value))
    write_tflite(net.build(), tmp_path / "open.tflite")
    with pytest.raises(InvalidArgumentError, match="no fixed shape"):
        predict_udf(tmp_path / "open.tflite")


def workers() -> list[int]:
    """Python workers of this process's Spark."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = path.read_text().rpartition(")")[2]
            names[int(path.parent.name)] = (path.parent / "cmdline").read_text()
            parents[int(path.parent.name)] = int(rest.split()[1])
        except OSError:
            continue

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    daemons = [pid for pid, name in names.items() if "pyspark.daemon" in name and is_ours(pid)]
    # The first one forks the others, and does no work.
    return [pid for pid in daemons if parents[pid] in daemons]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs the processes' parents")
def test_each_row_comes_once_where_workers_are_killed(session: Any, tmp_path: Path) -> None:
    from armpy_serving.spark import predict_udf

    count, kills = effort(2_000), effort(1)
    udf = predict_udf(write_row_model(tmp_path / "model.tflite", 1), batch_size=50)
    data = table(session, count, 8).withColumn("scores", udf("x"))
    data.limit(1).collect()  # the workers are there, with the model
    killed: list[int] = []

    def kill() -> None:
        while len(killed) < kills:
            time.sleep(effort(0.1))
            for pid in workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    begin_s = time.perf_counter()
    answered = data.sort("id").collect()
    took_s = time.perf_counter() - begin_s
    thread.join()
    print(f"{count} rows in {took_s:.1f} s, {len(killed)} workers killed")
    assert [row.id for row in answered] == [*range(count)]
    answers = np.array([row.scores for row in answered])
    np.testing.assert_array_equal(answers, rows(count) @ weights().T)
