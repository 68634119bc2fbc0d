# SPDX-License-Identifier: Apache-2.0
"""``armpy check``: says whether a compiled model fits this machine."""
