from armpy_tools.calibrate.calibrating import (
    OUT_OF_TIME as OUT_OF_TIME,
    CalibrationReport as CalibrationReport,
    calibrate as calibrate,
)
from armpy_tools.calibrate.clocks import Clock as Clock
from armpy_tools.calibrate.user_models import ModelTime as ModelTime

__all__: list[str]
