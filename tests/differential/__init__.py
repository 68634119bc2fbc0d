# SPDX-License-Identifier: Apache-2.0
"""Tests that compare armpy with another engine."""
