"""Formats of elements in memory, as kernels receive them."""

from __future__ import annotations

FORMAT_BYTES = {
    **dict.fromkeys(("u8", "i8", "bool", "raw8"), 1),
    **dict.fromkeys(("u16", "i16", "raw16", "bf16"), 2),
    **dict.fromkeys(("f32", "i32", "u32"), 4),
    **dict.fromkeys(("i64", "u64"), 8),
}
"""Bytes of an element. Raw elements are only moved; ``u16`` is also float16."""
