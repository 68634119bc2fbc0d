# SPDX-License-Identifier: Apache-2.0
"""``armpy benchmark``: models, backends and options measured beside each other."""
