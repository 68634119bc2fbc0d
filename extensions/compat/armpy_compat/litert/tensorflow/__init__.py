"""TensorFlow's name for programs that use it for `tf.lite.Interpreter` alone."""

from armpy_compat.litert.tensorflow import lite

__all__ = ["__version__", "lite"]

__version__ = "2.19.0"
"""Version of TensorFlow whose `tf.lite.Interpreter` this follows, which programs compare."""


def __getattr__(name: str) -> object:
    raise AttributeError(
        f"tensorflow.{name} is not there: armpy_compat has put armpy in its place, for"
        " tf.lite.Interpreter alone. Run the program without it to use TensorFlow itself"
    )
