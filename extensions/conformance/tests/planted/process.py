"""Backends in modules of their own that do something to their process, each in one way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from armpy.execution import RuntimeOptions
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_testing.backends.dynamic_modules import module_source, write_module

ID = "PlantedModule"

_SOURCE = """
import atexit, builtins, codecs, ctypes, decimal, faulthandler, gc, json, locale, logging
import multiprocessing, os, random, resource, signal, socket, ssl, subprocess, sys, tempfile
import threading, time, tracemalloc, warnings

import numpy as np

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
    """A backend in a module with a fault, and the cases among which one has to find it."""

    place: str  # ``import``, ``question``, ``load``, ``preparation`` or ``execution``
    act: str  # statements
    area: str = "contract/process/"
    said: str = ""  # a pattern in the failure's text
    always: bool = False  # whether it does so every time

    def subject(self, folder: Path) -> BackendUnderTest:
        """The backend, in a module that is written to a folder."""
        act = indent(self.act.strip(), "    ")
        extra = _SOURCE.format(act=act, place=self.place, always=self.always)
        write_module(folder, "test_planted_backend", module_source(ID, extra=extra))
        return BackendUnderTest(ID, RuntimeOptions(dynamic_backends_path=folder))


def _at_import(act: str, said: str = "") -> PlantedModule:
    return PlantedModule("import", act, said=said)


def _at_load(act: str, said: str = "") -> PlantedModule:
    return PlantedModule("load", act, said=said)


def _at_execution(act: str, said: str = "", *, always: bool = False) -> PlantedModule:
    return PlantedModule("execution", act, said=said, always=always)


_NO_SUBNORMALS = """
libm = ctypes.CDLL("libm.so.6")
environment = (ctypes.c_uint32 * 8)()
libm.fegetenv(environment)
environment[7] |= 0x8040
libm.fesetenv(environment)
"""
"""Of x86-64, whose control register is the last word."""

