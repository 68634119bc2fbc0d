# SPDX-License-Identifier: Apache-2.0
"""``armpy new-backend``: writes the project of a new backend."""
