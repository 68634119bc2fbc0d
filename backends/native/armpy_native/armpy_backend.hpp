/*
 * armpy_backend.hpp: a backend of armpy as C++ classes, over armpy_backend.h.
 *
 * Derive a class from armpy::Device and one from armpy::Program, and export the device:
 *
 *     ARMPY_BACKEND(AcmeDevice, "AcmeNpu", "0.1.0", "Acme")
 *
 * AcmeDevice is made by AcmeDevice(const ap_host &host, std::string_view options).
 *
 * C++17, no dependencies; exceptions have to be enabled, RTTI need not be.
 *
 * Errors    Exceptions end here: armpy::Error gives its status, std::bad_alloc AP_OUT_OF_MEMORY,
 *           any other AP_INTERNAL, with the text of what(). Destructors must not throw.
 * Memory    Devices and programs are deleted when armpy closes and releases them. What a View or
 *           an ap_span shows is armpy's: valid during the call, or until the program is deleted,
 *           as armpy_backend.h says of the graph and the constants.
 * Threads   As of armpy_backend.h.
 */
#ifndef ARMPY_BACKEND_HPP
#define ARMPY_BACKEND_HPP

#include "armpy_backend.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace armpy {

/* A failure with a status of armpy_backend.h. */
class Error : public std::runtime_error {
  public:
    Error(ap_status status, const std::string &text) : std::runtime_error(text), status(status) {}

    const ap_status status;
};

/* Elements in armpy's memory. */
template <class T> struct View {
    const T *data;
    uint64_t size;

    const T *begin() const { return data; }
    const T *end() const { return data + size; }
    const T &operator[](uint64_t index) const { return data[index]; }
};

/* The arguments of an execution. */
struct Execution {
    View<ap_tensor> inputs, outputs;
    const volatile int64_t *cancel;

    /* Stop the execution if it has been cancelled; call this from time to time. */
    void check() const
    {
        if (*cancel)
            throw Error(AP_CANCELLED, "cancelled");
    }
};

/* A compiled model. */
class Program {
  public:
    virtual ~Program() = default;

    /* Compute all outputs. */
    virtual void execute(const Execution &execution) = 0;

    /* The compiled form, for devices that override load(); called twice for each file. */
    virtual std::string save() { throw Error(AP_UNSUPPORTED, "the program has no compiled form"); }
};

/* An open device. */
class Device {
  public:
    virtual ~Device() = default;

    /* Describe the device as a JSON object. */
    virtual std::string describe() { return "{}"; }

    /* Say for each operator of a model why it cannot be compiled; empty where it can. */
    virtual std::vector<std::string> supported(ap_span graph, uint64_t num_operators) = 0;

    /* Compile a model; constants as of compile_shared(). */
    virtual std::unique_ptr<Program> compile(ap_span graph, View<ap_span> constants) = 0;

    /* Optional, with Program::save(): make a program of its compiled form. */
    virtual std::unique_ptr<Program> load(ap_span compiled)
    {
        (void)compiled;
        throw Error(AP_UNSUPPORTED, "the device loads no compiled form");
    }
};

