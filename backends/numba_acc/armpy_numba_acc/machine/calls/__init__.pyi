"""Records of calls, by the kernels' families."""

from armpy_numba_acc.machine.calls.attention import Attention as Attention
from armpy_numba_acc.machine.calls.elementwise import (
    ByteLines as ByteLines,
    Elementwise as Elementwise,
    ElementwiseInput as ElementwiseInput,
    Flip as Flip,
    Lookup as Lookup,
    elementwise_in_order as elementwise_in_order,
)
from armpy_numba_acc.machine.calls.gathering import (
    GatherByIndex as GatherByIndex,
    GatherCall as GatherCall,
    GatherRuns as GatherRuns,
    MoveElements as MoveElements,
    OneHot as OneHot,
    PutRun as PutRun,
    ScatterByIndex as ScatterByIndex,
    TopK as TopK,
)
from armpy_numba_acc.machine.calls.images import (
    GridSample as GridSample,
    Interpolation as Interpolation,
    PadImage as PadImage,
    ResizeBilinear as ResizeBilinear,
    ResizeBilinearI16 as ResizeBilinearI16,
    RoiAlign as RoiAlign,
    SampleAxis as SampleAxis,
)
from armpy_numba_acc.machine.calls.loops import Loop as Loop
from armpy_numba_acc.machine.calls.measuring import MachineTrial as MachineTrial
from armpy_numba_acc.machine.calls.moves import (
    Copy as Copy,
    Fill as Fill,
    MoveRuns as MoveRuns,
    MoveTiles as MoveTiles,
    NestedMove as NestedMove,
    ZipStreams as ZipStreams,
)
from armpy_numba_acc.machine.calls.products import (
    ConvolutionBf16 as ConvolutionBf16,
    ConvolutionBf16Matrix as ConvolutionBf16Matrix,
    ConvolutionBf16Pairs as ConvolutionBf16Pairs,
    ConvolutionDynamic as ConvolutionDynamic,
    ConvolutionF32 as ConvolutionF32,
    ConvolutionI16 as ConvolutionI16,
    ConvolutionSums as ConvolutionSums,
    ConvolutionU8 as ConvolutionU8,
    ProductCall as ProductCall,
    ProductI16 as ProductI16,
    ProductsF32 as ProductsF32,
    QuantizeRows as QuantizeRows,
)
from armpy_numba_acc.machine.calls.recurrent import (
    LstmF32 as LstmF32,
    LstmQ8 as LstmQ8,
    RecurrentSequence as RecurrentSequence,
    Svdf as Svdf,
)
from armpy_numba_acc.machine.calls.rows import (
    ArgExtreme as ArgExtreme,
    Cumulate as Cumulate,
    InstanceNormalization as InstanceNormalization,
    L2Normalization as L2Normalization,
    L2NormalizationBytes as L2NormalizationBytes,
    LayerNormalization as LayerNormalization,
    QuantizeU8 as QuantizeU8,
    Reduce as Reduce,
    Rescaling as Rescaling,
    Softmax as Softmax,
    SoftmaxBytes as SoftmaxBytes,
    SoftmaxI16 as SoftmaxI16,
    WindowSums as WindowSums,
)
from armpy_numba_acc.machine.calls.vectors import (
    BlockProduct as BlockProduct,
    QuantizeBlocks as QuantizeBlocks,
    VectorMatrix as VectorMatrix,
    VectorMatrixF32 as VectorMatrixF32,
    VectorMatrixU8 as VectorMatrixU8,
)
from armpy_numba_acc.machine.calls.windows import (
    DepthwiseF32 as DepthwiseF32,
    DepthwiseU8 as DepthwiseU8,
    PoolingF32 as PoolingF32,
    PoolingI16 as PoolingI16,
    PoolingU8 as PoolingU8,
    Tiles as Tiles,
)
from armpy_numba_acc.machine.calls.winograd import (
    WinogradF32 as WinogradF32,
    WinogradTiles as WinogradTiles,
    WinogradU8 as WinogradU8,
)
