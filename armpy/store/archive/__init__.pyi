# SPDX-License-Identifier: Apache-2.0
from armpy.store.archive import signing as signing

__all__: list[str]
