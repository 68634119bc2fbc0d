# SPDX-License-Identifier: Apache-2.0
"""Memory made from descriptions: roles, contents, and use by executions."""
