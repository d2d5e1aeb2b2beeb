"""Quotas of mutations: the same requests exceed them at both controllers alike, with the same answers.

Rates are so low that a bucket gains far less than one partition during a test. The tests compare debt, which does not
depend on the speed of the machine. Each test has its own client ids.
"""

import itertools
import json
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.api_versions.v3 import ApiVersionsRequest
from kio.schema.types import TopicName as WireTopicName

from controller_core.wire.codecs.frames import decode_response, encode_request
from controller_core.wire.codecs.versions import convert
from controller_core.wire.messages import ErrorCode
from devcluster.clients.requests import answer_to, open_connection, send_frame
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.test_admin_requests import creation, deletion, growth, make_growing, milliseconds, topic

CREATE, DELETE, GROW = 19, 20, 37
LOW = 0.001
"""Partitions a second: a bucket is full with 0.011."""
PLENTY = 1e6
RATE = "controller_mutation_rate"

_numbers = itertools.count(1)


@dataclass
class Client:
    """A client with its own id, and the topic that it grows."""

    cluster: ConformanceCluster
    id: str = field(default_factory=lambda: f"charged {next(_numbers)}")
    partitions: int = 0

    def ask(self, request: Any) -> Any:
        asked = encode_request(request, 1, self.id)
        frame = send_frame(self.cluster.controller_address, asked, identity=self.cluster.identity)
        return decode_response(load_response_schema(int(request.__api_key__), int(request.__version__)), frame)

    def name(self) -> str:
        """Return a name that no topic has."""
        return f"charged-{next(_numbers)}"

    def grow(self) -> ErrorCode:
        """Add a partition to its own topic."""
        own = "own-" + self.id.replace(" ", "-")
        if not self.partitions:
            self.cluster.serve_topic(own, [[1]])
            self.cluster.wait_until_everybody_knows(own)
            self.partitions = 1
        ((code, _),) = results(self.ask(make_growing(growth(own, self.partitions + 1))))
        self.partitions += code is ErrorCode.none
        return code


def set_quota(cluster: ConformanceCluster, entity: str, config: dict[str, str]) -> None:
    """Write the quota of an entity, a path below `/config`, and its notification, as Kafka's tools do.

    The entity's other settings, such as a user's credentials, are kept.
    """
    client, path = cluster.znodes.client, f"/config/{entity}"
    client.ensure_path(path)
    others = {name: value for name, value in _config(client.get(path)[0]).items() if name != RATE}
    client.set(path, json.dumps({"version": 1, "config": others | config}).encode())
    change = json.dumps({"version": 2, "entity_path": entity}).encode()
    client.create("/config/changes/config_change_", change, sequence=True, makepath=True)


def _config(data: bytes) -> dict[str, str]:
    return dict(json.loads(data)["config"]) if data else {}


@contextmanager
def quotas(cluster: ConformanceCluster, **rates: float) -> Iterator[None]:
    """Set quotas by entity, such as `users/alice`, which the controller knows in the block."""
    for entity, rate in rates.items():
        set_quota(cluster, entity, {RATE: str(rate)})
    wait_until_known(cluster)
    yield
    for entity in rates:
        set_quota(cluster, entity, {})


def wait_until_known(cluster: ConformanceCluster) -> None:
    """Wait until the controller knows all quotas: Kafka's learns of them one after the other."""
    witness = Client(cluster)
    set_quota(cluster, f"clients/{encode_id(witness.id)}", {RATE: str(LOW)})
    cluster.wait(lambda: witness.grow() is ErrorCode.throttling_quota_exceeded, "the controller knows all quotas")


def encode_id(client_id: str) -> str:
    return client_id.replace(" ", "%20")


@contextmanager
def charge_client(cluster: ConformanceCluster, rate: float = LOW) -> Iterator[Client]:
    """Yield a client whose id has a quota."""
    client = Client(cluster)
    with quotas(cluster, **{f"clients/{encode_id(client.id)}": rate}):
        yield client


def waits_for(response: Any, partitions: int) -> bool:
    """Return True if the throttle time pays the debt of this number of partitions, less a tolerance for the test."""
    owed_ms = (partitions - 11 * LOW) / LOW * 1000
    return bool(owed_ms - 600_000 < response.throttle_time.total_seconds() * 1000 <= owed_ms + 1)


def convert_to_version(request: Any, version: int) -> Any:
    kind: Any = load_request_schema(int(request.__api_key__), version)
    if request.__api_key__ == DELETE and version < 6:
        return kind(topic_names=tuple(each.name for each in request.topics), timeout=request.timeout)
    return convert(request, kind)


def results(response: Any) -> list[tuple[ErrorCode, str | None]]:
    parts = next(getattr(response, name) for name in ("topics", "responses", "results") if hasattr(response, name))
    return [(part.error_code, getattr(part, "error_message", None)) for part in parts]


def mutation(client: Client, api_key: int) -> Callable[[], Any]:
    """Return a function that makes requests to change three partitions, of another topic each time."""

    def make() -> Any:
        name = client.name()
        if api_key == CREATE:
            return creation(topic(name, 3, 1))
        client.cluster.serve_topic(name, [[1], [2], [3]])
        client.cluster.wait_until_everybody_knows(name, 2)
        return deletion(name) if api_key == DELETE else make_growing(growth(name, 6))

    return make


