from armpy.compiler.devices.assumptions import assumed_costs as assumed_costs
from armpy.compiler.devices.cache import DevicesCache as DevicesCache
from armpy.plugins.proxy.figures import check_figures as check_figures
from armpy.compiler.devices.costs import (
    BackendCosts as BackendCosts,
    CopyRate as CopyRate,
    FigureSource as FigureSource,
    Rate as Rate,
    transition_seconds as transition_seconds,
)
from armpy.compiler.devices.facts import DeviceFacts as DeviceFacts, device_facts as device_facts
from armpy.compiler.devices.lookup import (
    costs_of as costs_of,
    lookup_performance as lookup_performance,
)
from armpy.compiler.devices.machine import (
    describe_machine as describe_machine,
    machine_identity as machine_identity,
)
from armpy.compiler.devices.records import DeviceRecord as DeviceRecord, Sample as Sample
from armpy.compiler.devices.store import FiguresStore as FiguresStore
from armpy.compiler.devices.work import (
    Work as Work,
    family_of as family_of,
    kind_of as kind_of,
    type_class as type_class,
    work_of as work_of,
)

__all__: list[str]
