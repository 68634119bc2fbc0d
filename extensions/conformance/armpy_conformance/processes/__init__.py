# SPDX-License-Identifier: Apache-2.0
"""What a backend shares with the process that it is in, and its life in one of its own."""
