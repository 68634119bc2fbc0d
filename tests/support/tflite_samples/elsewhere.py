"""Operators whose kinds other tests hold against LiteRT, and those that armpy leaves out."""

from __future__ import annotations

from collections.abc import Mapping

_LSTM = ("FLOAT32", "FLOAT32 of INT8", "INT8 quantised", "INT8 quantised of INT16 cell")
HELD_ELSEWHERE: Mapping[str, tuple[tuple[str, ...], str]] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": (("FLOAT32", "FLOAT32 of INT8"), "test_recurrent_networks.py"),
    "BIDIRECTIONAL_SEQUENCE_RNN": (("FLOAT32", "FLOAT32 of INT8"), "test_recurrent_networks.py"),
    "LSTM": (("FLOAT32", "FLOAT32 of INT8"), "test_recurrent.py"),
    "RNN": (("FLOAT32", "FLOAT32 of INT8"), "test_recurrent.py"),
    "SVDF": (("FLOAT32", "FLOAT32 of INT8", "INT8 quantised"), "test_recurrent.py"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (_LSTM, "test_recurrent_networks.py"),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (("FLOAT32", "FLOAT32 of INT8"), "test_recurrent.py"),
    "LOCAL_RESPONSE_NORMALIZATION": (("FLOAT32",), "test_operations.py"),
    "IF": (("any",), "test_control_flow.py"),
    "WHILE": (("any",), "test_control_flow.py"),
    "ASSIGN_VARIABLE": (("any",), "test_signatures.py"),
    "CALL_ONCE": (("any",), "test_signatures.py"),
    "READ_VARIABLE": (("any",), "test_signatures.py"),
    "VAR_HANDLE": (("any",), "test_signatures.py"),
    "HASHTABLE": (("STRING to INT64", "INT64 to STRING"), ""),
    "HASHTABLE_FIND": (("STRING to INT64", "INT64 to STRING"), ""),
    "HASHTABLE_IMPORT": (("STRING to INT64", "INT64 to STRING"), ""),
    "HASHTABLE_SIZE": (("STRING to INT64", "INT64 to STRING"), ""),
    "SKIP_GRAM": (("STRING",), ""),
}
"""Kinds and the test that compares them, by operator."""

NO_KERNEL = "LiteRT has no kernel for it"

NOT_YET = "not converted yet"

_TEXT = "text is no tensor of armpy's: look words up before the model is called"
REASONS: Mapping[str, str] = {
    "HASHTABLE": _TEXT,
    "HASHTABLE_FIND": _TEXT,
    "HASHTABLE_IMPORT": _TEXT,
    "HASHTABLE_SIZE": _TEXT,
    "SKIP_GRAM": _TEXT,
}
"""Why armpy does not have an operator that LiteRT runs."""
