# SPDX-License-Identifier: Apache-2.0
"""Suites of other projects, run on armpy and on the engine that they were written for."""