PROCESS_FAULTS: dict[str, PlantedModule] = {
    "process/limits-threads-for-all": _at_import("os.environ['OMP_NUM_THREADS'] = '1'", "OMP_NUM"),
    "process/puts-its-tools-first": _at_import(
        "os.environ['PATH'] = '/opt/vendor/bin:' + os.environ['PATH']", "PATH"
    ),
    "process/drops-a-variable": _at_import("os.environ.pop('TMPDIR', None)", "TMPDIR"),
    "process/variable-at-load": _at_load("os.environ['VENDOR_HOME'] = '/opt/vendor'", "VENDOR"),
    "process/module-path-at-first-question": PlantedModule(
        "question", "sys.path.insert(0, '/opt/vendor/python')", said="sys.path"
    ),
    "process/module-path-at-load": _at_load("sys.path.append('/opt/vendor/python')", "sys.path"),
    "process/time-limit-of-sockets": _at_import("socket.setdefaulttimeout(30)", "sockets"),
    "process/start-method": _at_import(
        "multiprocessing.set_start_method('spawn', force=True)", "start method"
    ),
    "process/decimal-precision": _at_import("decimal.getcontext().prec = 50", "decimal"),
    "process/decimal-default": _at_import("decimal.DefaultContext.prec = 9", "decimal"),
    "process/no-warnings": _at_import("warnings.simplefilter('default')", "filters"),
    "process/no-deprecations": _at_import(
        "warnings.filterwarnings('ignore', category=DeprecationWarning)", "filters"
    ),
    "process/resets-filters": _at_load("warnings.resetwarnings()", "filters"),
    "process/shows-warnings-itself": _at_import(
        "warnings.showwarning = lambda *arguments: None", "showwarning"
    ),
    "process/errors-of-numbers": _at_import("np.seterr(all='ignore')", "np.geterr"),
    "process/prints-numbers-short": _at_import(
        "np.set_printoptions(suppress=True)", "printoptions"
    ),
    "process/buffer-of-numpy": _at_import("np.setbufsize(16384)", "getbufsize"),
    "process/seed": _at_import("random.seed(0)", "random"),
    "process/seed-of-numpy": _at_import("np.random.seed(0)", "numpy.random"),
    "process/seed-of-numpy-at-load": _at_load("np.random.seed(1234)", "numpy.random"),
    "process/locale": _at_import("locale.setlocale(locale.LC_ALL, 'C.UTF-8')", "locale"),
    "process/configures-logging": _at_import("logging.basicConfig(level=logging.DEBUG)", "logger"),
    "process/disables-logging": _at_import("logging.disable(logging.INFO)", "logging.disable"),
    "process/class-of-loggers": _at_import(
        "logging.setLoggerClass(type('VendorLogger', (logging.Logger,), {}))", "LoggerClass"
    ),
    "process/level-of-armpy": _at_import(
        "logging.getLogger('armpy').setLevel(logging.ERROR)", "'armpy'"
    ),
    "process/own-json": _at_import(
        "dumps = json.dumps\njson.dumps = lambda *a, **k: dumps(*a, **k)", "json.dumps"
    ),
    "process/unverified-connections": _at_import(
        "ssl._create_default_https_context = ssl._create_unverified_context", "ssl"
    ),
    "process/own-products": _at_import("np.dot = np.matmul", "numpy.dot"),
    "process/own-sleep": _at_load(
        "sleep = time.sleep\ntime.sleep = lambda s: sleep(s)", "time.sleep"
    ),
    "process/own-open": _at_import(
        "right = builtins.open\nbuiltins.open = lambda *a, **k: right(*a, **k)", "open"
    ),
    "process/own-processes": _at_import(
        "subprocess.Popen = type('Popen', (subprocess.Popen,), {})", "subprocess.Popen"
    ),
    "process/own-thread-start": _at_load(
        "start = threading.Thread.start\nthreading.Thread.start = lambda self: start(self)",
        "threading.Thread.start",
    ),
    "process/interrupt": _at_import(
        "signal.signal(signal.SIGINT, lambda *_: os._exit(1))", "SIGINT"
    ),
    "process/children-are-reaped": _at_import(
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "SIGCHLD"
    ),
    "process/native-abort-handler": _at_load(
        "ctypes.CDLL(None).signal(int(signal.SIGTERM), ctypes.c_void_p(1))", "SIGTERM"
    ),
    "process/fault-handler": _at_import("faulthandler.enable()", "handler of SIGSEGV"),
    "process/recursion-limit": _at_import("sys.setrecursionlimit(100_000)", "recursion"),
    "process/hook-of-exceptions": _at_import("sys.excepthook = lambda *_: None", "excepthook"),
    "process/hook-of-threads": _at_import("threading.excepthook = lambda _: None", "excepthook"),
    "process/no-garbage-collection": _at_import("gc.disable()", "garbage"),
    "process/freezes-objects": _at_load("gc.freeze()", "frozen"),
    "process/switch-interval": _at_import("sys.setswitchinterval(0.1)", "switch interval"),
    "process/dlopen-flags": _at_import(
        "sys.setdlopenflags(os.RTLD_GLOBAL | os.RTLD_NOW)", "dlopen"
    ),
    "process/digits": _at_import("sys.set_int_max_str_digits(0)", "digits"),
    "process/thread-stacks": _at_import("threading.stack_size(1 << 26)", "stack size"),
    "process/traces-allocations": _at_import("tracemalloc.start()", "tracemalloc"),
    "process/profiles-calls": _at_execution("sys.setprofile(lambda *_: None)", "profile"),
    "process/umask": _at_import("os.umask(0o000)", "umask"),
    "process/goes-to-its-folder": _at_import("os.chdir('/')", "working directory"),
    "process/temporary-folder": _at_import("tempfile.tempdir = '/var/tmp'", "tempfile"),
    "process/time-zone": _at_load(
        "os.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset()\ndel os.environ['TZ']", "time zone"
    ),
    "process/larger-stacks": _at_load(
        "most = resource.getrlimit(resource.RLIMIT_STACK)[1]\n"
        "resource.setrlimit(resource.RLIMIT_STACK, (1 << 22, most))",
        "limits",
    ),
    "process/less-priority": _at_load("os.nice(1)", "priority"),
    "process/timer": _at_load("signal.setitimer(signal.ITIMER_VIRTUAL, 1000, 1000)", "timers"),
    "process/silences-errors": _at_import(
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 2)", "standard error"
    ),
    "process/no-input": _at_load("os.close(0)", "standard input"),
    "process/renames-the-process": _at_import(
        "ctypes.CDLL(None).prctl(15, b'vendor-npu', 0, 0, 0)", "comm"
    ),
    "process/flushes-subnormals": _at_load(_NO_SUBNORMALS, "subnormal"),
    "process/traps-divisions": _at_load("ctypes.CDLL('libm.so.6').feenableexcept(16)"),
    "process/import-hook": _at_import(
        "sys.meta_path.insert(0, type('Finder', (), {'find_spec': staticmethod(lambda *_: None)}))",
        "meta_path",
    ),
    "process/wraps-the-output": _at_execution(
        "import io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, line_buffering=True)", "stdout"
    ),
    "process/error-handler-of-codecs": _at_import(
        "codecs.register_error('strict', codecs.replace_errors)", "strict"
    ),
    "process/greets": _at_import("print('Vendor NPU driver 3.1')", "Vendor NPU"),
    "process/driver-greets": _at_import(
        "ctypes.CDLL(None).puts(b'Vendor NPU driver 3.1')", "Vendor NPU"
    ),
    "process/says-good-bye": _at_import(
        "atexit.register(lambda: print('driver closed'))", "driver closed"
    ),
    "process/raises-at-exit": _at_load("atexit.register(lambda: 1 / 0)", "Exception ignored"),
    "process/log-in-the-working-directory": _at_load(
        "open('vendor_npu.log', 'a').close()", "working directory: vendor_npu.log"
    ),
    "process/profile-at-exit": _at_load(
        "atexit.register(lambda: open('profile.json', 'w').close())", "profile.json"
    ),
    "process/history-in-the-home": _at_import(
        "open(os.path.expanduser('~/.vendor_npu'), 'w').close()", ".vendor_npu"
    ),
    "process/settings-in-the-home": _at_execution(
        "os.makedirs(os.path.expanduser('~/.vendor'))\n"
        "open(os.path.expanduser('~/.vendor/npu.ini'), 'w').close()",
        ".vendor/npu.ini",
    ),
    "process/temporary-file": PlantedModule(
        "preparation", "os.close(tempfile.mkstemp()[0])", said="temporary", always=True
    ),
    "process/lock-file": _at_load(
        "open(os.path.join(tempfile.gettempdir(), 'npu.lock'), 'w').close()", "npu.lock"
    ),
    "process/waits-at-exit": _at_import("atexit.register(time.sleep, 60)", "does not end"),
    "process/slow-exit": _at_load("atexit.register(time.sleep, 7)", "s to end"),
    "process/thread-without-end": _at_load(
        "threading.Thread(target=threading.Event().wait).start()", "does not end"
    ),
    "process/exit-code": _at_load("atexit.register(os._exit, 3)", "with code 3"),
    "process/crash-at-exit": _at_load(
        "atexit.register(os.kill, os.getpid(), signal.SIGSEGV)", "by signal 11"
    ),
    "process/daemon-is-left": _at_load(
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])", "are left"
    ),
    "process/spins": _at_load(
        "def spin():\n    while True:\n        pass\n"
        "threading.Thread(target=spin, daemon=True).start()",
        "of a processor",
    ),
    "process/polls": _at_execution(
        "def poll():\n    while True:\n        time.sleep(1e-5)\n"
        "threading.Thread(target=poll, daemon=True).start()",
        "of a processor",
    ),
    "process/event-loops": _at_load(
        "import asyncio\n"
        "asyncio.set_event_loop_policy(type('Policy', (asyncio.DefaultEventLoopPolicy,), {})())",
        "event loop",
    ),
    "process/version-of-the-process": _at_import(
        "Backend.version = f'1.{os.getpid()}'", "in another process version is"
    ),
    "process/address-in-a-device": _at_import(
        "Backend.get_devices = lambda self: (DeviceInfo(f'npu {act!r}'),)", "object's address"
    ),
}
"""By name: each in one process."""
