# SPDX-License-Identifier: Apache-2.0
"""``armpy doctor``: faults of backends, plugins and files, and their remedies."""
