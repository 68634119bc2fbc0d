"""Backends in modules of their own that do something to their process, each in one way."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from armpy.execution import RuntimeOptions
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_testing.backends.dynamic_modules import module_source, write_module

ID = "PlantedModule"

_SOURCE = """
import atexit, ctypes, json, os, signal, subprocess, sys, tempfile, threading, time

from armpy.backend import IWorkload, IWorkloadFactory, Support, ReasonCode
from armpy.ops import Activation, ElementwiseBinary, Softmax

OPERATIONS = (Activation, ElementwiseBinary, Softmax)


def act():
{act}


class Workload(IWorkload):
    def __init__(self, right):
        self._right = right

    def execute(self, inputs, outputs):
        at("execution")
        self._right.execute(inputs, outputs)


class Factory(IWorkloadFactory):
    def __init__(self, right):
        self._right = right

    def create_workload(self, operation, info):
        at("preparation")
        return Workload(self._right.create_workload(operation, info))


class Layers:
    def __init__(self, right):
        self._right = right

    def is_layer_supported(self, operation, inputs, outputs):
        at("question")
        if isinstance(operation, OPERATIONS):
            return self._right.is_layer_supported(operation, inputs, outputs)
        return Support.no(ReasonCode.OPERATION, f"{{operation.name}} is not supported")

    def are_layers_supported(self, layers):
        return [self.is_layer_supported(x.operation, x.input_infos, x.output_infos) for x in layers]

    def is_layer_supported_in(self, layer, graph):
        return Support.yes()


class PlantedBackend(Backend):
    def get_layer_support(self, request):
        from armpy.backend import ILayerSupport
        kind = type("Layers", (Layers, ILayerSupport), {{}})
        return kind(super().get_layer_support(request))

    def create_workload_factory(self, network):
        at("load")
        return Factory(super().create_workload_factory(network))


has_acted = []


def at(place):
    if place == {place!r} and (not has_acted or {always}):
        has_acted.append(True)
        act()


at("import")


def backend_factory():
    return PlantedBackend()
"""


@dataclass(frozen=True)
class PlantedModule:
    """A backend in a module with a fault, and the rule that has to find it."""

    area: str  # a rule of the contract
    place: str  # ``import``, ``question``, ``load``, ``preparation`` or ``execution``
    act: str  # statements
    said: str = ""  # a pattern in the failure's text
    always: bool = False  # whether it does so every time

    def subject(self, folder: Path) -> BackendUnderTest:
        """The backend, in a module that is written to a folder."""
        act = indent(self.act.strip(), "    ")
        extra = _SOURCE.format(act=act, place=self.place, always=self.always)
        write_module(folder, "test_planted_backend", module_source(ID, extra=extra))
        return BackendUnderTest(ID, RuntimeOptions(dynamic_backends_path=folder))


_NO_SUBNORMALS = """
libm = ctypes.CDLL("libm.so.6")
environment = (ctypes.c_uint32 * 8)()
libm.fegetenv(environment)
environment[7] |= 0x8040
libm.fesetenv(environment)
"""
"""Of x86-64, whose control register is the last word."""

_SPINS = """
def spin():
    while True:
        pass
threading.Thread(target=spin, daemon=True).start()
"""

_OWN_JSON = """
dumps = json.dumps
json.dumps = lambda *a, **k: dumps(*a, **k)
"""

_SETTINGS_FILE = """
os.makedirs(os.path.expanduser("~/.vendor"))
open(os.path.expanduser("~/.vendor/npu.ini"), "w").close()
"""

SHARED_FILE = Path("/dev/shm", f"vendor-{os.getpid()}")
"""A file that a fault leaves, for tests to delete."""

# Made as late as possible, as others that watch the folder take it for their own backend's.
_IN_SHARED_MEMORY = f"atexit.register(open, {str(SHARED_FILE)!r}, 'wb')"

_OWN_PICKLES = """
import copyreg
copyreg.pickle(type(threading.Lock()), lambda lock: (threading.Lock, ()))
"""

_WAKES = """
reading, writing = os.pipe()
os.set_blocking(writing, False)
signal.set_wakeup_fd(writing)
"""

_OTHER_DUMPS = """
with open("/proc/self/coredump_filter", "w") as file:
    file.write("0x7f")
