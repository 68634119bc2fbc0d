# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks: LSTMs in float and in integers, RNNs, and the operands of a cell."""
