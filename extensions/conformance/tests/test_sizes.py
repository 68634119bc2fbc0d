"""Applications get their answers from backends whose programs cannot be made for other sizes."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pytest

from armpy.core.symbolic import Number
from armpy.graph.network import Network
from armpy.model import Model
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.networks import RELU, f32
from armpy_testing.preparations import ORDINARY_PROGRAMS

from .planted.sizes import Answer, Resizable, Resizing, raises


def gives_nothing(program: Resizable, numbers: Sequence[Number]) -> None:
    return None


def needs_less_than_nothing(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    return numbers[program.count.number], -1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (raises, "for_sizes: the backend raised RuntimeError"),
        (gives_nothing, "for_sizes: the answer has the wrong type"),
        (needs_less_than_nothing, "for_sizes: the answer is not a program with the bytes"),
    ],
)
def test_applications_get_their_answers_all_the_same(
    answer: Answer, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    net = Network()
    net.output("y", net.add(RELU, net.input("x", f32(None))))
    model = Model(net, runtime_of(Resizing(answer)))
    with caplog.at_level(logging.WARNING, "armpy.execution"):
        for size in range(1, ORDINARY_PROGRAMS + 4):
            feeds = {"x": np.arange(size, dtype=np.float32)}
            assert model.run(feeds)["y"].tolist() == list(range(size))
    (warning,) = caplog.messages
    assert said in warning
    assert warning.startswith("sizes are no longer traced")
