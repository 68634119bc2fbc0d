"""The page about ONNX models, from the operators that the ONNX front-end knows.

`python -m lab.website.reference.onnx` runs ONNX's test of each operator with every element type
of its definition, and keeps the types with which armpy runs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

import onnx

from armpy_onnx.messages.checking import WITHOUT_SCHEMA
from armpy_onnx.operators import converted_kinds, operator_of
from armpy_onnx.refused import REFUSED
from armpy_onnx.structures import structure_of
from extensions.onnx.tests.onnx_types import definitions, facts, probe

from .markdown import in_groups

HEAD = """# ONNX models

`armpy.load("model.onnx")`, `armpy run` and `armpy inspect` take ONNX files after `pip install
./extensions/onnx` in a checkout. A trust file that lists plugins has to list `onnx`. See also
[metadata](../how_to/metadata.md).

## What is supported

- **Opsets**: 1 to OPSET, the newest of the `onnx` package that this page was made with; a newer
  package adds its own. A file with a newer `ir_version` loads if its opsets are known.
- **Files**: those that ONNX Runtime runs; [which deviations are tolerated, and what is
  refused](onnx_files.md).
- **Operators**: as listed below. An operator without a converter is replaced by the function that
  defines it in ONNX. Functions of the file are expanded, each in the opsets that it imports.
- **Without a standard, as in ONNX Runtime**: `SimplifiedLayerNormalization`, `LayerNormalization`
  before 17, `MeanVarianceNormalization` before 9, `ThresholdedRelu` before 10, `Affine`, `Crop`,
  `DynamicSlice`, `ImageScaler`, `ParametricSoftplus`, `Scale`, `ScaledTanh`.
- **Limits**: functions and loops may expand to 8,192 + 16 x (nodes in the file) nodes; functions
  and graphs may be 32 deep.
- **Open dimensions**: with a name, no size or a negative size. Inputs that share a name (`batch`)
  must agree in a call, unless `front_end_options={"tie_dimensions": False}` is given, as in ONNX
  Runtime; a placeholder without a letter, such as `?`, is not a name.
- **Small types**: bfloat16, float8, 4 and 2 bits: arrays of `ml_dtypes`.
- **Initializers that are inputs**: constants; they cannot be given in a call.
- **If**: if the condition is constant or follows from shapes, only the chosen branch is kept.
- **Loop, Scan**: short loops of known length are unrolled; others become a `While` layer. Tensors
  and sequences that a loop of known length only appends to are collected as scan outputs. Of scan
  outputs, one size may follow from values.
- **Time limit**: each outermost If or loop of a call, with all control flow inside it, may take
  2 s, else `ExecutionTimeoutError`; `RuntimeOptions(loop_timeout_s=...)` sets it (None: no limit).
