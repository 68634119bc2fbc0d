/* A backend in a shared library: the three entry points and the kernel are compiled.

   Build it with `python build.py DIRECTORY`. The rest of the backend is the vendor's common code in
   Python, which this module imports from beside itself. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *multiply(PyObject *module, PyObject *arguments) {
    PyObject *result = NULL;
    Py_buffer lhs, rhs, out;
    if (!PyArg_ParseTuple(arguments, "y*y*w*", &lhs, &rhs, &out)) return NULL;
    if (lhs.len == out.len && rhs.len == out.len) {
        const float *a = lhs.buf, *b = rhs.buf;
        float *products = out.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < out.len / (Py_ssize_t)sizeof(float); i++)
            products[i] = a[i] * b[i];
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    } else {
        PyErr_SetString(PyExc_ValueError, "the tensors have different sizes");
    }
    PyBuffer_Release(&lhs);
    PyBuffer_Release(&rhs);
    PyBuffer_Release(&out);
    return result;
}

/* First entry point: the backend's name. */
static PyObject *get_backend_id(PyObject *module, PyObject *unused) {
    return PyUnicode_FromString("ExampleCompiled");
}

/* Second entry point: the version of armpy's contract that this was written for. */
static PyObject *get_version(PyObject *module, PyObject *unused) {
    return Py_BuildValue("(ii)", 2, 0);
}

/* Third entry point: from .Example_common import ...; ElementwiseBackend(id, operation, kernel). */
static PyObject *backend_factory(PyObject *module, PyObject *unused) {
    PyObject *common = PyImport_ImportModuleLevel("Example_common", PyModule_GetDict(module), NULL, NULL, 1);
    if (!common) return NULL;
    PyObject *operation = PyObject_GetAttrString(common, "MULTIPLICATION");
    PyObject *kernel = PyObject_GetAttrString(module, "multiply");
    PyObject *backend = NULL;
    if (operation && kernel)
        backend = PyObject_CallMethod(common, "ElementwiseBackend", "sOO", "ExampleCompiled", operation, kernel);
    Py_XDECREF(kernel);
    Py_XDECREF(operation);
    Py_DECREF(common);
    return backend;
}

static PyMethodDef functions[] = {
    {"get_backend_id", get_backend_id, METH_NOARGS, "The backend's name."},
    {"get_version", get_version, METH_NOARGS, "The version of the contract."},
    {"backend_factory", backend_factory, METH_NOARGS, "Make the backend."},
    {"multiply", multiply, METH_VARARGS, "Multiply float32 arrays of one size."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* else a free-threaded Python turns its lock on again */
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "Example_Compiled_backend",
    .m_doc = "A backend whose kernel is compiled.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_Example_Compiled_backend(void) {
    return PyModuleDef_Init(&definition);
}
