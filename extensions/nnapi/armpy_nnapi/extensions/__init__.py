# SPDX-License-Identifier: Apache-2.0
"""Vendor extensions: their types and operations, permissions, and validation."""
