"""Asks brokers about the log directories of their replicas: each broker about its own."""

from collections.abc import Mapping
from typing import Final

from controller_core.client.log_dirs.log_sizes import BrokerClient, LogSizes, OpenBroker, ask_log_sizes
from controller_core.client.log_dirs.placing import Directories, Places, group_by_broker
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.broker_listeners import BrokerListener
from controller_operator.kafka.requests.placements import (
    PlacementReply,
    PlacementStep,
    ReturnReplicas,
    place_at,
    return_at,
)
from controller_operator.reconciling.measuring.asking import ask_brokers

_TIMEOUT_S: Final = 10.0


async def read_places(
    directories: Directories, view: Snapshot, listener: BrokerListener, open_broker: OpenBroker, timeout_s: float
) -> Places:
    """Return the places of replicas that are to have these directories."""
    by_broker = group_by_broker(directories)

    async def ask(broker: BrokerId, client: BrokerClient) -> LogSizes:
        return await ask_log_sizes([*by_broker[broker]], client)

    live = by_broker.keys() & view.brokers.keys()
    answers = await ask_brokers(live, view, listener, open_broker, ask, timeout_s)
    return Places(answers=answers.by_broker, troubles=answers.troubles)


async def carry_out_placement(
    step: PlacementStep, view: Snapshot, listener: BrokerListener, open_broker: OpenBroker
) -> PlacementReply:
    """Carry out a step. A broker that does not answer is a reason in the reply."""
    by_broker = group_by_broker(step.directories)
    request = return_at if isinstance(step, ReturnReplicas) else place_at

    async def ask(broker: BrokerId, client: BrokerClient) -> Mapping[TopicPartition, str]:
        return await request(by_broker[broker], client)

    live = by_broker.keys() & view.brokers.keys()
    answers = await ask_brokers(live, view, listener, open_broker, ask, _TIMEOUT_S)
    silent = by_broker.keys() - answers.by_broker.keys()
    return PlacementReply(
        step=step,
        refused={
            PartitionReplica(partition, broker): said
            for broker, refused in answers.by_broker.items()
            for partition, said in refused.items()
        },
        unasked={
            PartitionReplica(partition, broker): _find_trouble(broker, view, answers.troubles)
            for broker in silent
            for partition in by_broker[broker]
        },
    )


def _find_trouble(broker: BrokerId, view: Snapshot, troubles: tuple[str, ...]) -> str:
    if broker not in view.brokers:
        return f"broker {broker} is not registered"
    told = (each for each in troubles if each.startswith(f"broker {broker}: "))
    return next(told, f"broker {broker} has not answered within {_TIMEOUT_S:g} s")
