"""Settings in the files of a cluster's brokers that differ, and differ from those of a controller beside them."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from kio.schema.metadata.v11 import MetadataResponse

from controller_core.client.configs import read_shared_settings
from controller_core.client.errors import AdminError
from controller_core.client.log_dirs.log_sizes import BrokerClient, OpenBroker
from controller_core.client.snapshot import read_brokers
from controller_core.model.ids import BrokerId
from controller_core.model.settings.differences import Difference, find_differences
from controller_core.model.snapshot import Snapshot
from controller_core.wire.requests.metadata import NO_TOPICS
from controller_operator.kafka.broker_listeners import BrokerListener
from controller_operator.reconciling.measuring.asking import ask_brokers


async def ask_for_differences(
    view: Snapshot, listener: BrokerListener, open_broker: OpenBroker, timeout_s: float
) -> tuple[Difference, ...] | None:
    """Return the settings that differ; None if no broker returns its settings."""
    nodes = view
    with suppress(TimeoutError):  # then the brokers are compared without the controller
        async with asyncio.timeout(timeout_s):
            nodes = await _add_controller(view, listener, open_broker)
    answers = await ask_brokers(nodes.brokers, nodes, listener, open_broker, _ask, timeout_s)
    return find_differences(answers.by_broker) if answers.by_broker else None


async def _ask(node: BrokerId, client: BrokerClient) -> dict[str, str]:
    return await read_shared_settings(client.ask_any, node)


async def _add_controller(view: Snapshot, listener: BrokerListener, open_broker: OpenBroker) -> Snapshot:
    """Return the view with a controller that is no broker, if brokers know its address."""
    if view.controller is None or view.controller.id in view.brokers or view.voters is not None:
        return view
    for broker in view.brokers.values():
        try:
            client = open_broker(listener.addresses(broker), security=listener.security)
            known = read_brokers(await client.ask_any(NO_TOPICS, MetadataResponse), listener.protocol)
        except AdminError:
            continue  # another broker may know it
        if (controller := known.get(view.controller.id)) is not None:
            endpoints = tuple(replace(each, listener=listener.name or each.listener) for each in controller.endpoints)
            return replace(view, brokers={**view.brokers, controller.id: replace(controller, endpoints=endpoints)})
    return view
