"""Writes docs/reference/onnx.md from the operators that the ONNX front-end knows, or checks it.

Usage::

    python scripts/document_onnx.py [--check]
"""

from __future__ import annotations

import sys

import onnx
from documenting import write_or_check

from armpy_onnx.operators import converted_kinds, operator_of
from armpy_onnx.reading import WITHOUT_SCHEMA
from armpy_onnx.structures import structure_of

HEAD = """# ONNX models

Made by `scripts/document_onnx.py`; do not edit.

`armpy.load("model.onnx")`, `armpy run` and `armpy inspect` take ONNX files as they take others.
[Metadata](../how_to/metadata.md) tells what a file says of itself.
The extension `armpy-onnx` reads them, with the `onnx` package: `pip install armpy-onnx`, or
`pip install ./extensions/onnx` from a checkout. Without it, the error says so. A trust file that
lists plugins has to list `onnx`.

## What is supported

- **Operator sets** 1 to the newest of the package. A file may be of a newer form (`ir_version`)
  than the package knows if its operator sets are known.
- **Operators** as in the table below. Where armpy has no converter of its own, the function by
  which ONNX defines the operator is written out, also where it depends on the types of the
  inputs. Functions of the file are written out where they are called, in the operator sets that
  they import.
- **Operators without a standard** that ONNX Runtime takes in ONNX's own domain:
  `SimplifiedLayerNormalization`,
  `LayerNormalization` before operator set 17, `MeanVarianceNormalization` before 9,
  `ThresholdedRelu` before 10, and `Affine`, `Crop`, `DynamicSlice`, `ImageScaler`,
  `ParametricSoftplus`, `Scale` and `ScaledTanh` of ONNX's first years.
- **Work** follows the size of the file: functions and loops may become 8,192 nodes and 16 for each
  node of the file, counted before the first is written out; functions and graphs may lie 32 deep.
- **Shapes**: dimensions may be open: those with a name, without a size, or with a negative size.
  Inputs that share a dimension's name (`batch`) must agree in a call; a placeholder without a
  letter, such as `?`, is not a name. `model.outputs` has the shapes that the model declares for its
  outputs, as far as inference knows no better. The first call compiles for the shapes that it
  brings, which may take many seconds;
  `model.prepare({"x": (8, 3, 224, 224)})` does that beforehand.
  `front_end_options={"dimensions": '{"batch": 1}'}` gives names sizes when the model is loaded
  (`--front-end-option 'dimensions={"batch": 1}'` on the command line), so that loading compiles and
  `armpy inspect` shows the placement.
- **bfloat16, float8, 4-bit and 2-bit types**: inputs and outputs are arrays of `ml_dtypes`, which
  `onnx` installs.
- **Inputs that are initializers**, too, are constants, and cannot be given in a call.
- **If, Loop, Scan**: a condition that is constant, or follows from shapes, leaves one branch.
  Loops of a known number of turns are written out if they are short; others run as While.
- **Sequences and optionals** are part of a network's structure: their lengths must follow from
  the file, from shapes, or from integers that a call gives (then what reads them is prepared once
  per value). An input that is a sequence `x` becomes inputs `x[0]`, `x[1]` ...; the option
  `structures='{"x": 2}'` says how many (null: an empty optional; true: one with a tensor). As an
  output, `x` is its length. Loops that carry sequences are written out. `armpy_onnx.backend`,
  the interface of the package `onnx`, takes and returns whole sequences and optionals; `armpy.load`
  does not.
- **Elements beside the model** (external data) are mapped, from regular files in the model's
  folder only, links followed; a size that does not fit is an error. Such models are loaded by
  path.
- **Quantised models**: pairs of QuantizeLinear and DequantizeLinear, and the QOperator form.
- **Classical models** (`ai.onnx.ml`): ensembles of trees, linear models, support vector
  machines, preparation of features. Trees run on CpuRef. Labels of classes are numbers or
  strings, as in the file. The list of maps that a `ZipMap` makes is given as the tensor of its
  values, columns in the order of the keys, which `model.metadata.outputs[name].labels` has.
- **Strings** run on CpuRef, as arrays of `str` objects. Letters change case by Unicode's rules,
  whatever the attribute `locale` of StringNormalizer says. RegexFullMatch takes RE2's
  syntax without classes of Unicode, in time that grows with the strings' length.

What cannot be converted gives one error that lists every such node with its reason: operators
that are missing with their counts (`UnsupportedOperatorError.operators`), also inside of graphs
and functions, then other nodes. What depends on shapes is found when these are known.

Not supported: other maps, sparse initializers, training, custom operators of
other domains without a function body. Of models that ONNX Runtime has optimised and saved, those
of the level ORT_ENABLE_EXTENDED are supported; at ORT_ENABLE_ALL it writes layouts of a processor.

`armpy diff MODEL.onnx MODEL.tflite` runs two files of one network and names the layer behind which
they no longer compute the same numbers, whatever their layouts.

## ONNX's own interface

`armpy_onnx.backend` is a backend in ONNX's sense (`prepare`, `run_model`); ONNX's own tests
run through it in `extensions/onnx/tests/test_backend_suite.py`. What does not pass stands with its
reason in `tests/support/onnx_skips.py`.

## Operators

*function* means that ONNX's own definition is written out.
"""


def main() -> int:
    """Write the page, or compare it."""
    rows = ["| operator | how |", "|---|---|", *map(_row, _kinds())]
    page = HEAD.rstrip() + "\n\n" + "\n".join(rows) + "\n"
    description = __doc__.splitlines()[0] if __doc__ else ""
    return write_or_check("onnx.md", page, "document_onnx.py", description)


def _kinds() -> list[str]:
    """Operators of ONNX's domain, then those of other domains that are converted."""
    schemas = onnx.defs.get_all_schemas()
    names = {schema.name for schema in schemas if schema.domain == "" and not schema.deprecated}
    names |= set(WITHOUT_SCHEMA)
    return [*sorted(names), *sorted(kind for kind in converted_kinds() if "." in kind)]


def _row(kind: str) -> str:
    """One row of the table."""
    if operator_of(kind) is not None:
        how = "converted"
    elif structure_of(kind) is not None:
        how = "resolved, or run by the core"
    else:
        schema = onnx.defs.get_schema(kind, onnx.defs.onnx_opset_version(), "")
        how = "function" if schema.all_function_opset_versions else "not supported"
    return f"| {kind} | {how} |"


if __name__ == "__main__":
    sys.exit(main())
