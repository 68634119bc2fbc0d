# SPDX-License-Identifier: Apache-2.0
"""Backends that run whole subgraphs through another runtime, an engine."""
