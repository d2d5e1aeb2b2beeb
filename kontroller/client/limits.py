"""Limits that PartitionReassignments have set in a cluster without ZooKeeper, and the removal of one without an object.

The operator marks its limits, so each limit names its owner. Limits that others have set have no mark, and are never
changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kio.schema.describe_configs.v4 import DescribeConfigsResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.cluster import Call
from controller_core.client.configs import read_own_configs
from controller_core.client.errors import AdminError, InvalidArgument, require
from controller_core.client.reassigning.reassignments import list_ongoing
from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.model.ids import TopicName, TopicPartition
from controller_core.model.wording import list_some
from controller_core.wire.requests.configs import BROKER_DEFAULTS, make_describe_configs_request
from controller_operator.kafka.marked_throttles import Entry, entries_in, find_marked_partitions
from controller_operator.kafka.requests.throttles import MAX_ASKED, ask_for_throttle
from controller_operator.kafka.throttle_steps import RemoveThrottle

Response = TypeVar("Response", bound=ResponsePayload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit of an object, and the partitions that it slows."""

    owner: str
    """The object, as namespace/name/uid."""
    bytes_per_second: int
    partitions: tuple[TopicPartition, ...]
    """The partitions whose replicas it slows."""


async def list_limits(call: Call) -> tuple[Limit, ...]:
    """Return the limits that objects have set, by owner. Raises `Refused`."""
    entries = await _read_entries(call)
    if not entries:
        return ()
    names = [str(topic.name) for topic in (await call.metadata(of_all=True)).topics]
    marked = find_marked_partitions(await _read_configs(call, names))
    return tuple(
        Limit(
            owner=each.owner,
            bytes_per_second=each.bytes_per_second,
            partitions=tuple(sorted(marked.get(each.mark, ()))),
        )
        for each in sorted(entries, key=lambda each: each.owner)
    )


async def remove_limit(call: Call, owner: str) -> Limit:
    """Remove the limit of an owner, and return it.

    Raises `InvalidArgument` if the owner has none, and `AdminError` if a partition of it moves: only the object, or
    Kafka's tool, ends a move."""
    limit = next((each for each in await list_limits(call) if each.owner == owner), None)
    if limit is None:
        raise InvalidArgument(f"{owner} has no limit: `kontroller reassign limits` lists the owners")
    moving = sorted(set(await list_ongoing(call)) & set(limit.partitions))
    if moving:
        raise AdminError(
            f"{list_some(moving)} moves under this limit: wait for the move, or change spec.throttle of its object"
        )
    step = RemoveThrottle(owner=owner, partitions=frozenset(limit.partitions))
    client = call.cluster.client.replace_timeout(call.left_ms)
    reply = await ask_for_throttle(step, _OneBroker(client, call.cluster.servers[0]), client)
    if reply.trouble is not None:
        raise AdminError(f"the limit of {owner} may stay: {reply.trouble}")
    return limit


class _OneBroker:
    """Sends all requests to one broker, so that later requests see what earlier ones wrote."""

    def __init__(self, client: RequestClient, server: Address) -> None:
        self._client = client.restrict_to(server)

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """Implement `ControllerClient`."""
        return await self._client.ask_one(request, response_type)


async def _read_entries(call: Call) -> tuple[Entry, ...]:
    answer = await call.ask_any(make_describe_configs_request([BROKER_DEFAULTS]), DescribeConfigsResponse)
    for each in answer.results:
        require("the defaults of brokers", each.error_code, each.error_message)
    return entries_in(config.name for each in answer.results for config in each.configs)


async def _read_configs(call: Call, topics: Sequence[str]) -> Mapping[TopicName, Mapping[str, str]]:
    found = {}
    for part in _make_parts(topics):
        for name, own in (await read_own_configs(call, part)).items():
            found[TopicName(name)] = {setting: value or "" for setting, value in own.items()}
    return found


def _make_parts(topics: Sequence[str]) -> Iterator[Sequence[str]]:
    return (topics[first : first + MAX_ASKED] for first in range(0, len(topics), MAX_ASKED))
