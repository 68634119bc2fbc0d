from armpy.errors import NnapiError as NnapiError, ResultCode as ResultCode
from armpy.nnapi.run.burst import Burst as Burst
from armpy.nnapi.model.builder import ModelBuilder as ModelBuilder
from armpy.nnapi.model.builder import ModelOperand as ModelOperand
from armpy.nnapi.capabilities import Capabilities as Capabilities
from armpy.nnapi.codes import (
    DeviceTypeCode as DeviceTypeCode,
    DurationCode as DurationCode,
    FeatureLevel as FeatureLevel,
    FuseCode as FuseCode,
    OperandCode as OperandCode,
    OperationCode as OperationCode,
    PaddingCode as PaddingCode,
    PreferenceCode as PreferenceCode,
)
from armpy.nnapi.compile.compilation import Compilation as Compilation
from armpy.nnapi.devices import (
    Device as Device,
    DeviceManager as DeviceManager,
    default_manager as default_manager,
)
from armpy.nnapi.model.dump import graph_dump as graph_dump
from armpy.nnapi.run.events import Event as Event
from armpy.nnapi.run.execution import Execution as Execution
from armpy.nnapi.run.execution_results import DURATION_UNAVAILABLE as DURATION_UNAVAILABLE
from armpy.nnapi.run.limits import (
    DEFAULT_LOOP_TIMEOUT_NS as DEFAULT_LOOP_TIMEOUT_NS,
    MAXIMUM_LOOP_TIMEOUT_NS as MAXIMUM_LOOP_TIMEOUT_NS,
)
from armpy.nnapi.memory import Memory as Memory
from armpy.nnapi.memory_domains.memory_desc import MemoryDesc as MemoryDesc
from armpy.nnapi.model.model import Model as Model
from armpy.nnapi.description.model_description import ModelDescription as ModelDescription
from armpy.nnapi.description.operand_type import OperandType as OperandType
from armpy.nnapi.description.request import (
    Request as Request,
    RequestArgument as RequestArgument,
    validate_request as validate_request,
)
from armpy.nnapi.utilities import (
    align_bytes_needed as align_bytes_needed,
    compliant_with as compliant_with,
    convert_to as convert_to,
    has_unspecified_dimensions as has_unspecified_dimensions,
    is_extension_operand_type as is_extension_operand_type,
    is_extension_operation_type as is_extension_operation_type,
    is_scalar_type as is_scalar_type,
    lookup_performance as lookup_performance,
    non_extension_operand_performance as non_extension_operand_performance,
    size_of_data as size_of_data,
    update_performance as update_performance,
)
from armpy.nnapi.validation.validate_model import (
    validate_model as validate_model,
    validate_operation as validate_operation,
)
from armpy.nnapi.validation.versions import (
    compliant_slice as compliant_slice,
    convert as convert,
    minimum_feature_level as minimum_feature_level,
)
from armpy.types import Priority as Priority

__all__: list[str]
