"""Arm NN's command ExecuteNetwork, run by armpy."""
