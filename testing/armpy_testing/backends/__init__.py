# SPDX-License-Identifier: Apache-2.0
"""Backends for tests: scripted, faulty, slow, with memory of their own; and how they are found."""
