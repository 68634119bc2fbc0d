from armpy.tools.calibrate.calibrating import (
    OUT_OF_TIME as OUT_OF_TIME,
    CalibrationReport as CalibrationReport,
    calibrate as calibrate,
)
from armpy.tools.calibrate.clocks import Clock as Clock

__all__: list[str]
