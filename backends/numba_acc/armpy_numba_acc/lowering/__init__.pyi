# SPDX-License-Identifier: Apache-2.0
from armpy_numba_acc.lowering.depthwise import lower_depthwise as lower_depthwise
from armpy_numba_acc.lowering.matrices_layers import lower_matrices as lower_matrices
from armpy_numba_acc.lowering.weighted_layers import lower_weighted as lower_weighted
