from armpy.core.numerics import (
    activations as activations,
    elementary as elementary,
    gemmlowp as gemmlowp,
    logarithm as logarithm,
    resize as resize,
    softmax as softmax,
)
from armpy.core.numerics.fixed_point import *
from armpy.core.numerics.integer_functions import *
from armpy.core.numerics.lookup_table import *
from armpy.core.numerics.pair_functions import *
from armpy.core.numerics.quantization import *
from armpy.core.numerics.rounding import *
from armpy.core.numerics.small_floats import *
