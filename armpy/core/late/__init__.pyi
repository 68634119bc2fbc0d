from dataclasses import (
    FrozenInstanceError as FrozenInstanceError,
    field as field,
    make_dataclass as make_dataclass,
    replace as replace,
)
from logging import getLogger as getLogger

__all__: list[str]
