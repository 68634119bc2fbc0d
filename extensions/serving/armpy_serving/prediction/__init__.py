# SPDX-License-Identifier: Apache-2.0
"""Prediction: tables of rows through models, in whatever process an engine has started."""
