"""The operator as a process: `kontroller operator run`."""

from functools import partial

import controller_operator.handlers  # noqa: F401 - kopf runs the handlers that it registers
from controller_core.process.signals import run_until_signalled
from controller_operator.clusters.pool import Connect
from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.process import operate
from controller_operator.settings import OperatorSettings
from controller_operator.watching.kopf_watcher import KopfThread


async def run(settings: OperatorSettings, *, api: ObjectApi | None = None, connect: Connect | None = None) -> None:
    """Run the operator until SIGTERM or SIGINT. Must be called in the main thread. See `process.operate`."""
    make_watcher = partial(KopfThread, namespaces=settings.namespace)
    await run_until_signalled(operate(settings, make_watcher, api=api, connect=connect))