/* The table of functions for a class derived from Device. */
template <class D> class Table {
  public:
    static ap_backend make(const char *id, const char *version, const char *vendor)
    {
        ap_backend table = {};
        table.header = {sizeof(ap_backend), AP_VERSION_MAJOR, AP_VERSION_MINOR};
        table.id = id;
        table.version = version;
        table.vendor = vendor;
        table.open = open;
        table.close = [](ap_device *device) { delete &device_of(device); };
        table.describe = describe;
        table.supported = supported;
        table.compile = [](ap_device *device, ap_span graph, ap_program **program,
                           ap_error *error) {
            return compile_shared(device, graph, nullptr, 0, program, error);
        };
        if constexpr (!std::is_same_v<decltype(&D::load), decltype(&Device::load)>) {
            table.save = save;
            table.load = load;
        }
        table.execute = execute;
        table.release = [](ap_program *program) { delete &program_of(program); };
        table.compile_shared = compile_shared;
        return table;
    }

  private:
    static Device &device_of(ap_device *handle) { return *reinterpret_cast<Device *>(handle); }
    static Program &program_of(ap_program *handle) { return *reinterpret_cast<Program *>(handle); }

    static int32_t fail(ap_error *error, ap_status status, const char *text) noexcept
    {
        const size_t used = std::min(std::strlen(text), sizeof error->text - 1);
        std::memcpy(error->text, text, used);
        error->text[used] = '\0';
        error->used = static_cast<uint32_t>(used);
        return error->code = status;
    }

    /* Call a function; what it throws becomes the result. */
    template <class Function> static int32_t guard(ap_error *error, Function function) noexcept
    {
        try {
            function();
            return AP_OK;
        } catch (const Error &failure) {
            return fail(error, failure.status, failure.what());
        } catch (const std::bad_alloc &) {
            return fail(error, AP_OUT_OF_MEMORY, "no memory");
        } catch (const std::exception &failure) {
            return fail(error, AP_INTERNAL, failure.what());
        } catch (...) {
            return fail(error, AP_INTERNAL, "an exception that is not a std::exception");
        }
    }

    static void write(const std::string &bytes, void *to, uint64_t room, uint64_t *needed)
    {
        *needed = bytes.size();
        if (*needed && *needed <= room)
            std::memcpy(to, bytes.data(), bytes.size());
    }

    static void give(std::unique_ptr<Program> made, ap_program **program)
    {
        *program = reinterpret_cast<ap_program *>(made.release());
    }

    static int32_t open(const ap_host *host, ap_span options, ap_device **device, ap_error *error)
    {
        return guard(error, [=] {
            const std::string_view text(static_cast<const char *>(options.data), options.bytes);
            Device *made = new D(*host, text);
            *device = reinterpret_cast<ap_device *>(made);
        });
    }

    static int32_t describe(ap_device *device, char *json, uint64_t room, uint64_t *needed,
                            ap_error *error)
    {
        return guard(error, [=] { write(device_of(device).describe(), json, room, needed); });
    }

    static int32_t supported(ap_device *device, ap_span graph, uint8_t *yes, uint64_t num_operators,
                             char *reasons, uint64_t room, uint64_t *needed, ap_error *error)
    {
        return guard(error, [=] {
            std::vector<std::string> answers = device_of(device).supported(graph, num_operators);
            if (answers.size() != num_operators)
                throw Error(AP_INTERNAL, "there is not one answer for each operator");
            std::string text;
            for (uint64_t i = 0; i < num_operators; i++) {
                yes[i] = answers[i].empty();
                std::replace(answers[i].begin(), answers[i].end(), '\n', ' ');
                text += answers[i] + '\n';
            }
            write(text, reasons, room, needed);
        });
    }

    static int32_t compile_shared(ap_device *device, ap_span graph, const ap_span *constants,
                                  uint64_t num_constants, ap_program **program, ap_error *error)
    {
        return guard(error, [=] {
            give(device_of(device).compile(graph, {constants, num_constants}), program);
        });
    }

    static int32_t save(ap_program *program, void *to, uint64_t room, uint64_t *needed,
                        ap_error *error)
    {
        return guard(error, [=] { write(program_of(program).save(), to, room, needed); });
    }

    static int32_t load(ap_device *device, ap_span compiled, ap_program **program, ap_error *error)
    {
        return guard(error, [=] { give(device_of(device).load(compiled), program); });
    }

    static int32_t execute(ap_program *program, const ap_tensor *inputs, uint32_t num_inputs,
                           const ap_tensor *outputs, uint32_t num_outputs,
                           const volatile int64_t *cancel, ap_error *error)
    {
        return guard(error, [=] {
            program_of(program).execute({{inputs, num_inputs}, {outputs, num_outputs}, cancel});
        });
    }
};

} // namespace armpy

/* Export a class derived from armpy::Device. */
#define ARMPY_BACKEND(device, id, version, vendor)                                           \
    const ap_backend *armpy_backend_v1(void)                                                 \
    {                                                                                        \
        static const ap_backend table = armpy::Table<device>::make(id, version, vendor);     \
        return &table;                                                                       \
    }

#endif
