# SPDX-License-Identifier: Apache-2.0
"""Options of backends, of optimising and of runtimes."""
