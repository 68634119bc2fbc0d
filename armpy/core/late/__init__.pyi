from dataclasses import (
    FrozenInstanceError as FrozenInstanceError,
    asdict as asdict,
    field as field,
    fields as fields,
    make_dataclass as make_dataclass,
)
from logging import getLogger as getLogger

__all__: list[str]
