"""Pictures that their numbers decide, and a node of Ray's for tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

import armpy
from armpy_testing.digits import MODEL as DIGITS


@contextmanager
def ray_node(ray: Any, num_cpus: int = 2) -> Iterator[None]:
    """A node that counts so many processors, on the loopback alone."""
    # Ray Serve ends a proxy that is not ready after this time, 5 s by default, and starts another
    # one; on a busy machine the imports alone take longer.
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
    # Workers have the checkout on their path, whose own folder of tests has this package's name.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__package__])
    ray.init(
        num_cpus=num_cpus,
        _node_ip_address="127.0.0.1",
        include_dashboard=False,
        object_store_memory=200 << 20,
        log_to_driver=False,
        resources={"armpy_NumbaAcc": 2, "armpy_NoSuch": 1},
    )
    try:
        yield
    finally:
        ray.shutdown()


def pixels(ids: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """Pictures that their numbers decide."""
    places = np.arange(256, dtype=np.int64)
    numbers = (
        ids[:, np.newaxis] * 7919 + places * 104729 + ids[:, np.newaxis] * places
    ) % 256 - 128
    return numbers.astype(np.int8).reshape(-1, 16, 16, 1)


def expected(count: int) -> npt.NDArray[np.int8]:
    """Answers of single calls, without Ray and without `Predictor`."""
    model = armpy.load(DIGITS)
    images = pixels(np.arange(count))
    answers: npt.NDArray[np.int8] = np.concatenate([model(images[n : n + 1]) for n in range(count)])
    return answers
