# SPDX-License-Identifier: Apache-2.0
"""Placement by cost: where layers run cheapest, copies between backends included."""
