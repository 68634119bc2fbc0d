from armpy.calibration.calibrating import (
    CalibrationReport as CalibrationReport,
    calibrate as calibrate,
)
from armpy.calibration.clocks import Clock as Clock

__all__: list[str]
