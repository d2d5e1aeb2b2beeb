"""Kafka's controller and ours with the same ACLs and requests: the same errors, and the same visible topics.

Two clusters of stock brokers have Kafka's AclAuthorizer. Brokers and controllers log in as a super user. Clients log in
with PLAIN, as the super user or as a user with ACLs, or use a listener on which everybody is `User:ANONYMOUS`; from
several addresses of loopback. ACLs are written as brokers write them, with notifications.
"""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count
from socket import SocketIO
from typing import Any, Final, NamedTuple
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kazoo.client import KazooClient
from kio.index import load_response_schema
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from controller_core.admin.authorizing.acl_znodes import acl_path
from controller_core.model import ids
from controller_core.model.access import parse_address
from controller_core.model.authorization.acls import (
    AclTable,
    Entry,
    Operation,
    Pattern,
    ResourceType,
    make_topic_resource,
)
from controller_core.model.authorization.decision import AuthorizerRules
from controller_core.model.authorization.principal import ANONYMOUS, Caller, Principal
from controller_core.wire.codecs.frames import decode_response, encode_request
from controller_core.zk import codecs, paths
from devcluster.clusters.kontroller import DEFAULT_CONTROLLER_ID, ControllerProcess
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import ADMIN, ALICE, PASSWORDS, SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_metric
from tests.real.secured.questions import BROKER, MISSING, THERE, questions

Acls = dict[Pattern, frozenset[Entry]]

HERE, ELSEWHERE = "127.0.0.2", "127.0.0.3"
LISTENERS: Final = ListenerNames(
    inter_broker="INTERNAL",
    clients="CLIENT",
    others=("OPEN",),
    protocols={"INTERNAL": "SASL_PLAINTEXT", "CLIENT": "SASL_PLAINTEXT"},
)
THE_CLUSTER: Final = Pattern(ResourceType.CLUSTER, "kafka-cluster")
EVERY_TOPIC: Final = Pattern(ResourceType.TOPIC, "*")
NAMES: Final = ("*", *THERE, *MISSING)
PREFIXES: Final = ("a", "al", "alp", "b", "n")
EXAMPLES: Final = int(os.environ.get("KONTROLLER_ACL_SETS", "12"))
_sentinels = count()

pytestmark = pytest.mark.timeout(120 + 20 * EXAMPLES)


class Asker(NamedTuple):
    """A client: a user who logs in, or an anonymous one; and its address of loopback."""

    user: str | None
    host: str

    @property
    def caller(self) -> Caller:
        principal = ANONYMOUS if self.user is None else Principal.user(self.user)
        return Caller(address=parse_address(self.host), principal=principal, is_authenticated=self.user is not None)


SENTRY: Final = Asker(ALICE, "127.0.0.9")
SUPER_USER: Final = Asker(ADMIN, HERE)
ASKERS: Final = (Asker(ALICE, HERE), Asker(ALICE, ELSEWHERE), Asker(None, HERE), Asker(None, ELSEWHERE), SUPER_USER)


