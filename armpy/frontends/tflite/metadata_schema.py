"""Facts of the schema of TFLite model metadata, version 1: where the fields are that armpy reads.

Notes
-----
In the form of `armpy.frontends.tflite.schema`.

References
----------
metadata_schema.fbs of TensorFlow Lite Support, file identifier M001.
"""

from __future__ import annotations

TABLES: dict[str, dict[str, tuple[int, str, float]]] = {
    "ModelMetadata": {
        "Name": (0, "text", 0),
        "Description": (1, "text", 0),
        "Version": (2, "text", 0),
        "SubgraphMetadata": (3, "[SubGraphMetadata]", 0),
        "Author": (4, "text", 0),
        "License": (5, "text", 0),
        "AssociatedFiles": (6, "[AssociatedFile]", 0),
        "MinParserVersion": (7, "text", 0),
    },
    "SubGraphMetadata": {
        "Name": (0, "text", 0),
        "Description": (1, "text", 0),
        "InputTensorMetadata": (2, "[TensorMetadata]", 0),
        "OutputTensorMetadata": (3, "[TensorMetadata]", 0),
    },
    "TensorMetadata": {
        "Name": (0, "text", 0),
        "Description": (1, "text", 0),
        "DimensionNames": (2, "[text]", 0),
        "Content": (3, "Content", 0),
        "ProcessUnits": (4, "[ProcessUnit]", 0),
        "Stats": (5, "Stats", 0),
        "AssociatedFiles": (6, "[AssociatedFile]", 0),
    },
    "Content": {"ContentPropertiesType": (0, "B", 0), "ContentProperties": (1, "union", 0)},
    "ImageProperties": {"ColorSpace": (0, "b", 0)},
    "AudioProperties": {"SampleRate": (0, "I", 0), "Channels": (1, "I", 0)},
    "BoundingBoxProperties": {
        "Index": (0, "[I]", 0),
        "Type": (1, "b", 0),
        "CoordinateType": (2, "b", 0),
    },
    "ProcessUnit": {"OptionsType": (0, "B", 0), "Options": (1, "union", 0)},
    "NormalizationOptions": {"Mean": (0, "[f]", 0), "Std": (1, "[f]", 0)},
    "ScoreCalibrationOptions": {"ScoreTransformation": (0, "b", 0), "DefaultScore": (1, "f", 0)},
    "ScoreThresholdingOptions": {"GlobalScoreThreshold": (0, "f", 0)},
    "BertTokenizerOptions": {"VocabFile": (0, "[AssociatedFile]", 0)},
    "SentencePieceTokenizerOptions": {
        "SentencePieceModel": (0, "[AssociatedFile]", 0),
        "VocabFile": (1, "[AssociatedFile]", 0),
    },
    "RegexTokenizerOptions": {
        "DelimRegexPattern": (0, "text", 0),
        "VocabFile": (1, "[AssociatedFile]", 0),
    },
    "Stats": {"Max": (0, "[f]", 0), "Min": (1, "[f]", 0)},
    "AssociatedFile": {
        "Name": (0, "text", 0),
        "Description": (1, "text", 0),
        "Type": (2, "b", 0),
        "Locale": (3, "text", 0),
    },
}

ENUMERATIONS: dict[str, str] = {
    "AssociatedFileType": """
        UNKNOWN DESCRIPTIONS TENSOR_AXIS_LABELS TENSOR_VALUE_LABELS TENSOR_AXIS_SCORE_CALIBRATION
        VOCABULARY SCANN_INDEX_FILE
    """,
    "BoundingBoxType": "UNKNOWN BOUNDARIES UPPER_LEFT CENTER",
    "ColorSpaceType": "UNKNOWN RGB GRAYSCALE",
    "ContentProperties": """
        NONE FeatureProperties ImageProperties BoundingBoxProperties AudioProperties
    """,
    "CoordinateType": "RATIO PIXEL",
    "Options": """
        NONE NormalizationOptions ScoreCalibrationOptions ScoreThresholdingOptions
        BertTokenizerOptions SentencePieceTokenizerOptions RegexTokenizerOptions
    """,
    "ScoreTransformationType": "IDENTITY LOG INVERSE_LOGISTIC",
}
"""Names in the order of their numbers; unions are called as their fields are."""
