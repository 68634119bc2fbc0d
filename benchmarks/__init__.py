# SPDX-License-Identifier: Apache-2.0
"""Measurements of armpy; nothing here is a test."""
