from armpy.ops.activation_layers import *
from armpy.ops.activations import FusedActivation as FusedActivation
from armpy.ops.attention import *
from armpy.ops.backend_internal import *
from armpy.ops.bidirectional import *
from armpy.ops.blocks import *
from armpy.ops.composite import *
from armpy.ops.control_flow import *
from armpy.ops.convolution import *
from armpy.ops.cumulation import *
from armpy.ops.dense import *
from armpy.ops.detection import *
from armpy.ops.elementwise import *
from armpy.ops.generation import *
from armpy.ops.grid_sampling import *
from armpy.ops.hashing import *
from armpy.ops.indexing import *
from armpy.ops.joining import *
from armpy.ops.linear_algebra import *
from armpy.ops.lookup import *
from armpy.ops.lstm import *
from armpy.ops.movement import *
from armpy.ops.normalization import *
from armpy.ops.operation import (
    Operand as Operand,
    Operation as Operation,
    TypeRule as TypeRule,
    rule as rule,
    same as same,
)
from armpy.ops.ordering import *
from armpy.ops.pooling import *
from armpy.ops.quantized_lstm import *
from armpy.ops.quantizing import *
from armpy.ops.recurrent import *
from armpy.ops.recurrent_sequence import *
from armpy.ops.reduction import *
from armpy.ops.region_pooling import *
from armpy.ops.reshaping import *
from armpy.ops.resizing import *
from armpy.ops.sampling import *
from armpy.ops.searching import *
from armpy.ops.shapes import Padding as Padding
from armpy.ops.slicing import *
from armpy.ops.spectral import *
from armpy.ops.stand_in import *
from armpy.ops.strided_slicing import *
from armpy.ops.suppression import *
from armpy.ops.text import *
from armpy.ops.text_features import *
from armpy.ops.transpose_convolution import *
from armpy.ops.trees import *

__all__: list[str]
