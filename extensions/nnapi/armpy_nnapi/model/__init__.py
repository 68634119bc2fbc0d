# SPDX-License-Identifier: Apache-2.0
"""Models as applications build them, operand by operand, or with a function per operation."""
