"""The sample in C with start and wait: executions on threads that the test can hold up."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path

from .sample_library import build, source

FUNCTIONS = """
struct ap_event {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int has_ended;
    int32_t status;
    ap_error error;
    ap_program *program;
    const ap_tensor *inputs, *outputs;
    uint32_t num_inputs, num_outputs;
    const volatile int64_t *cancel;
};

/* Read and set by the tests. */
AP_EXPORT volatile int64_t num_needed = 1; /* under way before one computes */
AP_EXPORT volatile int64_t num_under_way, most_under_way, num_started, num_cancelled, failure;
static pthread_mutex_t computing = PTHREAD_MUTEX_INITIALIZER; /* a program has one memory */

static void *run(void *event_)
{
    ap_event *event = event_;
    const struct timespec moment = {0, 1000000};
    int32_t status = AP_OK;
    while (most_under_way < num_needed && status == AP_OK) {
        nanosleep(&moment, NULL);
        if (*event->cancel) {
            __sync_fetch_and_add(&num_cancelled, 1);
            status = fail(&event->error, AP_CANCELLED, "cancelled");
        }
    }
    if (status == AP_OK && failure)
        status = fail(&event->error, (int32_t)failure, "bad voltage");
    pthread_mutex_lock(&computing);
    if (status == AP_OK)
        status = execute(event->program, event->inputs, event->num_inputs, event->outputs,
                         event->num_outputs, event->cancel, &event->error);
    pthread_mutex_unlock(&computing);
    pthread_mutex_lock(&event->lock);
    event->status = status;
    event->has_ended = 1;
    __sync_fetch_and_sub(&num_under_way, 1);
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
    return NULL;
}

static int32_t start(ap_program *program, const ap_tensor *inputs, uint32_t num_inputs,
                     const ap_tensor *outputs, uint32_t num_outputs,
                     const volatile int64_t *cancel, ap_event **event, ap_error *error)
{
    ap_event *made = calloc(1, sizeof *made);
    if (!made)
        return fail(error, AP_OUT_OF_MEMORY, "no memory for an execution");
    made->program = program;
    made->inputs = inputs;
    made->num_inputs = num_inputs;
    made->outputs = outputs;
    made->num_outputs = num_outputs;
    made->cancel = cancel;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    int64_t now = __sync_add_and_fetch(&num_under_way, 1);
    if (now > most_under_way)
        most_under_way = now;
    num_started++;
    if (pthread_create(&made->thread, NULL, run, made)) {
        free(made);
        return fail(error, AP_OUT_OF_MEMORY, "no thread for an execution");
    }
    *event = made;
    return AP_OK;
}

static int32_t wait_for(ap_event *event, int64_t timeout_ns, ap_error *error)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t end_ns = until.tv_nsec + timeout_ns;
    until.tv_sec += end_ns / 1000000000;
    until.tv_nsec = end_ns % 1000000000;
    pthread_mutex_lock(&event->lock);
    int late = 0;
    while (!event->has_ended && !late)
        if (timeout_ns < 0)
            pthread_cond_wait(&event->changed, &event->lock);
        else
            late = pthread_cond_timedwait(&event->changed, &event->lock, &until);
    int has_ended = event->has_ended;
    pthread_mutex_unlock(&event->lock);
    if (!has_ended)
        return AP_TIMEOUT;
    pthread_join(event->thread, NULL);
    int32_t status = event->status;
    *error = event->error;
    pthread_mutex_destroy(&event->lock);
    pthread_cond_destroy(&event->changed);
    free(event);
    return status;
}

"""


def starting_source() -> str:
    """The sample's source text with start and wait."""
    text = "#define _POSIX_C_SOURCE 200809L\n#include <pthread.h>\n#include <time.h>\n" + source()
    table = "static const ap_backend BACKEND"
    text = text.replace(table, FUNCTIONS + table)
    nothing = "    NULL, /* start */\n    NULL, /* wait */\n"
    assert nothing in text
    return text.replace(nothing, "    start,\n    wait_for,\n")


class StartingLibrary:
    """A built library, and the numbers in it that tests read and set."""

    def __init__(self, folder: Path, text: str = "", name: str = "libacme.so") -> None:
        self.path = build(folder, text or starting_source(), name, "-pthread")
        self._library = ctypes.CDLL(str(self.path))

    def __getitem__(self, name: str) -> int:
        return ctypes.c_int64.in_dll(self._library, name).value

    def __setitem__(self, name: str, number: int) -> None:
        ctypes.c_int64.in_dll(self._library, name).value = number

    def wait_until(self, name: str, number: int) -> None:
        """Wait until a number has a value."""
        deadline_s = time.monotonic() + 60
        while self[name] != number:
            assert time.monotonic() < deadline_s, (name, self[name])
            time.sleep(0.001)
