from armpy.plugins.hooks.custom_operator import (
    CustomOperator as CustomOperator,
    OperatorParts as OperatorParts,
)
from armpy.plugins.hooks.front_end import (
    FrontEnd as FrontEnd,
    FrontEndOptionError as FrontEndOptionError,
    Magic as Magic,
    ModelSignature as ModelSignature,
    ParseSettings as ParseSettings,
)
from armpy.plugins.hooks.model_file import (
    ModelFile as ModelFile,
    ModelSource as ModelSource,
    open_model_file as open_model_file,
)
from armpy.plugins.hooks.outline import (
    FileGraph as FileGraph,
    FileOperator as FileOperator,
    FileOutline as FileOutline,
    FileTensor as FileTensor,
)
from armpy.plugins.hooks.section import (
    ReportSection as ReportSection,
)
from armpy.plugins.hooks.specifications import (
    hookimpl as hookimpl,
)
from armpy.plugins.placement import (
    Alternative as Alternative,
    PlacementDecision as PlacementDecision,
    PlacementQuestion as PlacementQuestion,
    Placer as Placer,
)

__all__: list[str]
