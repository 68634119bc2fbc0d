"""`tf.lite`: the interpreter, and what belongs to it."""

from armpy_compat.litert import interpreter
from armpy_compat.litert.interpreter import Interpreter, OpResolverType, load_delegate

__all__ = ["Interpreter", "OpResolverType", "experimental", "interpreter", "load_delegate"]


class experimental:  # noqa: N801 - TensorFlow's name
    """`tf.lite.experimental`."""

    OpResolverType = OpResolverType
    load_delegate = staticmethod(load_delegate)
