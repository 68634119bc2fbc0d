# SPDX-License-Identifier: Apache-2.0
"""Measuring: latency, ratios of things that took turns, and the engines beside armpy."""
