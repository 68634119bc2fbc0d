/*
 * armpy_backend.h, version 1.2: a backend of armpy as a shared library with a C interface.
 *
 * A library exports one function, armpy_backend_v1(), which returns a table of functions. armpy
 * hands it parts of neural networks as TensorFlow Lite models in memory; the library says which
 * layers it supports, compiles the model, and executes it on arrays.
 *
 * C99 or C++11, no dependencies. Build it as a shared library:
 *
 *     cc -std=c99 -shared -fPIC -o acme_npu_backend.so acme_npu.c
 *
 * Rules
 *
 * Memory    The side that allocates memory frees it. Texts and tables that the library returns live
 *           as long as it is loaded. Arguments are valid during the call, except the graph of
 *           compile() and the bytes of load(), which stay valid and unchanged, aligned to 64 bytes,
 *           until release(), as do the constants of compile_shared(): weights can be used where
 *           they lie.
 * Errors    A function returns AP_OK or another ap_status, and describes the failure in ap_error,
 *           which is the caller's memory. No function may throw or exit.
 * Threads   armpy calls the functions of one device or program one after the other, except
 *           execute() and start(), which may run in several threads if describe() says
 *           "concurrent": true, and wait(), which may always. log() may be called from any thread,
 *           but not after close().
 * Versions  Every table begins with ap_header. Another major version than the host's is refused,
 *           and so is a later minor version: state the least one that the library needs. A minor
 *           version appends members only; a member is used if struct_size covers it and it is not
 *           NULL. Reserved members are zero.
 */
#ifndef ARMPY_BACKEND_H
#define ARMPY_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AP_VERSION_MAJOR 1
#define AP_VERSION_MINOR 2

#if defined(_WIN32)
#define AP_EXPORT __declspec(dllexport)
#else
#define AP_EXPORT __attribute__((visibility("default")))
#endif

/* Results of functions. */
enum ap_status {
    AP_OK = 0,
    AP_UNSUPPORTED = 1,    /* compile(): armpy halves the model and compiles each half; an operator
                              that is refused alone goes to another backend, with the text */
    AP_INVALID = 2,        /* an argument is wrong */
    AP_OUT_OF_MEMORY = 3,
    AP_DEVICE_LOST = 4,    /* the device is gone; armpy uses other backends from then on */
    AP_TIMEOUT = 5,        /* wait(): the execution is still under way */
    AP_CANCELLED = 6,      /* the execution stopped as *cancel was set */
    AP_NO_DEVICE = 7,      /* open(): the machine has no such device */
    AP_INTERNAL = 99
};

/* Types of elements; numbers are those of TensorFlow Lite's TensorType. */
enum ap_dtype {
    AP_FLOAT32 = 0,
    AP_FLOAT16 = 1,
    AP_INT32 = 2,
    AP_UINT8 = 3,
    AP_INT64 = 4,
    AP_BOOL = 6,
    AP_INT16 = 7,
    AP_INT8 = 9,
    AP_FLOAT64 = 10,
    AP_UINT32 = 15,
    AP_UINT16 = 16
};

/* Begins every table. */
typedef struct ap_header {
    uint32_t struct_size; /* sizeof the whole table, as compiled */
    uint16_t major;
    uint16_t minor;
} ap_header;

/* Description of a failure, written by the library. */
typedef struct ap_error {
    int32_t code;    /* an ap_status */
    uint32_t used;   /* bytes of text, without the zero at its end */
    char text[1008]; /* UTF-8 */
} ap_error;

/* Bytes that the callee may read. */
typedef struct ap_span {
    const void *data;
    uint64_t bytes;
} ap_span;

/* One input or output of an execution, in row-major order without gaps. */
typedef struct ap_tensor {
    void *data;
    uint64_t bytes;
    const int64_t *dims;
    uint32_t rank;
    uint32_t dtype; /* an ap_dtype */
    uint64_t reserved;
} ap_tensor;

/* What armpy offers a library. */
typedef struct ap_host {
    ap_header header;
    /*
     * Writes a line to armpy's log; level is that of Python's logging: 10, 20, 30, 40. Lines of a
     * backend in a process of its own are not shown.
     */
    void (*log)(void *user, int32_t level, const char *text);
    void *user;
} ap_host;

typedef struct ap_device ap_device;   /* the library's own */
typedef struct ap_program ap_program; /* the library's own */
typedef struct ap_event ap_event;     /* the library's own: an execution that is under way */

