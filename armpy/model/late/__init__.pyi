from asyncio import to_thread as to_thread, wait_for as wait_for, wrap_future as wrap_future
from logging import getLogger as getLogger
from armpy.core.arguments import check_instance as check_instance
from armpy.backend.tuning import requested_tuning as requested_tuning
from armpy.execution.calls.invocation import Invocation as Invocation
from armpy.execution.calls.real_numbers import RealOutputs as RealOutputs
from armpy.execution.arrays.reshaping import (
    checked_names as checked_names,
    graph_of as graph_of,
    with_input_shapes as with_input_shapes,
    with_outputs as with_outputs,
)
from armpy.execution.options import RuntimeOptions as RuntimeOptions
from armpy.execution.properties import NetworkProperties as NetworkProperties
from armpy.execution.runtime import Runtime as Runtime
from armpy.execution.calls.async_execution import start as start
from armpy.model.display import (
    backends_of as backends_of,
    describe as describe,
    model_html as model_html,
)
from armpy.model.pickling import (
    derived_recipe as derived_recipe,
    loaded_recipe as loaded_recipe,
    make as make,
    model_recipe as model_recipe,
    waiting as waiting,
)
from armpy.model.preparation import input_shapes as input_shapes, warm_up as warm_up
from armpy.model.save import ModelContents as ModelContents, save_model as save_model
from armpy.plugins.hooks.metadata import ModelMetadata as ModelMetadata

__all__: list[str]
