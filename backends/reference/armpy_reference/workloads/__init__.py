# SPDX-License-Identifier: Apache-2.0
"""CpuRef's workloads, one module per operation, named after it in snake case."""
