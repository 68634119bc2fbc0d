"""PyArmNN, answered by `armpy_compat.pyarmnn`, which takes this module's place."""

import sys

import armpy_compat
import armpy_compat.pyarmnn

sys.modules[__name__] = armpy_compat.pyarmnn
armpy_compat.install_as_pyarmnn()