/* What a library offers armpy. Functions that may be NULL are optional. */
typedef struct ap_backend {
    ap_header header;
    const char *id;      /* letters and digits, such as "AcmeNpu" */
    const char *version; /* of the library, such as "1.4.2" */
    const char *vendor;

    /* Open the device. options: a JSON object of the application's options, as text. */
    int32_t (*open)(const ap_host *host, ap_span options, ap_device **device, ap_error *error);

    /*
     * Close the device; all programs are released before. Not called at the end of an isolated
     * backend's process.
     */
    void (*close)(ap_device *device);

    /*
     * Optional. Describe the device as a JSON object of at most room bytes; *needed is set to its
     * size. Where room is too small, only *needed is set. Keys, all optional:
     *   "name": text, "type": "accelerator", "gpu" or "cpu", "concurrent": bool,
     *   "keeps_nan": bool (maxima and activations of NaN are NaN).
     */
    int32_t (*describe)(ap_device *device, char *json, uint64_t room, uint64_t *needed,
                        ap_error *error);

    /*
     * Say which operators of a model can be compiled. The model has all operators of a network
     * that no earlier backend takes, or a single one. yes[i] is set to 1 for the i-th operator,
     * else left 0, for all num_operators. reasons, of room bytes, gets one line for each operator,
     * separated by '\n', empty where it is supported; *needed is set to the size of the text.
     * Where room is too small, armpy asks again with as much as *needed says.
     */
    int32_t (*supported)(ap_device *device, ap_span graph, uint8_t *yes, uint64_t num_operators,
                         char *reasons, uint64_t room, uint64_t *needed, ap_error *error);

    /* Compile a model of supported operators that are connected. */
    int32_t (*compile)(ap_device *device, ap_span graph, ap_program **program, ap_error *error);

    /* Optional, with load: write the compiled form. Called with room 0 first, to learn *needed. */
    int32_t (*save)(ap_program *program, void *to, uint64_t room, uint64_t *needed,
                    ap_error *error);

    /* Optional, with save: make a program of its compiled form. */
    int32_t (*load)(ap_device *device, ap_span compiled, ap_program **program, ap_error *error);

    /*
     * Compute all outputs; their order is that of the model's inputs and outputs. A long execution
     * looks at *cancel from time to time, and stops with AP_CANCELLED if it is not 0.
     */
    int32_t (*execute)(ap_program *program, const ap_tensor *inputs, uint32_t num_inputs,
                       const ap_tensor *outputs, uint32_t num_outputs,
                       const volatile int64_t *cancel, ap_error *error);

    /* Release a program; its graph may be gone afterwards. */
    void (*release)(ap_program *program);

    /*
     * Optional, since 1.1: compile a model whose constants of more than 1,024 bytes are not in the
     * graph, so that armpy need not copy them. Their buffers in the graph are empty, and the
     * elements of buffer i are constants[i], at a multiple of 16 bytes, of 64 in compiled models;
     * constants[i].data is NULL where the graph has them, and num_constants is 0 where it has all,
     * as small ones are in the graph. A tensor is constant if its buffer is not
     * buffer 0. The graphs of supported() have empty buffers, too, and compile() is not called.
     */
    int32_t (*compile_shared)(ap_device *device, ap_span graph, const ap_span *constants,
                              uint64_t num_constants, ap_program **program, ap_error *error);

    /*
     * Optional, since 1.2, with wait: begin an execution, and return at once. The arguments are
     * those of execute(), which is not called then. All but error stay valid until wait() says that
     * the execution has ended. Several executions can be under way, independent of each other,
     * also of one program. No two of them have the same *event.
     */
    int32_t (*start)(ap_program *program, const ap_tensor *inputs, uint32_t num_inputs,
                     const ap_tensor *outputs, uint32_t num_outputs,
                     const volatile int64_t *cancel, ap_event **event, ap_error *error);

    /*
     * Wait for the end of an execution, at most timeout_ns nanoseconds, or without a limit if that
     * is negative. AP_TIMEOUT says that it is still under way; armpy waits again. After any other
     * result, the execution has ended, the library uses none of its arguments, and has freed the
     * event. If an execution has not ended 10 seconds after *cancel was set, armpy gives the device
     * up: it calls none of its functions any more.
     */
    int32_t (*wait)(ap_event *event, int64_t timeout_ns, ap_error *error);
} ap_backend;

/* The library's one exported function. It returns the same table each time, never NULL. */
AP_EXPORT const ap_backend *armpy_backend_v1(void);

/* Whether a table has a member: its struct_size covers it, and it is not NULL. */
#define AP_HAS(type, table, member)                                                        \
    ((table)->header.struct_size >= offsetof(type, member) + sizeof((table)->member) &&    \
     (table)->member != NULL)

/* Sizes and offsets never change. */
#define AP_ASSERT(name, condition) typedef char ap_assert_##name[(condition) ? 1 : -1]

AP_ASSERT(pointers_have_64_bits, sizeof(void *) == 8);
AP_ASSERT(size_of_header, sizeof(ap_header) == 8);
AP_ASSERT(size_of_error, sizeof(ap_error) == 1016);
AP_ASSERT(size_of_span, sizeof(ap_span) == 16);
AP_ASSERT(size_of_tensor, sizeof(ap_tensor) == 40);
AP_ASSERT(offset_of_rank, offsetof(ap_tensor, rank) == 24);
AP_ASSERT(size_of_host, sizeof(ap_host) == 24);
AP_ASSERT(offset_of_id, offsetof(ap_backend, id) == 8);
AP_ASSERT(offset_of_open, offsetof(ap_backend, open) == 32);
AP_ASSERT(offset_of_close, offsetof(ap_backend, close) == 40);
AP_ASSERT(offset_of_describe, offsetof(ap_backend, describe) == 48);
AP_ASSERT(offset_of_supported, offsetof(ap_backend, supported) == 56);
AP_ASSERT(offset_of_compile, offsetof(ap_backend, compile) == 64);
AP_ASSERT(offset_of_save, offsetof(ap_backend, save) == 72);
AP_ASSERT(offset_of_load, offsetof(ap_backend, load) == 80);
AP_ASSERT(offset_of_execute, offsetof(ap_backend, execute) == 88);
AP_ASSERT(offset_of_release, offsetof(ap_backend, release) == 96);
AP_ASSERT(offset_of_compile_shared, offsetof(ap_backend, compile_shared) == 104);
AP_ASSERT(offset_of_start, offsetof(ap_backend, start) == 112);
AP_ASSERT(offset_of_wait, offsetof(ap_backend, wait) == 120);
AP_ASSERT(size_of_backend, sizeof(ap_backend) == 128);

#ifdef __cplusplus
}
#endif

#endif