"""

_NO_DUMPS = """
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
"""

PROCESS_FAULTS: dict[str, PlantedModule] = {
    "blind-process/shared-memory": PlantedModule(
        "contract/process/no-files-are-left", "load", _IN_SHARED_MEMORY, "/dev/shm"
    ),
    **{
        f"blind-process/{name}": PlantedModule(
            "contract/process/a-whole-life-changes-nothing", "load", act, said
        )
        for name, act, said in (
            ("pickles", _OWN_PICKLES, "copyreg"),
            ("no-core-dumps", _NO_DUMPS, "core dump"),
            ("wakeup", _WAKES, "wakeup"),
        )
    },
    # Which the observed process has from its parent.
    "process/other-core-dumps": PlantedModule(
        "contract/process/settings-stay", "load", _OTHER_DUMPS, "coredump_filter"
    ),
    "process/limits-threads-for-all": PlantedModule(
        "contract/process/imports-change-nothing",
        "import",
        "os.environ['OMP_NUM_THREADS'] = '1'",
        "OMP_NUM",
    ),
    "process/own-json": PlantedModule(
        "contract/process/imports-change-nothing", "import", _OWN_JSON, "json.dumps"
    ),
    "process/silences-errors": PlantedModule(
        "contract/process/imports-change-nothing",
        "import",
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 2)",
        "standard error",
    ),
    "process/module-path-at-first-question": PlantedModule(
        "contract/process/a-whole-life-changes-nothing",
        "question",
        "sys.path.insert(0, '/opt/vendor/python')",
        "sys.path",
    ),
    "process/flushes-subnormals": PlantedModule(
        "contract/process/a-whole-life-changes-nothing", "load", _NO_SUBNORMALS, "subnormal"
    ),
    "process/log-in-the-working-directory": PlantedModule(
        "contract/process/no-files-are-left",
        "load",
        "open('vendor_npu.log', 'a').close()",
        "working directory: vendor_npu.log",
    ),
    "process/settings-in-the-home": PlantedModule(
        "contract/process/no-files-are-left", "execution", _SETTINGS_FILE, ".vendor/npu.ini"
    ),
    "process/temporary-file": PlantedModule(
        "contract/process/no-files-are-left",
        "preparation",
        "os.close(tempfile.mkstemp()[0])",
        "temporary",
        always=True,
    ),
    "process/driver-greets": PlantedModule(
        "contract/process/nothing-is-printed-at-any-time",
        "import",
        "ctypes.CDLL(None).puts(b'Vendor NPU driver 3.1')",
        "Vendor NPU",
    ),
    "process/says-good-bye": PlantedModule(
        "contract/process/nothing-is-printed-at-any-time",
        "import",
        "atexit.register(lambda: print('driver closed'))",
        "driver closed",
    ),
    "process/spins": PlantedModule(
        "contract/process/idle-backends-use-no-processor", "load", _SPINS, "of a processor"
    ),
    "process/thread-without-end": PlantedModule(
        "contract/process/the-interpreter-ends",
        "load",
        "threading.Thread(target=threading.Event().wait).start()",
        "does not end",
    ),
    "process/crash-at-exit": PlantedModule(
        "contract/process/the-interpreter-ends",
        "load",
        "atexit.register(os.kill, os.getpid(), signal.SIGSEGV)",
        "by signal 11",
    ),
    "process/daemon-is-left": PlantedModule(
        "contract/process/the-interpreter-ends",
        "load",
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])",
        "are left",
    ),
    "process/version-of-the-process": PlantedModule(
        "contract/process/processes-get-the-same-facts",
        "import",
        "Backend.version = f'1.{os.getpid()}'",
        "in another process version is",
    ),
    "process/address-in-a-device": PlantedModule(
        "contract/process/processes-get-the-same-facts",
        "import",
        "Backend.get_devices = lambda self: (DeviceInfo(f'npu {act!r}'),)",
        "object's address",
    ),
}
"""By name: each in one process."""
