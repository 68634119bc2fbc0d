"""Files of Arm NN's own format, .armnn, read into networks.

`armpy.load` reads them when armpy-compat is installed. The choice of a front-end imports this
package for files of any format, so that its modules are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armpy_compat.armnn_format.bindings import ArmnnBinding, ArmnnBindings, read_bindings

__all__ = ["ArmnnBinding", "ArmnnBindings", "read_bindings"]


def __getattr__(name: str) -> object:
    """Import what the package exports."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.bindings")
    part: object = getattr(module, name)
    return part
