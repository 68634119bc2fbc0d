# SPDX-License-Identifier: Apache-2.0
"""``armpy diff``: finds the first layer that two backends, or two files, compute differently."""
