# SPDX-License-Identifier: Apache-2.0
"""Optimised networks as files."""
