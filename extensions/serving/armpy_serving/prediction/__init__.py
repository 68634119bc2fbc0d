"""Prediction: tables of rows through models, in whatever process an engine has started."""
