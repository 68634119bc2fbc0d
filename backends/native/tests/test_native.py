"""Libraries in C: the header, the sample of ``armpy new-backend``, its faults, and its speed."""

from __future__ import annotations

import ctypes
import gc
import re
import shutil
import subprocess
import time
from pathlib import Path
from string import Template

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import Model, Network, Runtime, RuntimeOptions, TensorInfo
from armpy.errors import (
    ArmpyError,
    BackendUnavailableError,
    InvalidArgumentError,
    UnimplementedError,
)
from armpy.graph import Graph, SubgraphView
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    ElementwiseBinary,
    FullyConnected,
)
from armpy.plugins import BackendRegistry, CandidateKind, CandidateStatus
from armpy.types import DataType
from armpy_conformance import run_conformance
from tests.support.effort import IS_FULL

pytest.importorskip("armpy_native")
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler", allow_module_level=True)

from armpy_native import HEADER, backend, library, open_library
from armpy_native.backend import device_of

from armpy_conformance.cli import new_backend

SAMPLE = Path(new_backend.__file__).parent / "templates" / "c" / "library.c.template"
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]


def source(backend_id: str = "AcmeNpu") -> str:
    """The sample's source text."""
    words = {"title": "Acme Npu", "vendor": "Acme", "backend_id": backend_id}
    return Template(SAMPLE.read_text("utf-8")).substitute(words)


def build(folder: Path, text: str, name: str = "libacme.so", *flags: str) -> Path:
    """Compile a library."""
    file = folder / f"{name}.c"
    file.write_text(text, "utf-8")
    path = folder / name
    command = ["cc", "-std=c99", *STRICT, *flags, "-O2", "-shared", "-fPIC"]
    command += [f"-I{HEADER.parent}", "-o", str(path), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sample"), source())


def network(size: int = 8) -> Graph:
    """A fully connected layer with Relu, an addition, and a layer that the sample lacks."""
    net = Network("small")
    x = net.input("x", TensorInfo((2, size), DataType.FLOAT32))
    weights = np.arange(4 * size, dtype=np.float32).reshape(4, size) / 10 - 1
    y = net.add(FullyConnected(), x, net.constant(weights), name="dense")
    y = net.add(Activation(ActivationFunction.RELU), y, name="relu")
    y = net.add(ElementwiseBinary(BinaryOperation.ADD), y, y, name="add")
    net.output("y", net.add(Activation(ActivationFunction.TANH, 1.0, 1.0), y, name="tanh"))
    return net.build()


def runtime_of(path: Path, **options: object) -> Runtime:
    registry = BackendRegistry()
    made = open_library(str(path))
    registry.register("AcmeNpu", made)
    registry.register("CpuRef", ReferenceBackend)
    chosen = RuntimeOptions(backends=["AcmeNpu", "CpuRef"], registry=registry, **options)  # type: ignore[arg-type]  # as given
    return Runtime(chosen)


def expected(x: np.ndarray) -> np.ndarray:
    with Model(network()) as model:
        answer = model(x)
    assert isinstance(answer, np.ndarray)
    return answer


def test_the_header_is_c99_and_cpp17(tmp_path: Path) -> None:
    for compiler, flags, suffix in (("cc", "-std=c99", "c"), ("c++", "-std=c++17", "cpp")):
        file = tmp_path / f"header.{suffix}"
        file.write_text('#include "armpy_backend.h"\n', "utf-8")
        command = [compiler, flags, *STRICT, "-fsyntax-only", f"-I{HEADER.parent}", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ap_header", library.Header),
        ("ap_error", library.Error),
        ("ap_span", library.Span),
        ("ap_tensor", library.Tensor),
        ("ap_host", library.Host),
        ("ap_backend", library.Backend),
    ],
)
def test_structures_are_those_of_the_header(
    tmp_path: Path, name: str, kind: type[ctypes.Structure]
) -> None:
    members = [str(member[0]) for member in kind._fields_]
    prints = "".join(f'printf(" %zu", offsetof({name}, {member}));' for member in members)
    file = tmp_path / "probe.c"
    file.write_text(
        f'#include "armpy_backend.h"\n#include <stdio.h>\n'
        f'int main(void) {{ printf("%zu", sizeof({name})); {prints} return 0; }}\n',
        "utf-8",
    )
    program = tmp_path / "probe"
    subprocess.run(["cc", f"-I{HEADER.parent}", "-o", str(program), str(file)], check=True)
    numbers = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    offsets = [getattr(kind, member).offset for member in members]
    assert [int(number) for number in numbers] == [ctypes.sizeof(kind), *offsets]


