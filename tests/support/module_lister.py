"""Lists the modules that a worker has imported; imports none itself."""

from __future__ import annotations

import sys


class ModuleLister:
    """Answers whatever is asked with the names of all modules."""

    def answer(self, request: object, attachments: object) -> dict[str, list[str]]:
        return {"modules": sorted(sys.modules)}
