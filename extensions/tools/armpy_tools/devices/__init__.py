"""Figures of devices that were measured on this machine, and what layers cost by them."""
