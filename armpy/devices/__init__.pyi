from armpy.devices.assumptions import assumed_costs as assumed_costs
from armpy.devices.cache import DevicesCache as DevicesCache
from armpy.devices.checks import check_figures as check_figures
from armpy.devices.costs import (
    BackendCosts as BackendCosts,
    CopyRate as CopyRate,
    FigureSource as FigureSource,
    Rate as Rate,
    transition_seconds as transition_seconds,
)
from armpy.devices.facts import DeviceFacts as DeviceFacts, device_facts as device_facts
from armpy.devices.lookup import (
    costs_of as costs_of,
    lookup_performance as lookup_performance,
)
from armpy.devices.machine import (
    describe_machine as describe_machine,
    machine_identity as machine_identity,
)
from armpy.devices.records import DeviceRecord as DeviceRecord, Sample as Sample
from armpy.devices.store import FiguresStore as FiguresStore
from armpy.devices.work import (
    Work as Work,
    family_of as family_of,
    kind_of as kind_of,
    type_class as type_class,
    work_of as work_of,
)

__all__: list[str]
