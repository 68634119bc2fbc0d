# SPDX-License-Identifier: Apache-2.0
"""``armpy conformance``: a backend tried out case by case."""