@pytest.mark.parametrize(("api_key", "version"), [(CREATE, 6), (CREATE, 7), (DELETE, 5), (DELETE, 6), (GROW, 3)])
def test_what_exceeds_a_quota_is_refused(cluster: ConformanceCluster, api_key: int, version: int) -> None:
    with charge_client(cluster) as client:
        make = mutation(client, api_key)
        done = client.ask(convert_to_version(make(), version))
        assert (results(done), done.throttle_time) == ([(ErrorCode.none, None)], milliseconds(0))
        asked = convert_to_version(make(), version)
        before = {name: cluster.znodes.partitions(name) for name in names_in(asked)}
        refused = client.ask(asked)
        assert results(refused) == [(ErrorCode.throttling_quota_exceeded, None)]
        assert waits_for(refused, 3)
        assert {name: cluster.znodes.partitions(name) for name in names_in(asked)} == before


def names_in(request: Any) -> list[WireTopicName]:
    parts = request.topics if hasattr(request, "topics") else request.topic_names
    return [getattr(part, "name", part) for part in parts]


@pytest.mark.parametrize(
    ("api_key", "version"), [(CREATE, 2), (CREATE, 5), (DELETE, 1), (DELETE, 4), (GROW, 0), (GROW, 2)]
)
def test_clients_that_do_not_know_the_error_are_told_to_wait(
    cluster: ConformanceCluster, api_key: int, version: int
) -> None:
    with charge_client(cluster) as client:
        make = mutation(client, api_key)
        for times in (1, 2):
            done = client.ask(convert_to_version(make(), version))
            assert [code for code, _ in results(done)] == [ErrorCode.none]
            assert waits_for(done, 3 * times)


def test_of_several_topics_those_are_done_for_which_there_is_room(cluster: ConformanceCluster) -> None:
    """Kafka processes the topics of a creation in the order of a hash table."""
    with charge_client(cluster) as client:
        asked = [topic(client.name(), 2, 1) for _ in range(3)]
        response = client.ask(creation(*asked))
        refused = ErrorCode.throttling_quota_exceeded
        assert sorted(code for code, _ in results(response)) == [ErrorCode.none, refused, refused]
        assert waits_for(response, 2)
        made = [each.name for each in response.topics if each.error_code is ErrorCode.none]
        assert [each.name for each in asked if cluster.exists(f"/brokers/topics/{each.name}")] == made


def test_what_is_only_validated_and_what_is_refused_anyway_is_charged_nothing(cluster: ConformanceCluster) -> None:
    with charge_client(cluster) as client:
        for request in (
            creation(topic(client.name(), 5, 1), validate_only=True),
            creation(topic(client.name(), 0, 1)),
            make_growing(growth("ghost", 5)),
            deletion("ghost"),
        ):
            assert client.ask(request).throttle_time == milliseconds(0)
        assert results(client.ask(creation(topic(client.name(), 1, 1))))[0][0] is ErrorCode.none, "nothing was charged"
        for request, code in (
            (creation(topic(client.name(), 5, 1), validate_only=True), ErrorCode.none),
            (creation(topic(client.name(), 0, 1)), ErrorCode.invalid_partitions),
            (make_growing(growth("ghost", 5)), ErrorCode.unknown_topic_or_partition),
            (deletion("ghost"), ErrorCode.unknown_topic_or_partition),
        ):
            response = client.ask(request)
            assert (results(response)[0][0], response.throttle_time) == (code, milliseconds(0))


def test_the_quota_that_is_most_about_a_client_counts_alone(cluster: ConformanceCluster) -> None:
    client = Client(cluster)
    me, user = encode_id(client.id), quote(cluster.user, safe="")
    entities = (
        "clients/<default>",
        f"clients/{me}",
        "users/<default>",
        "users/<default>/clients/<default>",
        f"users/<default>/clients/{me}",
        f"users/{user}",
        f"users/{user}/clients/<default>",
        f"users/{user}/clients/{me}",
    )
    exceeded = ErrorCode.throttling_quota_exceeded
    try:
        for entity in entities:
            set_quota(cluster, entity, {RATE: str(PLENTY)})
            cluster.wait(lambda: client.grow() is ErrorCode.none, f"{entity} goes before what is more general")
            assert [client.grow(), client.grow()] == [ErrorCode.none, ErrorCode.none]
            set_quota(cluster, entity, {RATE: str(LOW)})
            cluster.wait(lambda: client.grow() is exceeded, f"{entity} counts")
    finally:
        for entity in entities:
            set_quota(cluster, entity, {})
    cluster.wait(lambda: client.grow() is ErrorCode.none, "nothing counts any more")
    wait_until_known(cluster)


def test_who_has_to_wait_is_not_heard_meanwhile_and_others_are(cluster: ConformanceCluster) -> None:
    versions = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    with (
        charge_client(cluster) as client,
        open_connection(cluster.controller_address, identity=cluster.identity) as connection,
    ):
        answer_to(connection, encode_request(convert_to_version(creation(topic(client.name(), 3, 1)), 5), 1, client.id))
        connection.sendall(encode_request(versions, 2, client.id))
        for _ in range(3):
            assert client.ask(versions).error_code is ErrorCode.none, "by another connection he is heard"
        assert select.select([connection], [], [], 0)[0] == []
