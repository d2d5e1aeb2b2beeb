"""What kopf does here: log in, watch, answer probes, stop in order, and hand every change to the runtime.

The handlers are `kopf.on.event`, kopf's lowest level: no progress, no last-handled state and no finalizer of kopf's, so no
annotation on any object. Handlers of a higher level would keep such state per object and know one object at a time, while
a plan needs all objects of a cluster and wakes up when the cluster changes, which is no event of Kubernetes.

kopf takes its finalizer off objects for which it has no handler that needs one. So the name given to kopf is not that of
`kontroller.dev/finalizer`, which is put on and taken off with the plans.
"""

import logging
from typing import Any, Final

import kopf

from controller_operator.reconciling.runtime import OperatorRuntime
from controller_operator.resources import KINDS
from controller_operator.resources.common import GROUP, VERSION

_WATCH_S: Final = 300
_EXIT_S: Final = 30.0


def operator_registry(runtime: OperatorRuntime) -> kopf.OperatorRegistry:
    """The handlers that feed a runtime. A registry of its own, so that several operators can run in one process."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        _configure(settings)
        await runtime.start()

    @kopf.on.cleanup(registry=registry)
    async def stop(**_: Any) -> None:
        await runtime.stop()

    @kopf.on.login(registry=registry)
    async def log_in(**arguments: Any) -> kopf.ConnectionInfo | None:
        return await kopf.login_via_async_client(**arguments)

    async def hand_over(event: kopf.RawEvent, **_: Any) -> None:
        await runtime.on_event(event["type"], dict(event["object"]))

    for kind in KINDS:
        kopf.on.event(GROUP, VERSION, kind.definition.plural, id="hand-over", registry=registry)(hand_over)
    return registry


def _configure(settings: kopf.OperatorSettings) -> None:
    settings.posting.level = logging.WARNING
    settings.posting.enabled = False
    settings.persistence.finalizer = f"{GROUP}/kopf"
    # By default kopf waits for ever, and a watch whose connection died unseen stays silent.
    settings.watching.server_timeout = _WATCH_S
    settings.watching.client_timeout = _WATCH_S + 30
    settings.watching.connect_timeout = 30
    settings.networking.connect_timeout = 30
    settings.networking.request_timeout = 60
    # Watching definitions and namespaces would need rights over the whole cluster, and neither comes and goes here.
    settings.scanning.disabled = True
    settings.process.ultimate_exiting_timeout = _EXIT_S
