"""Operators whose kinds other tests hold against LiteRT, and those that armpy leaves out."""

from __future__ import annotations

from collections.abc import Mapping

_LSTM = ("FLOAT32", "FLOAT32 of INT8", "INT8 quantised", "INT8 quantised of INT16 cell")
HELD_ELSEWHERE: Mapping[str, tuple[tuple[str, ...], str]] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": (("FLOAT32", "FLOAT32 of INT8"), "test_recurrent_networks.py"),
    "BIDIRECTIONAL_SEQUENCE_RNN": (("FLOAT32", "FLOAT32 of INT8"), "test_recurrent_networks.py"),
    "LSTM": (("FLOAT32", "FLOAT32 of INT8"), "test_recurrent_networks.py"),
    "RNN": (("FLOAT32", "FLOAT32 of INT8"), "test_recurrent_networks.py"),
    "SVDF": (("FLOAT32", "FLOAT32 of INT8", "INT8 quantised"), "test_recurrent.py"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (_LSTM, "test_recurrent.py"),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (
        ("FLOAT32", "FLOAT32 of INT8"),
        "test_recurrent_networks.py",
    ),
    "LOCAL_RESPONSE_NORMALIZATION": (("FLOAT32",), "test_operations.py"),
    "IF": (("any",), "test_control_flow.py"),
    "WHILE": (("any",), "test_control_flow.py"),
    "ASSIGN_VARIABLE": (("any",), "test_signatures.py"),
    "CALL_ONCE": (("any",), "test_signatures.py"),
    "READ_VARIABLE": (("any",), "test_signatures.py"),
    "VAR_HANDLE": (("any",), "test_signatures.py"),
    "HASHTABLE": (("STRING to INT64", "INT64 to STRING"), "test_hashtables.py"),
    "HASHTABLE_FIND": (("STRING to INT64", "INT64 to STRING"), "test_hashtables.py"),
    "HASHTABLE_IMPORT": (("STRING to INT64", "INT64 to STRING"), "test_hashtables.py"),
    "HASHTABLE_SIZE": (("STRING to INT64", "INT64 to STRING"), "test_hashtables.py"),
    "SKIP_GRAM": (("STRING",), ""),
}
"""Kinds and the test that compares them, by operator."""

NO_KERNEL = "LiteRT has no kernel for it"

NOT_YET = "not converted yet"

REASONS: Mapping[str, str] = {
    "SKIP_GRAM": "not converted yet: the number of its outputs depends on the words",
}
"""Why armpy does not have an operator that LiteRT runs."""
