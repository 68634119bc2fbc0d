# SPDX-License-Identifier: Apache-2.0
"""Executions of a compilation: arguments, bursts, events and fences."""
