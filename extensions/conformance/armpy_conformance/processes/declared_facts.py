"""What a backend says of itself, as text that two processes can compare."""

from __future__ import annotations

import re
from collections.abc import Mapping

from armpy.backend import IBackendInternal

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{8,}|\b1[34]\d{13}\b")
"""An object's address in its text, which differs from process to process."""


def facts_of(backend: IBackendInternal) -> Mapping[str, str]:
    """A backend's members that describe it, as text."""
    # Texts, such as a measured speed, are for people.
    capabilities = sorted(
        (str(name), value)
        for name, value in backend.get_capabilities().items()
        if not isinstance(value, str)
    )
    return {
        "get_id": repr(backend.get_id()),
        "get_api_version": repr(backend.get_api_version()),
        "version": repr(backend.version),
        "get_devices": repr(tuple(backend.get_devices())),
        "options": repr(tuple(backend.options)),
        "get_capabilities": repr(capabilities),
        "get_handle_factory_preferences": repr(list(backend.get_handle_factory_preferences())),
        "supported_extensions": repr(tuple(backend.supported_extensions)),
    }


def has_address(text: str) -> bool:
    """Return whether a text has an object's address in it."""
    return bool(_ADDRESS.search(text))
