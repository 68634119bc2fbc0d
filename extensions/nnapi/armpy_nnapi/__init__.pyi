from armpy_nnapi.errors import NnapiError as NnapiError, ResultCode as ResultCode
from armpy_nnapi.run.burst import Burst as Burst
from armpy_nnapi.model.builder import ModelBuilder as ModelBuilder
from armpy_nnapi.model.builder import ModelOperand as ModelOperand
from armpy_nnapi.capabilities import Capabilities as Capabilities
from armpy_nnapi.codes import (
    DeviceTypeCode as DeviceTypeCode,
    DurationCode as DurationCode,
    FeatureLevel as FeatureLevel,
    FuseCode as FuseCode,
    OperandCode as OperandCode,
    OperationCode as OperationCode,
    PaddingCode as PaddingCode,
    PreferenceCode as PreferenceCode,
)
from armpy_nnapi.compile.compilation import Compilation as Compilation
from armpy_nnapi.devices import (
    Device as Device,
    DeviceManager as DeviceManager,
    default_manager as default_manager,
)
from armpy_nnapi.model.dump import graph_dump as graph_dump
from armpy_nnapi.run.events import Event as Event
from armpy_nnapi.run.execution import Execution as Execution
from armpy_nnapi.run.execution_results import DURATION_UNAVAILABLE as DURATION_UNAVAILABLE
from armpy_nnapi.run.limits import (
    DEFAULT_LOOP_TIMEOUT_NS as DEFAULT_LOOP_TIMEOUT_NS,
    MAXIMUM_LOOP_TIMEOUT_NS as MAXIMUM_LOOP_TIMEOUT_NS,
)
from armpy_nnapi.memory import Memory as Memory
from armpy_nnapi.memory_domains.memory_desc import MemoryDesc as MemoryDesc
from armpy_nnapi.model.model import Model as Model
from armpy_nnapi.description.model_description import ModelDescription as ModelDescription
from armpy_nnapi.description.operand_type import OperandType as OperandType
from armpy_nnapi.description.request import (
    Request as Request,
    RequestArgument as RequestArgument,
)
from armpy_nnapi.validation.validate_request import validate_request as validate_request
from armpy_nnapi.utilities import (
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
from armpy_nnapi.validation.validate_model import (
    validate_model as validate_model,
    validate_operation as validate_operation,
)
from armpy_nnapi.validation.versions import (
    compliant_slice as compliant_slice,
    convert as convert,
    minimum_feature_level as minimum_feature_level,
)
from armpy.types import Priority as Priority

__all__: list[str]
