"""The innermost loop of elementwise kernels."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from armpy_numba_acc.llvm import vectors
from armpy_numba_acc.llvm.bfloat16 import narrowed, widened
from armpy_numba_acc.llvm.linked import call_of
from armpy_numba_acc.llvm.values import Code
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.expressions import expression_named, for_bfloat16

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_F32 = ir.FloatType()

_KINDS: dict[str, tuple[ir.Type, str, ir.Type]] = {
    "f32": (_F32, "", _F32),
    "bf16": (_I16, "bfloat16", _F32),
    "i32": (_I32, "", _I32),
    "i64": (_I64, "", _I64),
    "u8": (_I8, "zext", _I32),
    "i8": (_I8, "sext", _I32),
    "u16": (_I16, "zext", _I32),
    "i16": (_I16, "sext", _I32),
    "bool": (_I8, "", ir.IntType(1)),
    "raw8": (_I8, "", _I8),
    "raw16": (_I16, "", _I16),
}
"""How elements are stored: the type in memory, how it is widened, and to what. What is raw is
handed on as it is."""

SPAN_NAME = "armpy_span"
SPAN_TYPE = ir.FunctionType(ir.VoidType(), (_I64,) * 6)


def size_of(kind: str) -> int:
    """Bytes of a stored element."""
    stored = _KINDS[kind][0]
    return 4 if stored == _F32 else int(stored.width) // 8


def span_definition(isa: Isa, name: str, kinds: Sequence[str], patterns: str) -> str:
    """Write the function that computes neighbouring elements.

    Parameters
    ----------
    isa : Isa
    name : str
        Of an expression.
    kinds : sequence of str
        How each input and the output are stored.
    patterns : str
        A letter per input: ``v`` for an element per output's, ``s`` for one for all.

    Returns
    -------
    str
        In LLVM's language: ``void armpy_span(first, second, third, output, count,
        parameters)``, all of them 64-bit integers: addresses of the inputs (as many as there
        are), of the output, number of elements, address of the parameters, one float32 in
        each 8 bytes.

    Notes
    -----
    The output may be the same memory as an input of elements of the same size. Nothing
    behind the elements is read.
    """
    module = ir.Module()
    function = ir.Function(module, SPAN_TYPE, SPAN_NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    inputs, (output, count, parameters) = function.args[: len(patterns)], function.args[3:]
    expression = expression_named(for_bfloat16(name) if kinds[-1] == "bf16" else name)
    lanes = isa.vector_bytes // max(_width_of(kind) for kind in kinds)
    # Read here, as a store in the loop might write to their memory for all that LLVM knows.
    numbers = [
        vectors.load(builder, parameters, _F32, _I64(2 * number))
        for number in range(expression.num_parameters)
    ]

    singles = [
        vectors.load(builder, address, _KINDS[kind][0]) if pattern == "s" else None
        for address, kind, pattern in zip(inputs, kinds, patterns, strict=False)
    ]

    def compute(lanes, index, mask=None):
        """As many elements as there are lanes, or as a mask says."""
        values = []
        for address, kind, single in zip(inputs, kinds, singles, strict=False):
            if single is not None:
                values.append(_widened(builder, vectors.splat(builder, single, lanes), kind))
            else:
                values.append(load_elements(builder, address, kind, index, lanes, mask))
        values += [vectors.splat(builder, number, lanes) for number in numbers]
        result = expression.compute(*(Code(builder).of(value) for value in values))
        store_elements(builder, result.value, output, kinds[-1], index, mask)

    for_whole_vectors(isa, builder, lanes, count, compute)
    builder.ret_void()
    return str(module)


def for_whole_vectors(isa: Isa, builder, lanes: int, count, compute):
    """Write a loop over vectors of elements, and over what is left.

    Parameters
    ----------
    isa : Isa
    builder : llvmlite.ir.IRBuilder
    lanes : int
        Elements of a vector.
    count
        Number of elements.
    compute : callable
        ``compute(lanes, index, mask)`` writes the code for elements from an index on; the mask
        is None where all are there.
    """
    whole = builder.and_(count, _I64(-lanes))
    with cgutils.for_range_slice(builder, _I64(0), whole, _I64(lanes), inc=True) as (i, _):
        compute(lanes, i, None)
    if isa.vector_bytes == 64:
        with builder.if_then(builder.icmp_signed("<", whole, count)):
            mask = vectors.lane_mask(builder, builder.sub(count, whole), lanes)
            compute(lanes, whole, mask)
    else:  # other processors have no masks, or not for all types
        with cgutils.for_range_slice(builder, whole, count, _I64(1), inc=True) as (i, _):
            compute(1, i, None)


@intrinsic
def call_span(typingctx, first, second, third, output, count, parameters):
    """Call the function that `span_definition` writes; whoever calls it links that."""
    return call_of(SPAN_NAME, SPAN_TYPE)


def _width_of(kind: str) -> int:
    """Bytes of an element in a register; bits are kept as narrow as the others allow."""
    stored, widening, _ = _KINDS[kind]
    return 4 if widening or stored == _F32 else int(stored.width) // 8


def load_elements(builder, address, kind, index, lanes, mask=None):
    """Elements as expressions get them.

    Parameters
    ----------
    kind : str
        How they are stored.
    index
        Of the first one behind the address.
    mask : optional
        Those that are there.
    """
    stored = _KINDS[kind][0]
    place = builder.ptrtoint(vectors.at(builder, address, stored, index), _I64)
    vector = ir.VectorType(stored, lanes)
    if mask is None:
        return _widened(builder, vectors.load(builder, place, vector), kind)
    return _widened(builder, vectors.masked_load(builder, place, vector, mask), kind)


def store_elements(builder, value, address, kind, index, mask=None):
    """Write elements as expressions give them; parameters as for `load_elements`."""
    stored = _KINDS[kind][0]
    if kind == "bf16":
        value = narrowed(builder, value)
    elif value.type.element != stored:
        change = builder.zext if value.type.element.width == 1 else builder.trunc
        value = change(value, ir.VectorType(stored, value.type.count))
    place = builder.ptrtoint(vectors.at(builder, address, stored, index), _I64)
    if mask is None:
        vectors.store(builder, value, place)
    else:
        vectors.masked_store(builder, value, place, mask)


def _widened(builder, value, kind):
    """Stored elements as expressions get them."""
    _, widening, element = _KINDS[kind]
    if kind == "bool":
        return builder.icmp_unsigned("!=", value, ir.Constant(value.type, None))
    if kind == "bf16":
        return widened(builder, value)
    if widening:
        return getattr(builder, widening)(value, ir.VectorType(element, value.type.count))
    return value
