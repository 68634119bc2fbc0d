"""Recurrent networks: LSTMs in float and in integers, RNNs, and the operands of a cell."""
