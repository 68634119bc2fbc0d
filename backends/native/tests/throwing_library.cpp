/*
 * The sample of a library in C++, whose functions throw what the device's options ask for.
 *
 * The option {"FUNCTION": "KIND"} has a function throw an exception of a kind; "short", "nothing"
 * and "order" have it answer with too little, return nothing, or log the order of its end.
 */
#include "armpy_backend.hpp"
#include "model.h"

static int throw_one(const std::string &kind)
{
    if (kind == "lost") throw armpy::Error(AP_DEVICE_LOST, "no power");
    if (kind == "refused") throw armpy::Error(AP_UNSUPPORTED, "too small");
    if (kind == "no device") throw armpy::Error(AP_NO_DEVICE, "nothing there");
    if (kind == "cancelled") throw armpy::Error(AP_CANCELLED, "stopped");
    if (kind == "memory") throw std::bad_alloc();
    if (kind == "too large") return std::vector<char>(1ull << 60).size() > 0;
    if (kind == "standard") throw std::out_of_range("index 7");
    if (kind == "long") throw std::runtime_error(std::string(5000, 'x'));
    if (kind == "number") throw 7;
    return 0;
}

static bool fails(std::string_view options, const char *function)
{
    return options.find(function) != options.npos;
}

static void log(const ap_host &host, std::string_view options, const char *text)
{
    if (fails(options, "order")) host.log(host.user, 20, text);
}

static std::string kind_of(std::string_view options)
{
    const size_t first = options.find(": \"") + 3;
    return std::string(options.substr(first, options.find('"', first) - first));
}

namespace {

constexpr int ADD = 0, FULLY_CONNECTED = 9, MUL = 18, RELU = 19;

struct Node {
    int code;
    bool has_relu;
    int32_t a, b, c, result; // tensors; c is the bias, or -1
    uint64_t depth, width;   // of the weights
};

void compute(const Node &node, const float *a, const float *b, const float *c,
             std::vector<float> &result)
{
    for (uint64_t i = 0; i < result.size(); i++) {
        float value = 0.0f;
        if (node.code == RELU)
            value = a[i];
        else if (node.code == ADD)
            value = a[i] + b[i];
        else if (node.code == MUL)
            value = a[i] * b[i];
        else if (node.code == FULLY_CONNECTED) {
            const float *row = a + i / node.width * node.depth;
            const float *weights = b + i % node.width * node.depth;
            value = c ? c[i % node.width] : 0.0f;
            for (uint64_t k = 0; k < node.depth; k++)
                value += row[k] * weights[k];
        }
        result[i] = node.has_relu && value < 0.0f ? 0.0f : value;
    }
}

// Why an operator cannot be compiled; empty if it can.
std::string why_not(const model &from, place operator_)
{
    const int code = operator_code(&from, operator_), fused = fused_activation(operator_, 0);
    const place inputs = follow(field(operator_, 1)), outputs = follow(field(operator_, 2));
    if (code != ADD && code != MUL && code != RELU && code != FULLY_CONNECTED)
        return "the operator is not Add, Mul, Relu or FullyConnected";
    if (code != RELU && fused != 0 && fused != 1)
        return "the fused activation is not Relu";
    for (uint32_t i = 0; i < count(inputs); i++) {
        const int32_t input = int_in(inputs, i);
        if (input >= 0 && type_of(&from, input) != AP_FLOAT32)
            return "an input is not float32";
        if (input >= 0 && i > 0 && code == FULLY_CONNECTED && !buffer_of(&from, input))
            return i == 1 ? "the weights are not constant" : "the bias is not constant";
        if ((code == ADD || code == MUL) &&
            num_elements(&from, input) != num_elements(&from, int_in(outputs, 0)))
            return "the inputs have different shapes";
    }
    if (type_of(&from, int_in(outputs, 0)) != AP_FLOAT32)
        return "the output is not float32";
    return "";
}

class Program : public armpy::Program {
  public:
    const ap_host &host;
    std::string options;
    ap_span graph;
    ~Program() override { log(host, options, "released"); }
    std::string save() override
    {
        if (fails(options, "save")) throw_one(kind_of(options));
        return std::string(static_cast<const char *>(graph.data), graph.bytes);
    }
    Program(const ap_host &host, const std::string &options, ap_span graph,
            const model &from) : host(host), options(options), graph(graph)
    {
        for (uint32_t i = 0; i < count(from.inputs); i++)
            inputs.push_back(int_in(from.inputs, i));
        for (uint32_t i = 0; i < count(from.outputs); i++)
            outputs.push_back(int_in(from.outputs, i));
        for (uint32_t i = 0; i < count(from.tensors); i++)
            values.push_back(constant(&from, static_cast<int32_t>(i)));
        memory.resize(values.size());
        for (uint32_t i = 0; i < count(from.operators); i++)
            add_node(from, table_in(from.operators, i));
    }

