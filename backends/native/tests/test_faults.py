"""Faulty libraries in C end in an error that names the function, or in other backends' answers."""

from __future__ import annotations

import gc
import re
import time
from pathlib import Path

import numpy as np
import pytest

from armpy import Model, Runtime, RuntimeOptions, load
from armpy.errors import ArmpyError, BackendUnavailableError
from armpy.graph import SubgraphView

from .sample_library import build, expected, network, run_part, source

pytest.importorskip("armpy_native")

from armpy_native import open_library

LATER = r"version of the table.*1\.0 to 1\.2; got 1\.3\. Install a newer armpy-native"

TABLE_FAULTS = {
    "another major": (
        "AP_VERSION_MAJOR, AP_VERSION_MINOR",
        "2, 0",
        r"version.*1\.0 to 1\.2; got 2\.0",
    ),
    "a later minor": ("AP_VERSION_MAJOR, AP_VERSION_MINOR", "1, 3", LATER),
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
    "an id without an end": ('"AcmeNpu"', '"' + 4000 * "A" + '"', "at most 256 bytes; got"),
    "save without load": ("    NULL, /* load */", "    release_nothing,", "save and load"),
    "no table": ("    return &BACKEND;", "    return (void)&BACKEND, NULL;", "table.*got NULL"),
}


@pytest.mark.slow
@pytest.mark.sampled(18)
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


@pytest.mark.slow
def test_a_longer_table_that_needs_no_later_minor_is_accepted(tmp_path: Path) -> None:
    text = source().replace("{sizeof(ap_backend), AP", "{sizeof(ap_backend) + 64, AP")
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


@pytest.mark.sampled(29)
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


@pytest.mark.slow
def test_a_table_that_changes_after_it_was_read_is_used_as_it_was(tmp_path: Path) -> None:
    text = source().replace("static const ap_backend BACKEND", "static ap_backend BACKEND")
    head = "static int32_t open_device("
    text = text.replace(head, f"static ap_backend BACKEND;\n{head}")
    text = text.replace(
        "    (void)options;\n", "    BACKEND.execute = NULL; BACKEND.compile = NULL;\n"
    )
    path = build(tmp_path, text, "libacme.so", "-w")
    sound = build(tmp_path, source(), "libsound.so")
    np.testing.assert_array_equal(run_part(path), run_part(sound))


@pytest.mark.slow
def test_a_thread_that_goes_on_after_close_still_has_its_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    thread = """
#include <pthread.h>
static volatile int closed;
static int num_threads; /* of one: the library is opened more than once */
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
    start = """
    pthread_t thread;
    if (num_threads++ == 0)
        pthread_create(&thread, NULL, talk, (void *)host);
"""
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


@pytest.mark.sampled(7)
@pytest.mark.parametrize("fault", SAVE_FAULTS)
def test_a_fault_of_save_or_load_is_named(tmp_path: Path, fault: str) -> None:
    old, new, reason = SAVE_FAULTS[fault]
    functions = SAVING.replace(old, new) if old else SAVING
    text = source().replace(
        "static const ap_backend BACKEND", f"{functions}static const ap_backend BACKEND"
    )
    text = text.replace("    NULL, /* save */\n    NULL, /* load */\n", "    save,\n    load,\n")
    path = build(tmp_path, text, "libacme.so", "-w")
    backend = open_library(str(path))()
    graph = network()
    engine = backend.get_engine()
    model = backend.convert(SubgraphView.of(graph, graph.layers[:3]))
    program = engine.compile(model, engine.describe({}))
    with pytest.raises(ArmpyError, match=reason):
        engine.load(engine.save(program, {}))


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "function",
    [
        "open_device",
        "close_device",
        "describe",
        "supported",
        "compile_shared",
        "execute",
        "release",
    ],
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


@pytest.mark.slow
@pytest.mark.parametrize("function", ["save", "load"])
def test_a_crash_of_save_or_load_in_a_process_of_its_own_is_contained(
    tmp_path: Path, function: str
) -> None:
    begin = SAVING.index("{", SAVING.index(f"static int32_t {function}(")) + 1
    functions = f"{SAVING[:begin]}\n    abort();{SAVING[begin:]}"
    table = "static const ap_backend BACKEND"
    text = source().replace(table, functions + table)
    text = text.replace("    NULL, /* save */\n    NULL, /* load */\n", "    save,\n    load,\n")
    folder = tmp_path / "plugins"
    folder.mkdir(mode=0o700)
    build(folder, text, "Acme_Npu_backend.so", "-w")
    options = RuntimeOptions(
        backends=["AcmeNpu", "CpuRef"],
        dynamic_backends_path=folder,
        isolation={"AcmeNpu": "process"},
    )
    x, saved = np.ones((2, 8), np.float32), tmp_path / "saved.armpy"
    with Runtime(options) as runtime, Model(network(), runtime) as model:
        model.save(saved)
        with load(saved, runtime=runtime) as again:
            np.testing.assert_allclose(again(x), expected(x), rtol=1e-5)
            assert str(again.placement).startswith("4 layers: CpuRef 4")


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
@pytest.mark.sampled(3)
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
