# SPDX-License-Identifier: Apache-2.0
"""``armpy cache``: entries on disk, checked and cleared."""
