from armpy.core.strings import (
    as_strings as as_strings,
    is_text as is_text,
    packed as packed,
    unpacked as unpacked,
)
from armpy.core.symbolic import Size as Size
from dataclasses import (
    FrozenInstanceError as FrozenInstanceError,
    asdict as asdict,
    field as field,
    fields as fields,
    make_dataclass as make_dataclass,
)
from logging import (
    DEBUG as DEBUG,
    ERROR as ERROR,
    INFO as INFO,
    WARNING as WARNING,
    getLogger as getLogger,
)

__all__: list[str]
