from armpy.numerics import (
    activations as activations,
    elementary as elementary,
    gemmlowp as gemmlowp,
    logarithm as logarithm,
    resize as resize,
    softmax as softmax,
)
from armpy.numerics.bfloat16 import *
from armpy.numerics.fixed_point import *
from armpy.numerics.integer_functions import *
from armpy.numerics.lookup_table import *
from armpy.numerics.pair_functions import *
from armpy.numerics.quantization import *
from armpy.numerics.requantization import *
from armpy.numerics.rounding import *
from armpy.numerics.small_floats import *
