# SPDX-License-Identifier: Apache-2.0
"""The contract's memory: managers, tensor handles and their factories, strategies, imports."""
