# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's name for programs that use it for `tf.lite.Interpreter` alone."""

from armpy_compat.litert.tensorflow import lite

__all__ = ["__version__", "lite"]

__version__ = "2.19.0"
"""Version of TensorFlow whose `tf.lite.Interpreter` this follows, which programs compare."""


def __getattr__(name: str) -> object:
    raise AttributeError(
        f"tensorflow.{name} is not there: armpy_compat.install_as_tensorflow() has put armpy in its"
        " place, for tf.lite.Interpreter. Leave that call out to use TensorFlow itself"
    )
