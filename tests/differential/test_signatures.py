"""Training and inference by turns, over variables that they share, against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

import armpy
from armpy_testing.litert_oracle import litert_or_skip
from armpy_testing.shared import shared_file


@pytest.mark.slow
def test_training_by_one_signature_is_seen_by_the_other() -> None:
    path = shared_file("models", "operators", "on_device_training.tflite")
    interpreter = litert_or_skip().Interpreter(str(path))
    train, infer = (interpreter.get_signature_runner(name) for name in ("train", "infer"))
    random = np.random.default_rng(0)
    with armpy.load(path) as model:
        ones = {"x": np.ones((1, 4), np.float32)}
        before = model.signature("infer").run(ones)["y"]
        for _ in range(4):
            x = random.normal(size=(8, 4)).astype(np.float32)
            y = np.eye(2, dtype=np.float32)[random.integers(0, 2, 8)]
            loss = model.signature("train").run({"x": x, "y": y})["loss"]
            np.testing.assert_allclose(loss, train(x=x, y=y)["loss"], rtol=1e-5)
            expected = infer(x=x)["y"]
            np.testing.assert_allclose(model.signature("infer")(x), expected, rtol=1e-5)
            np.testing.assert_allclose(model(x), expected, rtol=1e-5)
        after = model.signature("infer").run(ones)["y"]
        assert np.abs(after - before).max() > 0.01
