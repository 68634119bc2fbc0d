/* A TensorFlow Lite delegate for the tests: it takes additions of float32 tensors of one shape.

   The structures are the beginnings of those in TensorFlow Lite's c/common.h, with the fields that
   are used here in their places. With the option "fail", the delegate refuses to be made. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int size; int data[]; } IntArray;
typedef struct Context Context;
typedef struct Delegate Delegate;

typedef struct {
    int type; /* 1 is float32 */
    float *data;
    IntArray *dims;
    struct { float scale; int32_t zero_point; } params;
    int allocation_type;
    size_t bytes;
    const void *allocation;
    const char *name;
    Delegate *delegate;
    int buffer_handle;
    bool data_is_stale, is_variable;
    struct { int type; void *params; } quantization;
    void *sparsity;
    const IntArray *dims_signature;
} Tensor;

typedef struct {
    IntArray *inputs, *outputs, *intermediates, *temporaries;
    void *user_data, *builtin_data;
    const void *custom_initial_data;
    int custom_initial_data_size;
    Delegate *delegate;
    bool might_have_side_effect;
} Node;

typedef struct {
    void *(*init)(Context *, const char *buffer, size_t length);
    void (*free)(Context *, void *buffer);
    int (*prepare)(Context *, Node *);
    int (*invoke)(Context *, Node *);
    const char *(*profiling_string)(const Context *, const Node *);
    int32_t builtin_code; /* 0 is ADD, 32 is what belongs to a delegate */
    const char *custom_name;
    int version;
    void *registration_external, *async_kernel;
    uint64_t inplace_operator;
} Registration;

struct Context {
    size_t tensors_size;
    int (*get_execution_plan)(Context *, IntArray **);
    Tensor *tensors;
    void *impl;
    int (*resize_tensor)(Context *, Tensor *, IntArray *);
    void (*report_error)(Context *, const char *, ...);
    int (*add_tensors)(Context *, int, int *);
    int (*get_node_and_registration)(Context *, int, Node **, Registration **);
    int (*replace_nodes)(Context *, Registration, const IntArray *, Delegate *);
};

struct Delegate {
    void *data;
    int (*prepare)(Context *, Delegate *);
    int (*copy_from_buffer_handle)(Context *, Delegate *, int, Tensor *);
    int (*copy_to_buffer_handle)(Context *, Delegate *, int, Tensor *);
    void (*free_buffer_handle)(Context *, Delegate *, int *);
    int64_t flags;
    void *opaque_delegate_builder;
};

typedef struct {
    Delegate *delegate;
    IntArray *nodes_to_replace, *input_tensors, *output_tensors;
} Params;

typedef struct { int left, right, sum; } Addition;
typedef struct { int count; Addition additions[]; } Kernel;

static bool same_shape(const Tensor *a, const Tensor *b) {
    return a->dims->size == b->dims->size &&
           memcmp(a->dims->data, b->dims->data, sizeof(int) * (size_t)a->dims->size) == 0;
}

static bool is_taken(Context *context, const Node *node, const Registration *registration) {
    if (registration->builtin_code != 0) return false;
    const Tensor *left = &context->tensors[node->inputs->data[0]];
    const Tensor *right = &context->tensors[node->inputs->data[1]];
    return left->type == 1 && same_shape(left, right);
}

static void *init(Context *context, const char *buffer, size_t length) {
    (void)length;
    const Params *params = (const Params *)buffer;
    const IntArray *nodes = params->nodes_to_replace;
    Kernel *kernel = malloc(sizeof(Kernel) + sizeof(Addition) * (size_t)nodes->size);
    kernel->count = nodes->size;
    for (int i = 0; i < nodes->size; i++) {
        Node *node;
        Registration *registration;
        context->get_node_and_registration(context, nodes->data[i], &node, &registration);
        Addition addition = {node->inputs->data[0], node->inputs->data[1], node->outputs->data[0]};
        kernel->additions[i] = addition;
    }
    return kernel;
}

static void release(Context *context, void *buffer) {
    (void)context;
    free(buffer);
}

static int prepare_kernel(Context *context, Node *node) {
    (void)context, (void)node;
    return 0;
}

static int invoke(Context *context, Node *node) {
    const Kernel *kernel = node->user_data;
    for (int i = 0; i < kernel->count; i++) {
        const Addition *addition = &kernel->additions[i];
        const Tensor *left = &context->tensors[addition->left];
        const Tensor *right = &context->tensors[addition->right];
        Tensor *sum = &context->tensors[addition->sum];
        for (size_t j = 0; j < sum->bytes / sizeof(float); j++)
            sum->data[j] = left->data[j] + right->data[j];
    }
    return 0;
}

static int prepare(Context *context, Delegate *delegate) {
    IntArray *plan;
    if (context->get_execution_plan(context, &plan) != 0) return 1;
    IntArray *taken = malloc(sizeof(IntArray) + sizeof(int) * (size_t)plan->size);
    taken->size = 0;
    for (int i = 0; i < plan->size; i++) {
        Node *node;
        Registration *registration;
        context->get_node_and_registration(context, plan->data[i], &node, &registration);
        if (is_taken(context, node, registration)) taken->data[taken->size++] = plan->data[i];
    }
    Registration registration = {init, release, prepare_kernel, invoke, NULL, 32, "AddDelegate", 1,
                                 NULL, NULL, 0};
    int status = context->replace_nodes(context, registration, taken, delegate);
    free(taken);
    return status;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t count,
                                        void (*report_error)(const char *)) {
    (void)values;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(keys[i], "fail") == 0) {
            report_error("the device is asleep");
            return NULL;
        }
    }
    Delegate *delegate = calloc(1, sizeof(Delegate));
    delegate->prepare = prepare;
    return delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) { free(delegate); }