    void execute(const armpy::Execution &execution) override
    {
        if (fails(options, "execute")) throw_one(kind_of(options));
        if (execution.inputs.size != inputs.size() || execution.outputs.size != outputs.size())
            throw armpy::Error(AP_INVALID, "the number of tensors is wrong");
        for (uint64_t i = 0; i < inputs.size(); i++)
            value(inputs[i]) = static_cast<const float *>(execution.inputs[i].data);
        for (const Node &node : nodes) {
            execution.check();
            std::vector<float> &result = memory[static_cast<size_t>(node.result)];
            compute(node, value(node.a), node.b < 0 ? nullptr : value(node.b),
                    node.c < 0 ? nullptr : value(node.c), result);
            value(node.result) = result.data();
        }
        for (uint64_t i = 0; i < outputs.size(); i++)
            std::memcpy(execution.outputs[i].data, value(outputs[i]), execution.outputs[i].bytes);
    }

  private:
    void add_node(const model &from, place operator_)
    {
        const std::string reason = why_not(from, operator_);
        if (!reason.empty())
            throw armpy::Error(AP_UNSUPPORTED, reason);
        const place operands = follow(field(operator_, 1));
        const int code = operator_code(&from, operator_);
        Node node = {code, code == RELU || fused_activation(operator_, 0) == 1, int_in(operands, 0),
                     -1, -1, int_in(follow(field(operator_, 2)), 0), 1, 1};
        if (count(operands) > 1)
            node.b = int_in(operands, 1);
        if (count(operands) > 2)
            node.c = int_in(operands, 2);
        if (code == FULLY_CONNECTED) {
            const auto weights = static_cast<uint32_t>(node.b);
            const place shape = follow(field(table_in(from.tensors, weights), 0));
            node.width = static_cast<uint64_t>(int_in(shape, 0));
            node.depth = static_cast<uint64_t>(int_in(shape, 1));
        }
        memory[static_cast<size_t>(node.result)].resize(num_elements(&from, node.result));
        nodes.push_back(node);
    }

    const float *&value(int32_t tensor) { return values[static_cast<size_t>(tensor)]; }

    std::vector<Node> nodes;
    std::vector<const float *> values; // of each tensor: constants, armpy's arrays, or own memory
    std::vector<std::vector<float>> memory; // by tensor; empty for constants and inputs
    std::vector<int32_t> inputs, outputs;
};

class Device : public armpy::Device {
  public:
    ~Device() override { log(host, options, "closed"); }
    Device(const ap_host &host, std::string_view options) : host(host), options(options)
    {
        if (fails(options, "open")) throw_one(kind_of(options));
    }
    const ap_host &host;
    std::string options;
    std::unique_ptr<armpy::Program> load(ap_span compiled) override
    {
        if (fails(options, "load")) throw_one(kind_of(options));
        auto *first = static_cast<const char *>(compiled.data);
        kept.emplace_back(first, first + compiled.bytes);
        return compile({kept.back().data(), compiled.bytes}, {nullptr, 0});
    }
    std::vector<std::string> kept;

    std::string describe() override
    {
        if (fails(options, "describe")) throw_one(kind_of(options));
        return R"({"name": "Acme Npu", "type": "accelerator", "keeps_nan": true})";
    }

    std::vector<std::string> supported(ap_span graph, uint64_t num_operators) override
    {
        if (fails(options, "supported")) throw_one(kind_of(options));
        const model from = read_model(graph, nullptr, 0);
        std::vector<std::string> reasons;
        for (uint32_t i = 0; i < num_operators; i++)
            reasons.push_back(why_not(from, table_in(from.operators, i)));
        if (fails(options, "short")) reasons.pop_back();
        return reasons;
    }

    std::unique_ptr<armpy::Program> compile(ap_span graph,
                                            armpy::View<ap_span> constants) override
    {
        if (fails(options, "compile")) throw_one(kind_of(options));
        if (fails(options, "nothing")) return nullptr;
        return std::make_unique<Program>(host, options, graph, read_model(graph, constants.data, constants.size));
    }
};

} // namespace

ARMPY_BACKEND(Device, "AcmeNpu", "0.1.0", "Acme")
