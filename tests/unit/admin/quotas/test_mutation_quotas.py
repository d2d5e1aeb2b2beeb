"""Controller mutation quotas at the controller's listener: the charge of each request, and who pays, as in Kafka and by
version."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller_core.admin.authorizing.authorization import Authorization
from controller_core.admin.authorizing.known_acls import KnownAcls
from controller_core.admin.authorizing.split_apis import DELETE_TOPICS
from controller_core.admin.quotas.mutation_quotas import MutationQuotas
from controller_core.admin.quotas.zk_quotas import ZkQuotas
from controller_core.controller.term.term import Term
from controller_core.model.access import parse_address
from controller_core.model.authorization.acls import AclTable, Entry, Operation, Pattern, ResourceType
from controller_core.model.authorization.decision import AuthorizerRules
from controller_core.model.authorization.principal import Caller, Principal
from controller_core.model.quotas.entities import EVERYBODY, Entity
from controller_core.process.listening import ListenerAssembly
from controller_core.process.run import SERVED_APIS
from controller_core.wire.codecs.frames import decode_response, encode_request, read_request_head
from controller_core.wire.codecs.versions import convert
from controller_core.wire.listener.owned_api import Throttled
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster
from simulation.zookeeper_session import SimulatedSession
from tests.unit.admin.quotas.written_quotas import put, set_rate
from tests.unit.admin.topics.test_create_partitions import request as growth
from tests.unit.admin.topics.test_create_partitions import topic as grown
from tests.unit.admin.topics.test_create_topics import request as creation
from tests.unit.admin.topics.test_create_topics import topic
from tests.unit.admin.topics.test_delete_topics import identify_topic, name_topic
from tests.unit.admin.topics.test_delete_topics import request as deletion

EXCEEDED, NONE = ErrorCode.throttling_quota_exceeded, ErrorCode.none
ALICE, BOB = (
    Caller(address=parse_address("10.0.0.1"), principal=Principal.user(name), is_authenticated=True)
    for name in ("alice", "bob")
)
SLOW = 0.001
"""A bucket is full with 0.011."""
OWED_MS = 989_000
"""The debt for one partition."""


@dataclass
class House:
    """A cluster whose topics `one` and `two` have three partitions each, and its listener."""

    cluster: Cluster
    session: SimulatedSession
    registry: CollectorRegistry
    assembly: ListenerAssembly

    def set_rate(self, rate: object, user: str | None = "alice", client_id: str | None = None) -> None:
        set_rate(self.cluster.zk, Entity(user, client_id), rate)

    async def answer(self, request: Any, caller: Caller = ALICE, client_id: str = "app") -> bytes | Throttled:
        (api,) = (api for api in self.assembly.make_apis("PLAINTEXT") if api.key == request.__api_key__)
        content = encode_request(request, 1, client_id)[4:]
        asking = asyncio.create_task(api.respond(read_request_head(content), content, caller))
        await self.cluster.settle()
        answer = await asking
        assert isinstance(answer, bytes | Throttled)
        return answer

    async def ask(self, request: Any, caller: Caller = ALICE, client_id: str = "app") -> tuple[list[ErrorCode], int]:
        """Send a request. Return the error of each part, and the throttle time in milliseconds, in which the caller is
        not served."""
        answer = await self.answer(request, caller, client_id)
        frame = answer.frame if isinstance(answer, Throttled) else answer
        response: Any = decode_response(load_response_schema(request.__api_key__, request.__version__), frame[4:])
        parts = next(getattr(response, name) for name in ("topics", "responses", "results") if hasattr(response, name))
        throttle_ms = response.throttle_time // timedelta(milliseconds=1)
        assert throttle_ms == (answer.throttle_ms if isinstance(answer, Throttled) else 0)
        return [part.error_code for part in parts], throttle_ms

    def metric(self, name: str, labels: Mapping[str, str] | None = None) -> float | None:
        return self.registry.get_sample_value(name, dict(labels or {}))


def house_of(cluster: Cluster, term: Any, answer: Any, authorization: Authorization | None = None) -> House:
    registry = CollectorRegistry()
    session = cluster.zk.session()
    quotas = MutationQuotas(ZkQuotas(session, windows_s=lambda: 11), cluster.clock.monotonic_ms, registry)
    assembly = ListenerAssembly(session, SERVED_APIS, term, answer, authorization=authorization, quotas=quotas)
    return House(cluster, session, registry, assembly)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2, 3)
        process = await cluster.serve()
        for name in ("one", "two"):
            cluster.create_topic(name, [1], [2], [3])
        await cluster.settle()
        yield house_of(cluster, lambda: process.controller.term, process.answer)


def older(request: Any, version: int) -> Any:
    kind: Any = load_request_schema(request.__api_key__, version)
    if request.__api_key__ == DELETE_TOPICS and version < 6:
        return kind(topic_names=tuple(each.name for each in request.topics), timeout=request.timeout)
    return convert(request, kind)


def pair(first: Any, second: Any, version: int) -> Any:
    """Two requests of one version."""
    return pytest.param(older(first, version), older(second, version), id=f"{type(first).__name__} {version}")


CREATIONS = (creation(topic("new", 3, 1)), creation(topic("newer", 3, 1)))
DELETIONS = (deletion(name_topic("one")), deletion(name_topic("two")))
GROWTHS = (growth(grown("one", 6)), growth(grown("two", 6)))
STRICT = [
    *(pair(*CREATIONS, version) for version in (6, 7)),
    *(pair(*DELETIONS, version) for version in (5, 6)),
    pair(*GROWTHS, 3),
]
PERMISSIVE = [
    *(pair(*CREATIONS, version) for version in (2, 5)),
    *(pair(*DELETIONS, version) for version in (1, 4)),
    *(pair(*GROWTHS, version) for version in (0, 2)),
]


@pytest.mark.parametrize(("first", "second"), STRICT)
async def test_what_a_client_that_knows_the_error_asks_beyond_his_quota_is_refused(
    house: House, first: Any, second: Any
) -> None:
    house.set_rate(SLOW)
    assert await house.ask(first) == ([NONE], 0)
    before = house.cluster.zk.tree.zxid
    codes, throttle_ms = await house.ask(second)
    assert codes == [EXCEEDED]
    assert 2_980_000 < throttle_ms <= 2_989_000
    assert house.cluster.zk.tree.zxid == before, "nothing is written"


@pytest.mark.parametrize(("first", "second"), PERMISSIVE)
async def test_of_a_client_that_does_not_know_it_all_is_done_and_he_is_told_to_wait(
    house: House, first: Any, second: Any
) -> None:
    house.set_rate(SLOW)
    for request, owed in ((first, 3), (second, 6)):
        codes, throttle_ms = await house.ask(request)
        assert codes == [NONE]
        assert owed * 1e6 - 20_000 < throttle_ms <= owed * 1e6 - 11_000


async def test_who_has_no_quota_is_charged_nothing_and_leaves_no_trace(house: House) -> None:
    house.set_rate(SLOW)
    for number in range(3):
        assert await house.ask(creation(topic(f"of-bob-{number}", 3, 1)), BOB) == ([NONE], 0)
    assert house.metric("kontroller_mutation_quota_buckets") == 0


async def test_of_several_topics_those_are_done_that_come_first(house: House) -> None:
    house.set_rate(SLOW)
    asked = creation(*(topic(name, 1, 1) for name in ("a", "b", "c")))
    assert await house.ask(asked) == ([NONE, EXCEEDED, EXCEEDED], OWED_MS)


async def test_a_quota_that_changes_counts_at_once(house: House) -> None:
    house.set_rate(SLOW)
    await house.ask(creation(topic("a", 1, 1)))
    assert (await house.ask(creation(topic("b", 1, 1))))[0] == [EXCEEDED]
    house.set_rate(1000)
    house.cluster.clock._elapsed_ms += 1000
    assert (await house.ask(creation(topic("b", 1, 1))))[0] == [NONE]
    put(house.cluster.zk, "/config/users/alice", b'{"config":{}}')
    assert (await house.ask(creation(topic("c", 100, 1))))[0] == [NONE]


async def test_a_debt_is_paid_by_waiting_as_long_as_one_was_told(house: House) -> None:
    house.set_rate(SLOW)
    await house.ask(creation(topic("a", 1, 1)))
    _, throttle_ms = await house.ask(creation(topic("b", 1, 1)))
    house.cluster.clock._elapsed_ms += throttle_ms
    assert (await house.ask(creation(topic("b", 1, 1))))[0] == [NONE]


async def test_all_clients_of_a_user_share_what_is_set_for_users(house: House) -> None:
    house.set_rate(SLOW, EVERYBODY)
    await house.ask(creation(topic("a", 1, 1)), client_id="app")
    assert (await house.ask(creation(topic("b", 1, 1)), client_id="other"))[0] == [EXCEEDED]
    assert (await house.ask(creation(topic("b", 1, 1)), BOB))[0] == [NONE]


async def test_who_does_not_say_who_he_is_is_anonymous_and_known_by_his_client_id(house: House) -> None:
    house.set_rate(SLOW, "ANONYMOUS", EVERYBODY)
    nobody = Caller()
    await house.ask(creation(topic("a", 1, 1)), nobody, "app")
    assert (await house.ask(creation(topic("b", 1, 1)), nobody, "app"))[0] == [EXCEEDED]
    assert (await house.ask(creation(topic("b", 1, 1)), nobody, "other"))[0] == [NONE]
    assert (await house.ask(creation(topic("c", 1, 1)), nobody, ""))[0] == [NONE]
    assert (await house.ask(creation(topic("d", 1, 1)), nobody, ""))[0] == [NONE]


async def test_what_is_only_validated_is_neither_charged_nor_refused(house: House) -> None:
    house.set_rate(SLOW)
    validated = (creation(topic("a", 9, 1), validate_only=True), growth(grown("one", 9), validate_only=True))
    for request in validated:
        assert await house.ask(request) == ([NONE], 0)
    assert await house.ask(creation(topic("a", 1, 1))) == ([NONE], 0)
    for request in (creation(topic("b", 9, 1), validate_only=True), validated[1]):
        assert await house.ask(request) == ([NONE], 0)


async def test_what_is_refused_anyway_is_not_charged_and_says_why(house: House) -> None:
    house.set_rate(SLOW)
    refused = {
        creation(topic("one", 3, 1)): ErrorCode.topic_already_exists,
        creation(topic("a", 0, 1)): ErrorCode.invalid_partitions,
        growth(grown("one", 1)): ErrorCode.invalid_partitions,
        deletion(name_topic("ghost")): ErrorCode.unknown_topic_or_partition,
    }
    for request, code in refused.items():
        assert await house.ask(request) == ([code], 0)
    assert await house.ask(creation(topic("a", 1, 1))) == ([NONE], 0), "nothing was charged"
    for request, code in refused.items():
        if request != creation(topic("a", 0, 1)):
            assert await house.ask(request) == ([code], 0)


async def test_a_topic_that_is_named_twice_is_charged_once(house: House) -> None:
    house.set_rate(SLOW)
    topic_id = house.cluster.topic("one").topic_id
    assert await house.ask(deletion(name_topic("one"), identify_topic(topic_id), name_topic("one"))) == ([NONE] * 3, 0)
    codes, throttle_ms = await house.ask(deletion(name_topic("two"), name_topic("two")))
    assert codes == [EXCEEDED, EXCEEDED]
    assert throttle_ms <= 2_989_000


async def test_what_was_waited_for_the_answer_is_not_to_be_waited_again(house: House) -> None:
    house.set_rate(SLOW)
    waiting = older(creation(topic("waiting", assignment={0: [9]}), timeout_ms=1000), 5)
    codes, throttle_ms = await house.ask(waiting)
    assert codes == [ErrorCode.request_timed_out]
    assert throttle_ms == OWED_MS - 1000


async def test_a_process_that_is_not_the_controller_charges_nobody_and_looks_up_nothing(house: House) -> None:
    standby = house.cluster.start_controller(1001)
    await house.cluster.settle()
    other = house_of(house.cluster, lambda: standby.controller.term, standby.answer)
    other.set_rate(SLOW)
    house.cluster.zk.disconnect(other.session)
    for _ in range(2):
        assert await other.ask(creation(topic("a", 1, 1))) == ([ErrorCode.not_controller], 0)
    assert other.metric("kontroller_mutation_quota_buckets") == 0


async def test_what_acls_refuse_is_not_charged(house: House) -> None:
    class Told(KnownAcls):
        async def table(self) -> AclTable:
            acls = AclTable()
            acls.put(Pattern(ResourceType.TOPIC, "mine"), [Entry(True, "User:alice", Operation.CREATE, "*")])
            return acls

    cluster, process = house.cluster, house.cluster.active
    term: Term = process.term
    authorization = Authorization(AuthorizerRules(), Told(cluster.zk.session()), CollectorRegistry())
    asked = house_of(cluster, lambda: term, process.answer, authorization)
    asked.set_rate(SLOW)
    refused = ErrorCode.topic_authorization_failed
    assert await asked.ask(creation(topic("theirs", 9, 1))) == ([refused], 0)
    assert asked.metric("kontroller_mutation_quota_buckets") == 0
    assert await asked.ask(creation(topic("theirs", 9, 1), topic("mine", 1, 1))) == ([refused, NONE], 0)
    older_request = older(creation(topic("mine", 1, 1), topic("theirs", 1, 1)), 5)
    assert await asked.ask(older_request) == ([ErrorCode.topic_already_exists, refused], 0)


async def test_who_exceeds_is_said_once_a_minute_and_counted(house: House) -> None:
    house.set_rate(SLOW)
    with capture_logs() as logged:
        await house.ask(creation(topic("a", 1, 1)))
        for _ in range(3):
            await house.ask(creation(topic("b", 1, 1), topic("c", 1, 1)), client_id="x" * 5_000)
        await house.ask(older(creation(topic("d", 1, 1)), 5))
    (line,) = (line for line in logged if line["event"] == "mutation quota exceeded")
    assert (line["principal"], line["client_id"], line["quota"]) == ("User:alice", "x" * 100, "/config/users/alice")
    exceeded = "kontroller_mutation_quota_exceeded_total"
    assert house.metric(exceeded, {"enforcement": "strict"}) == 3
    assert house.metric(exceeded, {"enforcement": "permissive"}) == 1
    assert house.metric("kontroller_mutation_quota_buckets") == 1


async def test_one_that_makes_no_sense_is_counted(house: House) -> None:
    house.set_rate("NaN")
    assert await house.ask(creation(topic("a", 9, 1))) == ([NONE], 0)
    assert house.metric("kontroller_unusable_mutation_quotas") == 1