@dataclass
class Node:
    """The node that is asked as the controller, and its cluster."""

    ports: Mapping[str, int]
    node_id: int
    zookeeper: KazooClient
    ids: dict[str, UUID] = field(default_factory=dict)
    written: set[Pattern] = field(default_factory=set)

    def ask(self, request: Any, asker: Asker) -> Any:
        port = self.ports["OPEN" if asker.user is None else "CLIENT"]
        with socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(asker.host, 0)) as connection:
            if asker.user is not None:
                proof = f"\0{asker.user}\0{PASSWORDS[asker.user]}".encode()
                for step in (SaslHandshakeRequest(mechanism="PLAIN"), SaslAuthenticateRequest(auth_bytes=proof)):
                    assert _exchange(connection, step).error_code is ErrorCode.none
            return _exchange(connection, request)

    def write(self, acls: Acls) -> None:
        """Replace the ACLs that were written before, as a broker does: the ACL, and its notification."""
        for pattern in self.written - acls.keys():
            self._write(pattern, frozenset())
        for pattern, entries in acls.items():
            self._write(pattern, entries)
        self.written = set(acls)

    def _write(self, pattern: Pattern, entries: frozenset[Entry]) -> None:
        path = acl_path(pattern)
        if entries:
            self.zookeeper.ensure_path(path)
            self.zookeeper.set(path, encode_acls(entries))
        elif self.zookeeper.exists(path):
            self.zookeeper.delete(path)
        parent, told = paths.ACL_CHANGES, f"{pattern.type.value}:{pattern.name}".encode()
        if pattern.is_prefix:
            parent = paths.EXTENDED_ACL_CHANGES
            change = {"version": 1, "resourceType": pattern.type.name, "name": pattern.name, "patternType": "PREFIXED"}
            told = json.dumps(change).encode()
        self.zookeeper.create(f"{parent}/acl_changes_", told, sequence=True, makepath=True)

    def sees(self, name: str) -> bool:
        asked = MetadataRequest(
            topics=(MetadataRequestTopic(topic_id=None, name=TopicName(name)),),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        return self.ask(asked, SENTRY).topics[0].error_code is not ErrorCode.topic_authorization_failed


def _exchange(connection: socket.socket, request: Any) -> Any:
    connection.sendall(encode_request(request, 1, "test"))
    answer = connection.makefile("rb", buffering=0)
    length = int.from_bytes(_read(answer, 4), "big")
    return decode_response(load_response_schema(request.__api_key__, request.__version__), _read(answer, length))


def _read(answer: SocketIO, length: int) -> bytes:
    content = b""
    while len(content) < length:
        piece = answer.read(length - len(content))
        assert piece, "no answer"
        content += piece
    return content


def encode_acls(entries: frozenset[Entry]) -> bytes:
    acls = [
        {
            "principal": entry.principal,
            "permissionType": "Allow" if entry.is_allowed else "Deny",
            "operation": entry.operation.title,
            "host": entry.host,
        }
        for entry in sorted(entries)
    ]
    return json.dumps({"version": 1, "acls": acls}).encode()


@pytest.fixture(scope="module")
def nodes(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[list[Node]]:
    """A controller of Kafka and ours, each with the same topics."""
    with ExitStack() as stack:
        asked = []
        for name in ("acls-of-kafka", "acls-of-ours"):
            with zookeeper.client() as maker:
                maker.ensure_path(f"/{name}")
            kafka = SecuredKafka(servers_folder, zookeeper, listeners=LISTENERS, name=name, authorizes=True, brokers=1)
            stack.callback(kafka.close)
            client = stack.enter_context(zookeeper.client(f"/{name}"))
            node = Node(kafka.broker(BROKER).ports, BROKER, client)
            controller = None
            if name == "acls-of-ours":
                controller = stack.enter_context(_our_controller(servers_folder, kafka))
                node = Node(controller.ports, DEFAULT_CONTROLLER_ID, client)
            kafka.start()
            _create_topics(node)
            if controller is not None:
                # Until it knows delete.topic.enable, each deletion has the same answer, whatever the ACLs say.
                wait_until_metric(controller, "kontroller_brokers_with_unknown_settings", 0)
            asked.append(node)
        yield asked


def _our_controller(folder: RunFolder, kafka: SecuredKafka) -> ControllerProcess:
    file = kafka.write_properties(
        authorizer_class_name="kafka.security.authorizer.AclAuthorizer",
        super_users=f"User:{ADMIN}",
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512",
    )
    return ControllerProcess(
        folder,
        kafka.zookeeper_connect,
        name="acls-of-ours-controller",
        settings={"properties": str(file), "broker_cidr": ["127.0.0.0/8"]},
        listeners=LISTENERS,
    )


def _create_topics(node: Node) -> None:
    created = tuple(
        CreatableTopic(
            name=TopicName(name), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
        )
        for name in THERE
    )
    request = CreateTopicsRequest(
        topics=created, timeout=i32Timedelta.parse(timedelta(seconds=10)), validate_only=False
    )
    wait_until(
        lambda: _errors(node.ask(request, SUPER_USER)) == {ErrorCode.topic_already_exists}, "the topics are there"
    )
    for name in THERE:
        data, _ = node.zookeeper.get(f"{paths.TOPICS}/{name}")
        topic_id = codecs.decode_topic(ids.TopicName(name), data).topic_id
        assert topic_id is not None
        node.ids[name] = topic_id


def _errors(answer: Any) -> set[ErrorCode]:
    return {each.error_code for each in answer.topics}


def may_delete(acls: Acls, asker: Asker, name: str) -> bool:
    table = AclTable()
    for pattern, entries in acls.items():
        table.put(pattern, entries)
    rules = AuthorizerRules(super_users=frozenset({Principal.user(ADMIN)}))
    return rules.allows(table, asker.caller, Operation.DELETE, make_topic_resource(name))


def establish(nodes: list[Node], acls: Acls) -> None:
    """Write the ACLs, and wait until all nodes know them.

    The last ACLs, one of a name and one of a prefix, allow a topic that did not exist before, and that is visible from
    then on.
    """
    seen = frozenset({Entry(True, f"User:{ALICE}", Operation.DESCRIBE, SENTRY.host)})
    last = {is_prefix: f"z{next(_sentinels)}" for is_prefix in (False, True)}
    for node in nodes:
        node.write({**acls, **{Pattern(ResourceType.TOPIC, name, at): seen for at, name in last.items()}})
    for node in nodes:
        for name in last.values():
            wait_until(partial(node.sees, name), f"{node.node_id} knows the ACLs")


def _is_harmless(pattern: Pattern, entry: Entry) -> bool:
    """Return True if an ACL does not affect the client that checks whether ACLs have arrived."""
    is_about_him = entry.principal in (f"User:{ALICE}", "User:*") and entry.host == "*"
    return not (is_about_him and pattern == EVERY_TOPIC)


_ENTRIES = st.builds(
    Entry,
    is_allowed=st.sampled_from([True, True, False]),
    principal=st.sampled_from([f"User:{ALICE}", str(ANONYMOUS), "User:*", "User:somebody"]),
    operation=st.sampled_from(Operation),
    host=st.sampled_from(["*", HERE, HERE, ELSEWHERE]),
)
_PATTERNS = st.one_of(
    st.builds(Pattern, st.just(ResourceType.TOPIC), st.sampled_from(NAMES), st.just(value=False)),
    st.builds(Pattern, st.just(ResourceType.TOPIC), st.sampled_from(PREFIXES), st.just(value=True)),
    st.sampled_from([THE_CLUSTER, Pattern(ResourceType.CLUSTER, "kafka", is_prefix=True)]),
)


@st.composite
def acl_sets(draw: st.DrawFn) -> Acls:
    drawn = draw(st.dictionaries(_PATTERNS, st.frozensets(_ENTRIES, min_size=1, max_size=5), max_size=7))
    harmless = {
        pattern: frozenset(entry for entry in entries if _is_harmless(pattern, entry))
        for pattern, entries in drawn.items()
    }
    return {pattern: entries for pattern, entries in harmless.items() if entries}


@given(acls=acl_sets())
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to make one smaller takes minutes at real servers
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_the_same_acls_mean_the_same_to_kafkas_controller_and_to_ours(nodes: list[Node], acls: Acls) -> None:
    establish(nodes, acls)
    for asker in ASKERS:
        kept = [name for name in THERE if not may_delete(acls, asker, name)]
        of_kafka, ours = (
            {
                name: question.compared(node.ask(question.request, asker))
                for name, question in questions(node.node_id, node.ids, kept).items()
            }
            for node in nodes
        )
        assert ours == of_kafka, asker
