# SPDX-License-Identifier: Apache-2.0
"""Trials of programs: the same program on its own engine and on armpy, with what it computed."""
