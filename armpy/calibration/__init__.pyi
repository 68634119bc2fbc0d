from armpy.calibration.calibrating import (
    OUT_OF_TIME as OUT_OF_TIME,
    CalibrationReport as CalibrationReport,
    calibrate as calibrate,
)
from armpy.calibration.clocks import Clock as Clock

__all__: list[str]
