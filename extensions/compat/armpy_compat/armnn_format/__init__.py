"""Files of Arm NN's own format, .armnn: read into networks, and written from them.

`armpy.load` reads them when armpy-compat is installed.
"""

from importlib import import_module

_MODULES = {
    "ArmnnBinding": "bindings",
    "ArmnnBindings": "bindings",
    "read_bindings": "bindings",
    "write": "writer",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
