# SPDX-License-Identifier: Apache-2.0
"""Operands for conformance cases: templates, and instances of them made of chance."""