- **Sequences, optionals**: lengths follow from the file, shapes, or integers of a call; see
  [inputs](#sequences-and-optionals-as-inputs).
- **External data**: must lie in the model's folder, or in that of the file that the model's path
  links to (as in the cache of the Hugging Face hub), in regular files or links to files there. For
  data elsewhere and models given as bytes, name the folder, which takes the place of these:
  `front_end_options={"external_data": "weights"}` (`--front-end-option external_data=weights`); a
  relative path is below the current folder. The files are mapped into memory, not copied.
- **Quantised models**: pairs of QuantizeLinear and DequantizeLinear, and the QOperator form.
- **`ai.onnx.ml`**: trees (on CpuRef), linear models, support vector machines, features. A `ZipMap`
  gives the tensor of its values; `model.metadata.outputs[name].labels` has the keys.
- **Strings**: on CpuRef, as `str` objects. Case follows Unicode, whatever `locale` says.
  RegexFullMatch and Tokenizer take RE2's syntax, and need the package google-re2 (`armpy[re2]`);
  the time of the first grows linearly with a string's length, of the second at most with its
  square.
- **Not supported**: other maps, training, custom operators of other domains
  without a function body, models that ONNX Runtime saved at ORT_ENABLE_ALL (ORT_ENABLE_EXTENDED
  works).

The first call compiles for its shapes, which may take seconds, unless `model.prepare({"x": (8, 3,
224, 224)})` was called. `front_end_options={"dimensions": {"batch": 1}}` (`--front-end-option
'dimensions={"batch": 1}'`) gives named dimensions sizes at load.

One error lists all nodes that cannot be converted with reasons, also inside graphs and functions
(`UnsupportedOperatorError.operators` counts missing operators).

## Sequences and optionals as inputs

`structures` says what they hold: a sequence's length; None (JSON: null) for an empty optional, True
for one with a tensor. A sequence `x` becomes the inputs `x[0]`, `x[1]` ...; as an output, `x` is
its length. `armpy_onnx.backend` takes and returns whole ones.

```text
model = armpy.load("join.onnx", front_end_options={"structures": {"x": 2}})
model.run({"x[0]": first, "x[1]": second})
```

## ONNX's own interface

`armpy_onnx.backend` is a backend in ONNX's sense (`prepare`, `run_model`). ONNX's own tests run
through it in `extensions/onnx/tests/test_backend_suite.py`; `onnx_skips.py` beside it has those
that do not pass, with reasons.

## Operators

- **In brackets**: the opsets in which ONNX adds or changes the operator. Each is supported.
- **Element types**: those of ONNX's newest definition with which CpuRef runs ONNX's test of the
  operator. Operators without types have fixed ones, or are not defined by ONNX.
- `T`, `T1` ...: type variables of ONNX's definition.
- NumbaAcc runs fewer types; CpuRef runs the layers that it refuses.

GROUPS

"""

GROUPS: Mapping[str, Sequence[str]] = {
    "floats": ("bfloat16", "float16", "float32", "float64"),
    "integers": (
        *("int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
    ),
    "small": (
        *("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0"),
        *("float4e2m1", "int4", "uint4", "int2", "uint2"),
    ),
}
"""Words for types that are often allowed together."""

_NAMES = {"float": "float32", "double": "float64"}
"""ONNX's names of types that have clearer ones."""


def page() -> str:
    """The page's text."""
    head = HEAD.replace("OPSET", str(onnx.defs.onnx_opset_version()))
    words = "\n".join(f"- **{name}**: {', '.join(types)}" for name, types in GROUPS.items())
    sections: dict[str, dict[str, list[str]]] = {}
    for kind in _kinds():
        domain, _, name = kind.rpartition(".")
        title = f"{domain or 'ONNX'}, {_how(kind)}"
        sections.setdefault(title, {}).setdefault(_types(kind), []).append(name + _opsets(kind))
    lines = [line for title, groups in sections.items() for line in _section(title, groups)]
    lines += ["### com.microsoft, not supported\n"]
    lines += [f"- {kind.rpartition('.')[2]}: {reason}" for kind, reason in REFUSED.items()]
    return head.replace("GROUPS", words) + "\n".join((*lines, ""))


def _section(title: str, groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Lines of the operators of one domain: those with the same types together."""
    yield f"### {title}\n"
    for types, names in groups.items():
        listed = ", ".join(names)
        yield f"- **{listed}**: {types}" if types else f"- {listed}"
    yield ""


def _kinds() -> list[str]:
    """Operators of ONNX's domain, then those of other domains that are converted."""
    schemas = onnx.defs.get_all_schemas()
    names = {schema.name for schema in schemas if schema.domain == "" and not schema.deprecated}
    names |= set(WITHOUT_SCHEMA) | {kind for kind in converted_kinds() if "." not in kind}
    return [*sorted(names), *sorted(kind for kind in converted_kinds() if "." in kind)]


def _how(kind: str) -> str:
    """How an operator is supported."""
    if operator_of(kind) is not None:
        return "converted"
    if structure_of(kind) is not None:
        return "replaced at load, or run as control flow"
    newest = definitions(kind)[-1]
    return "replaced by ONNX's function" if newest.all_function_opset_versions else "not supported"


def _opsets(kind: str) -> str:
    """The versions of an operator's definitions, in brackets; empty if ONNX does not define it."""
    versions = "/".join(str(schema.since_version) for schema in definitions(kind))
    return f" ({versions})" if versions else ""


def _types(kind: str) -> str:
    """The types of an operator, by type variable if they differ; empty if they were not tried."""
    if operator_of(kind) is None and structure_of(kind) is not None:
        return ""
    variables: dict[str, list[str]] = {}
    for variable, names in facts().get(kind, {}).items():
        types = "; ".join(filter(None, map(", ".join, _grouped(names))))
        variables.setdefault(types, []).append(f"`{variable}`")
    if len(variables) == 1:
        return next(iter(variables))
    return "; ".join(f"{', '.join(names)} {types}" for types, names in variables.items())


def _grouped(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Words for groups of types, and the types that are in none."""
    words, rest = in_groups([_NAMES.get(name, name) for name in names], GROUPS)
    yield words
    yield sorted(rest)


if __name__ == "__main__":
    argparse.ArgumentParser(description="Ask ONNX Runtime which forms it runs.").parse_args()
    probe([kind for kind in _kinds() if definitions(kind)])
