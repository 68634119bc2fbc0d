# SPDX-License-Identifier: Apache-2.0
"""``armpy profile`` and ``armpy run --profile``: where the time went."""
