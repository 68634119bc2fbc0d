# SPDX-License-Identifier: Apache-2.0
"""Arm NN's command ExecuteNetwork, run by armpy."""