def test_the_sample_exports_one_function(sample: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    command = ["nm", "-D", "--defined-only", str(sample)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["armpy_backend_v1"]


def test_layers_run_in_the_library_and_others_elsewhere_with_the_reason(sample: Path) -> None:
    model = Model(network(), runtime_of(sample))
    x = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    np.testing.assert_allclose(model(x), expected(x), rtol=1e-5)
    placement = model.placement
    assert placement is not None
    assert placement.layers_by_backend == {"AcmeNpu": 3, "CpuRef": 1}
    reasons = {(one.layer, one.text) for one in placement.refusals}
    assert ("tanh", "the operator is not Add, Mul, Relu or FullyConnected") in reasons
    np.testing.assert_allclose(model(2 * x), expected(2 * x), rtol=1e-5)


def test_a_bound_execution_reads_and_writes_its_arrays(sample: Path) -> None:
    model = Model(network(), runtime_of(sample))
    x, y = np.zeros((2, 8), np.float32), np.empty((2, 4), np.float32)
    execution = model.bind({"x": x}, {"y": y})
    for number in range(3):
        x[:] = number
        execution()
        np.testing.assert_allclose(y, expected(x), rtol=1e-5)


def test_it_runs_in_a_process_of_its_own(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sample.parent / "plugins"
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(sample, folder / "Acme_Npu_backend.so")
    options = RuntimeOptions(
        backends=["AcmeNpu", "CpuRef"],
        dynamic_backends_path=folder,
        isolation={"AcmeNpu": "process"},
    )
    x = np.ones((2, 8), np.float32)
    with Runtime(options) as runtime:
        model = Model(network(), runtime)
        np.testing.assert_allclose(model(x), expected(x), rtol=1e-5)
        assert "AcmeNpu 3" in str(model.placement)


def test_a_library_in_a_directory_is_found(sample: Path) -> None:
    folder = sample.parent / "found"
    folder.mkdir(mode=0o700)
    shutil.copy(sample, folder / "Acme_Npu_backend.so")
    with Runtime(RuntimeOptions(dynamic_backends_path=folder)) as runtime:
        candidates = [c for c in runtime.registry.candidates if c.kind is CandidateKind.DIRECTORY]
        assert [one.status for one in candidates] == [CandidateStatus.REGISTERED]
        assert "AcmeNpu" in {one.get_id() for one in runtime.registry.available()}


def test_a_relative_path_begins_beside_the_calling_module(sample: Path) -> None:
    module = sample.parent / "acme_npu.py"
    module.write_text(f"from armpy_native import backend\nAcmeNpu = backend({sample.name!r})\n")
    names: dict[str, object] = {"__file__": str(module), "__name__": "acme_npu"}
    exec(compile(module.read_text(), str(module), "exec"), names)
    made = names["AcmeNpu"]
    assert isinstance(made, type)
    assert made().get_id() == "AcmeNpu"


def test_options_reach_the_library_as_json_and_others_are_refused(sample: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"AcmeNpu / options: .*not a JSON object"):
        runtime_of(sample, backend_options={"AcmeNpu": {"options": "[1]"}})
    with runtime_of(sample, backend_options={"AcmeNpu": {"options": '{"clock": "high"}'}}):
        pass


def test_what_is_no_library_of_version_1_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailableError, match=r"cannot be used.*libnothing\.so"):
        backend("libnothing.so")
    empty = build(tmp_path, "int answer(void);\nint answer(void) { return 42; }\n", "libempty.so")
    with pytest.raises(BackendUnavailableError, match="exports armpy_backend_v1"):
        open_library(str(empty))


TABLE_FAULTS = {
    "another major": ("AP_VERSION_MAJOR, AP_VERSION_MINOR", "2, 0", r"version.*1\.x; got 2\.0"),
    "a short table": ("{sizeof(ap_backend), AP", "{96, AP", "struct_size.*at least 104; got 96"),
    **{
        f"no {member}": (f"    {name},\n", "    NULL,\n", f"the function {member}.*got NULL")
        for member, name in {
            "open": "open_device",
            "close": "close_device",
            "supported": "supported",
            "compile": "compile",
            "execute": "execute",
            "release": "release",
        }.items()
    },
    "no version": ('    "0.1.0",\n', "    NULL,\n", "version of the library is wrong.*got NULL"),
    "no vendor": ('    "Acme",\n', "    NULL,\n", "vendor of the library is wrong.*got NULL"),
    "no id": ('    "AcmeNpu",\n', "    NULL,\n", "id of the library is wrong.*got NULL"),
    "an id with a blank": ('    "AcmeNpu",\n', '    "Acme Npu",\n', "letters and digits"),
    "an id that is not UTF-8": ('    "AcmeNpu",\n', '    "\\xff",\n', "id of the library.*UTF-8"),
    "save without load": ("    NULL, /* load */", "    release_nothing,", "save and load"),
    "no table": ("    return &BACKEND;", "    return (void)&BACKEND, NULL;", "table.*got NULL"),
}


@pytest.mark.parametrize("fault", TABLE_FAULTS)
def test_a_wrong_table_is_refused_with_the_member(tmp_path: Path, fault: str) -> None:
    old, new, reason = TABLE_FAULTS[fault]
    text = source()
    assert text.count(old) == 1
    if fault == "save without load":
        text = text.replace(
            "static const ap_backend BACKEND", LOAD_NOTHING + "static const ap_backend BACKEND"
        )
    path = build(tmp_path, text.replace(old, new), "libacme.so", "-w")
    with pytest.raises(BackendUnavailableError, match=reason):
        open_library(str(path))


LOAD_NOTHING = """
static int32_t release_nothing(ap_device *device, ap_span compiled, ap_program **program,
                               ap_error *error)
{
    (void)device, (void)compiled, (void)program;
    return fail(error, AP_INTERNAL, "not implemented");
}

"""


def test_a_later_minor_with_a_longer_table_is_accepted(tmp_path: Path) -> None:
    text = source().replace("AP_VERSION_MAJOR, AP_VERSION_MINOR", "AP_VERSION_MAJOR, 7")
    text = text.replace("{sizeof(ap_backend), AP", "{sizeof(ap_backend) + 64, AP")
    assert open_library(str(build(tmp_path, text)))().get_id() == "AcmeNpu"


FAULTS = {
    "open fails": (
        "    (void)options;\n",
        '    return fail(error, AP_DEVICE_LOST, "no power");\n',
        "AcmeNpu / open: no power",
    ),
    "open gives no device": (
        "    (*device)->host = host;\n",
        "    (*device)->host = host;\n    free(*device);\n    *device = NULL;\n",
        "AcmeNpu / open: returned no device",
    ),
    "an unknown status": (
        "    (void)options;\n",
        '    (void)options;\n    if (host) return fail(error, 77, "odd");\n',
        r"the status 77 is not an ap_status \(odd\)",
    ),
    "text that says to be longer than it may": (
        "    (void)options;\n",
        "    memset(error->text, 'x', sizeof error->text);\n"
        "    error->used = 4000000000u;\n    return AP_INTERNAL;\n",
        "AcmeNpu / open: x{1008}",
    ),
    "a description that is not JSON": ('"{\\"name\\"', '"[\\"name\\"', "description is not JSON"),
    "a type of device that there is not": (
        '\\"type\\": \\"accelerator\\"',
        '\\"type\\": \\"quantum\\"',
        "the type is 'quantum'. Expected one of accelerator, gpu, cpu",
    ),
    "a description that needs too much": (
        "    *needed = strlen(text);\n",
        "    *needed = 1ull << 60;\n    (void)text;\n",
        "it needs 1152921504606846976 bytes, more than",
    ),
    "a description that grows": (
        "    *needed = strlen(text);\n",
        "    *needed = room + 1;\n    (void)text;\n",
        "it needs more room than it has said",
    ),
    "a description past its room": (
        "    *needed = strlen(text);\n",
        "    memset(to, 'x', room + 8);\n    *needed = strlen(text);\n",
        r"it wrote more than the \d+ bytes of room",
    ),
    "a description that is not UTF-8": (
        '"{\\"name\\"',
        '"{\\"\\xff\\"',
        "AcmeNpu / describe: the description is not JSON",
    ),
    "a description of deep lists": (
        "    *needed = strlen(text);\n",
        "    *needed = 200000;\n    if (room >= *needed) memset(to, '[', *needed);\n"
        "    return AP_OK;\n",
        "AcmeNpu / describe: the description is not JSON",
    ),
    "reasons that need too much": (
        "    *needed = 0;\n",
        "    *needed = 1ull << 40;\n    if (room) return AP_OK;\n",
        "AcmeNpu / supported: it needs 1099511627776 bytes, more than",
    ),
    "reasons past their room": (
        "    *needed = 0;\n",
        "    memset(reasons, 'x', room + 8);\n    *needed = 0;\n",
        r"AcmeNpu / supported: it wrote more than the \d+ bytes of room",
    ),
    "another answer to the same question": (
        "    *needed = 0;\n",
        "    static int asked;\n    *needed = 0;\n    yes[0] = 0;\n"
        "    if (asked++ >= 0) return AP_OK;\n",
        "no reason given",
    ),
    "execute is cancelled by itself": (
        "    for (uint32_t i = 0; i < num_outputs; i++)\n",
        '    if (cancel) return fail(error, AP_CANCELLED, "stopped");\n'
        "    for (uint32_t i = 0; i < num_outputs; i++)\n",
        "AcmeNpu / execute: stopped",
    ),
    "a negative status": (
        "    for (uint32_t i = 0; i < num_outputs; i++)\n",
        "    if (cancel) return -7;\n    for (uint32_t i = 0; i < num_outputs; i++)\n",
        r"the status -7 is not an ap_status \(no text\)",
    ),
    "a text that is not UTF-8": (
        "    for (uint32_t i = 0; i < num_outputs; i++)\n",
        '    if (cancel) return fail(error, AP_INVALID, "bad \\xff");\n'
        "    for (uint32_t i = 0; i < num_outputs; i++)\n",
        "AcmeNpu / execute: bad \ufffd",
    ),
    "an answer that is neither yes nor no": (
        "yes[i] = reason == NULL;",
        "yes[i] = reason ? 0 : 7;",
        "an answer is 7. Expected 0 or 1",
    ),
    "answers past the last operator": (
        "yes[i] = reason == NULL;",
        "yes[i] = reason == NULL; yes[num_operators] = 1;",
        r"it wrote more than \d answers",
    ),
    "compile fails": (
        "    *program = made;\n",
        '    release(made);\n    return fail(error, AP_OUT_OF_MEMORY, "full");\n',
        "AcmeNpu / compile: full",
    ),
    "compile gives no program": (
        "    *program = made;\n",
        "    release(made);\n    *program = NULL;\n",
        "AcmeNpu / compile: returned no program",
    ),
    "execute fails": (
        "    for (uint32_t i = 0; i < num_outputs; i++)\n",
        '    if (cancel) return fail(error, AP_INVALID, "wrong shape");\n'
        "    for (uint32_t i = 0; i < num_outputs; i++)\n",
        "AcmeNpu / execute: wrong shape",
    ),
    "execute fails without a text": (
        "    for (uint32_t i = 0; i < num_outputs; i++)\n",
        "    if (cancel) return AP_INTERNAL;\n    for (uint32_t i = 0; i < num_outputs; i++)\n",
        "AcmeNpu / execute: status 99, without a text",
    ),
}


def test_a_device_is_closed_after_its_programs(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    text = source()
    functions = {
        "close_device(ap_device *device)": "close",
        "release(ap_program *program)": "release",
    }
    for head, word in functions.items():
        note = f'FILE *f = fopen("{notes}", "a"); fputs("{word}\\n", f); fclose(f);'
        text = text.replace(f"static void {head}\n{{", f"static void {head}\n{{\n    {note}", 1)
    runtime = runtime_of(build(tmp_path, text, "libacme.so", "-w"))
    model = Model(network(), runtime)
    model(np.ones((2, 8), np.float32))
    notes.write_text("")  # of questions that have been answered
    model.close()
    runtime.close()
    del model, runtime
    gc.collect()
    assert notes.read_text().split() == ["release", "close"]


def test_a_type_that_the_header_lacks_is_named(sample: Path) -> None:
    made = open_library(str(sample))()
    graph = network()
    engine = made.get_engine()
    part = SubgraphView.of(graph, graph.layers[:3])
    program = engine.compile(made.convert(part), engine.describe({}))
    with pytest.raises(UnimplementedError, match=r"armpy_backend\.h has no type complex64"):
        program.execute([np.ones((2, 8), np.complex64)], [np.empty((2, 4), np.float32)])


def run_part(path: Path) -> None:
    """Compile the layers that the sample has, and execute them."""
    device_of(str(path), "{}")
    made = open_library(str(path))()
    graph = network()
    view = SubgraphView.of(graph, graph.layers[:3])
    engine = made.get_engine()
    program = engine.compile(made.convert(view), engine.describe({}))
    program.execute([np.ones((2, 8), np.float32)], [np.empty((2, 4), np.float32)])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_library_ends_in_an_error_that_names_the_function(
    tmp_path: Path, fault: str
) -> None:
    old, new, reason = FAULTS[fault]
    text = source()
    assert text.count(old) == 1
    path = build(tmp_path, text.replace(old, new), "libacme.so", "-w")
    with pytest.raises(ArmpyError, match=reason):
        run_part(path)


def test_a_table_that_changes_after_it_was_read_is_used_as_it_was(tmp_path: Path) -> None:
    text = source().replace("static const ap_backend BACKEND", "static ap_backend BACKEND")
    head = "static int32_t open_device("
    text = text.replace(head, f"static ap_backend BACKEND;\n{head}")
    text = text.replace(
        "    (void)options;\n", "    BACKEND.execute = NULL; BACKEND.compile = NULL;\n"
    )
    run_part(build(tmp_path, text, "libacme.so", "-w"))


def test_a_thread_that_goes_on_after_close_still_has_its_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    thread = """
#include <pthread.h>
static volatile int closed;
static void *talk(void *host_)
{
    const ap_host *host = host_;
    while (!closed)
        ;
    host->log(host->user, 20, "after close");
    host->log(host->user, 20, NULL);
    host->log(host->user, -5, "\\xff\\xfe");
    host->log(host->user, 40, "the end");
    return NULL;
}
"""
    text = source().replace("static int32_t open_device(", f"{thread}static int32_t open_device(")
    start = "    pthread_t thread;\n    pthread_create(&thread, NULL, talk, (void *)host);\n"
    text = text.replace("    (void)options;\n", start)
    text = text.replace("    free(device);\n", "    free(device);\n    closed = 1;\n")
    path = build(tmp_path, text, "libacme.so", "-w", "-pthread")
    with caplog.at_level("INFO", logger="armpy.native"):
        run_part(path)
        gc.collect()
        deadline_s = time.monotonic() + 60
        while "the end" not in caplog.messages and time.monotonic() < deadline_s:
            time.sleep(0.01)
    assert caplog.messages[-3:] == ["after close", "", "the end"]


SAVING = """
static int32_t save(ap_program *program, void *to, uint64_t room, uint64_t *needed, ap_error *error)
{
    (void)program, (void)error;
    return write_text("compiled form", to, room, needed);
}

static int32_t load(ap_device *device, ap_span compiled, ap_program **program, ap_error *error)
{
    (void)device, (void)compiled, (void)program;
    return fail(error, AP_INVALID, "made by another release");
}

"""

SAVE_FAULTS = {
    "load refuses": ("", "", "AcmeNpu / load: made by another release"),
    "load gives no program": (
        'return fail(error, AP_INVALID, "made by another release");',
        "return AP_OK;",
        "AcmeNpu / load: returned no program",
    ),
    "save fails": (
        "return write_text(",
        'return fail(error, 4, "gone"); (',
        "AcmeNpu / save: gone",
    ),
    "save needs too much": (
        "return write_text(",
        "*needed = 1ull << 50; return AP_OK; (",
        "AcmeNpu / save: it needs 1125899906842624 bytes, more than",
    ),
    "save writes past its room": (
        "return write_text(",
        "memset(to, 'x', room + 8); return write_text(",
        r"AcmeNpu / save: it wrote more than the \d+ bytes of room",
    ),
    "save grows": (
        "return write_text(",
        "*needed = room + 1; return AP_OK; (",
        "AcmeNpu / save: it needs more room than it has said",
    ),
}


@pytest.mark.parametrize("fault", SAVE_FAULTS)
def test_a_fault_of_save_or_load_is_named(tmp_path: Path, fault: str) -> None:
    old, new, reason = SAVE_FAULTS[fault]
    functions = SAVING.replace(old, new) if old else SAVING
    text = source().replace(
        "static const ap_backend BACKEND", f"{functions}static const ap_backend BACKEND"
    )
    text = text.replace("    NULL, /* save */\n    NULL, /* load */\n", "    save,\n    load,\n")
    path = build(tmp_path, text, "libacme.so", "-w")
    made = open_library(str(path))()
    graph = network()
    engine = made.get_engine()
    about = engine.describe({})
    program = engine.compile(made.convert(SubgraphView.of(graph, graph.layers[:3])), about)
    with pytest.raises(ArmpyError, match=reason):
        engine.compile(program.model, about)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    ["open_device", "close_device", "describe", "supported", "compile", "execute", "release"],
)
def test_a_crash_of_an_isolated_library_does_not_end_the_application(
    tmp_path: Path, function: str
) -> None:
    text = source()
    head = re.search(rf"static (int32_t|void) {function}\(", text)
    assert head is not None
    begin = text.index("{", head.end()) + 1
    folder = tmp_path / "plugins"
    folder.mkdir(mode=0o700)
    build(folder, f"{text[:begin]}\n    abort();{text[begin:]}", "Acme_Npu_backend.so", "-w")
    options = RuntimeOptions(
        backends=["AcmeNpu", "CpuRef"],
        dynamic_backends_path=folder,
        isolation={"AcmeNpu": "process"},
    )
    x = np.ones((2, 8), np.float32)
    if function in ("open_device", "describe", "close_device"):  # it cannot be set up
        with pytest.raises(ArmpyError, match="there is no backend 'AcmeNpu'"):
            Runtime(options)
        return
    with Runtime(options) as runtime:  # other backends take its layers
        np.testing.assert_allclose(Model(network(), runtime)(x), expected(x), rtol=1e-5)


EXECUTE_FAULTS = {
    "exit": "    exit(3);\n",
    "a write far past its output": "    memset(outputs[0].data, 1, 1ull << 34);\n",
    "a read of nothing": "    memcpy(outputs[0].data, (void *)16, 64);\n",
    "endless recursion": "    volatile char frame[65536]; frame[0] = 1;\n"
    "    if (frame[0]) return execute(program, inputs, num_inputs, outputs, num_outputs, cancel,"
    " error) + frame[1];\n",
    "a signal to its own process": "    kill(getpid(), 9);\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", EXECUTE_FAULTS)
def test_an_isolated_execution_that_ends_its_process_loses_nothing(
    tmp_path: Path, fault: str
) -> None:
    text = source()
    begin = text.index("{", text.index(" execute(ap_")) + 1
    text = f"{text[:begin]}\n{EXECUTE_FAULTS[fault]}{text[begin:]}"
    tmp_path.chmod(0o700)
    text = f"#include <signal.h>\n#include <unistd.h>\n{text}"
    build(tmp_path, text, "Acme_Npu_backend.so", "-w", "-O0")
    options = RuntimeOptions(
        backends=["AcmeNpu", "CpuRef"],
        dynamic_backends_path=tmp_path,
        isolation={"AcmeNpu": "process"},
    )
    x = np.ones((2, 8), np.float32)
    with Runtime(options) as runtime:
        np.testing.assert_allclose(Model(network(), runtime)(x), expected(x), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("isolation", "cases"),
    [(None, "" if IS_FULL else "FullyConnected/"), ({"AcmeNpu": "process"}, "FullyConnected/")],
    ids=["in-process", "isolated"],
)
def test_the_library_keeps_to_the_contract_and_agrees_with_the_reference(
    sample: Path, isolation: dict[str, str] | None, cases: str, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    shutil.copy(sample, tmp_path / "Acme_Npu_backend.so")
    options = RuntimeOptions(dynamic_backends_path=tmp_path, isolation=isolation)
    result = run_conformance("AcmeNpu", runtime_options=options, filter=cases)
    assert result.is_passed, (result.shortcomings, result.problems)
