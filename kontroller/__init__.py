"""The public face of Kontroller: everything that a script imports, and all of it typed.

`AdminClient` administers a cluster, `Journal` reads what a controller has written down, `History` keeps journals as
tables (it needs the extra `pipeline`), and `run_controller` runs a controller. Every other module is internal.

A name is imported when it is first used, so that `import kontroller` takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from controller_core.client.admin_client import AdminClient, BlockingAdminClient
    from controller_core.client.elections import Elected
    from controller_core.client.errors import (
        AdminError,
        InvalidArgument,
        NotAdmittedError,
        OutcomeUnknown,
        PartlyRefused,
        Refused,
        Unreachable,
        Unsupported,
        UpdateInProgress,
    )
    from controller_core.client.features import FeatureMetadata, FeatureUpdate, UpdateType
    from controller_core.client.log_dirs.placing import Placement
    from controller_core.client.properties import ClientProperties
    from controller_core.client.reassigning.assignments import format_partitions, parse_reassignment
    from controller_core.client.reassigning.copying import MoveProgress
    from controller_core.client.reassigning.reassignments import Ongoing, Progress, ReassignmentResult
    from controller_core.client.reassigning.throttles import ThrottleSet
    from controller_core.client.topics.administration import Alteration, TopicDescription, TopicList
    from controller_core.journal.fold import Folded, Image
    from controller_core.journal.reader import Finding, Gap, Record
    from controller_core.model.ids import TopicPartition
    from controller_core.model.snapshot import Snapshot
    from controller_core.process.run import run_controller
    from controller_core.process.settings import ControllerProcessSettings as ControllerSettings
    from controller_core.process.settings import InvalidSettings, load_settings
    from kontroller.history.kept_history import KeptHistory as History
    from kontroller.journal import Journal

__all__ = [
    "AdminClient",
    "AdminError",
    "Alteration",
    "BlockingAdminClient",
    "ClientProperties",
    "ControllerSettings",
    "Elected",
    "FeatureMetadata",
    "FeatureUpdate",
    "Finding",
    "Folded",
    "Gap",
    "History",
    "Image",
    "InvalidArgument",
    "InvalidSettings",
    "Journal",
    "MoveProgress",
    "NotAdmittedError",
    "Ongoing",
    "OutcomeUnknown",
    "PartlyRefused",
    "Placement",
    "Progress",
    "ReassignmentResult",
    "Record",
    "Refused",
    "Snapshot",
    "ThrottleSet",
    "TopicDescription",
    "TopicList",
    "TopicPartition",
    "Unreachable",
    "Unsupported",
    "UpdateInProgress",
    "UpdateType",
    "format_partitions",
    "load_settings",
    "parse_reassignment",
    "run_controller",
]

_MODULES: Final[dict[str, tuple[str, ...]]] = {
    "controller_core.journal.fold": ("Folded", "Image"),
    "controller_core.journal.reader": ("Finding", "Gap", "Record"),
    "controller_core.model.ids": ("TopicPartition",),
    "controller_core.model.snapshot": ("Snapshot",),
    "controller_core.process.run": ("run_controller",),
    "controller_core.process.settings": ("ControllerProcessSettings", "InvalidSettings", "load_settings"),
    "controller_core.client.admin_client": ("AdminClient", "BlockingAdminClient"),
    "controller_core.client.reassigning.assignments": ("format_partitions", "parse_reassignment"),
    "controller_core.client.elections": ("Elected",),
    "controller_core.client.errors": (
        "AdminError",
        "InvalidArgument",
        "NotAdmittedError",
        "OutcomeUnknown",
        "PartlyRefused",
        "Refused",
        "Unreachable",
        "Unsupported",
        "UpdateInProgress",
    ),
    "controller_core.client.features": ("FeatureMetadata", "FeatureUpdate", "UpdateType"),
    "controller_core.client.log_dirs.placing": ("Placement",),
    "controller_core.client.properties": ("ClientProperties",),
    "controller_core.client.reassigning.copying": ("MoveProgress",),
    "controller_core.client.reassigning.reassignments": ("Ongoing", "Progress", "ReassignmentResult"),
    "controller_core.client.reassigning.throttles": ("ThrottleSet",),
    "controller_core.client.topics.administration": ("Alteration", "TopicDescription", "TopicList"),
    "kontroller.history.kept_history": ("KeptHistory",),
    "kontroller.journal": ("Journal",),
}
_OTHER_NAMES: Final = {"ControllerSettings": "ControllerProcessSettings", "History": "KeptHistory"}
_PLACES: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    own_name = _OTHER_NAMES.get(name, name)
    found = globals()[name] = getattr(import_module(_PLACES[own_name]), own_name)
    return found


def __dir__() -> list[str]:
    return __all__
