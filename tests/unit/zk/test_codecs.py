"""The znodes' JSON: exactly what Kafka 3.9 writes, everything that older versions left out, and clear refusals."""

from collections.abc import Callable
from uuid import UUID

import orjson
import pytest

from controller_core.model.ids import (
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    Broker,
    Endpoint,
    FeatureRange,
    LeaderAndIsr,
    LeaderRecoveryState,
    ReplicaAssignment,
    TopicAssignment,
)
from controller_core.zk import codecs
from controller_core.zk.codecs import FeatureZnode, LaterVersion, MalformedZnode, ProducerIdBlock
from controller_core.zk.session import SessionId, ZkNode, ZkVersion

ORDERS = TopicName("orders")
ORDERS_0 = TopicPartition(ORDERS, PartitionId(0))
B1, B2, B3 = BrokerId(1), BrokerId(2), BrokerId(3)
TOPIC_ID = TopicId(UUID("5d1c1c8e-8a5b-4f0e-9d7e-0123456789ab"))


def znode(data: bytes, *, version: int = 0, czxid: int = 7, mzxid: int = 9) -> ZkNode:
    return ZkNode(data=data, version=ZkVersion(version), czxid=czxid, mzxid=mzxid, ephemeral_owner=SessionId(0))


class TestClusterId:
    def test_the_id_is_read(self) -> None:
        assert codecs.decode_cluster_id(b'{"version":"1","id":"Yw_zLcjRQe2"}') == "Yw_zLcjRQe2"

    @pytest.mark.parametrize("data", [b"", b"Yw_zLcjRQe2", b"{}", b'{"id":7}'])
    def test_anything_else_is_refused(self, data: bytes) -> None:
        with pytest.raises(MalformedZnode, match="/cluster/id"):
            codecs.decode_cluster_id(data)


class TestBrokers:
    def test_a_kafka_3_9_registration_is_read_with_the_czxid_as_its_epoch(self) -> None:
        data = (
            b'{"features":{"metadata.version":{"min_version":1,"max_version":3}},'
            b'"listener_security_protocol_map":{"CLIENT":"SASL_SSL","PLAINTEXT":"PLAINTEXT"},'
            b'"endpoints":["CLIENT://[::1]:9093","PLAINTEXT://127.0.0.1:19091"],"jmx_port":-1,"port":19091,'
            b'"host":"127.0.0.1","version":5,"timestamp":"1700000000000","rack":"r1"}'
        )
        assert codecs.decode_broker(B1, znode(data)) == Broker(
            id=B1,
            epoch=BrokerEpoch(7),
            endpoints=(
                Endpoint(listener="CLIENT", security_protocol="SASL_SSL", host="::1", port=9093),
                Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="127.0.0.1", port=19091),
            ),
            rack="r1",
            features={"metadata.version": FeatureRange(min_version=1, max_version=3)},
        )

    def test_what_kafka_writes_is_what_is_encoded(self) -> None:
        broker = Broker(
            id=B1,
            epoch=BrokerEpoch(7),
            endpoints=(Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="127.0.0.1", port=19091),),
        )
        assert orjson.loads(codecs.encode_broker(broker, timestamp_ms=1700000000000)) == {
            "version": 5,
            "host": "127.0.0.1",
            "port": 19091,
            "endpoints": ["PLAINTEXT://127.0.0.1:19091"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "jmx_port": -1,
            "timestamp": "1700000000000",
            "features": {},
        }

    def test_without_a_plaintext_listener_host_and_port_are_empty(self) -> None:
        broker = Broker(
            id=B1,
            epoch=BrokerEpoch(7),
            endpoints=(Endpoint(listener="CLIENT", security_protocol="SSL", host="h", port=1),),
        )
        json = orjson.loads(codecs.encode_broker(broker))
        assert (json["host"], json["port"]) == (None, -1)

    @pytest.mark.parametrize(
        ("data", "listener"),
        [
            (b'{"version":1,"host":"h","port":9092}', "PLAINTEXT"),
            (b'{"version":2,"host":"h","port":9092,"endpoints":["SSL://h:9092"]}', "SSL"),
            (b'{"version":3,"host":null,"port":-1,"endpoints":["SSL://h:9092"],"rack":null}', "SSL"),
        ],
    )
    def test_registrations_of_old_versions_are_read(self, data: bytes, listener: str) -> None:
        broker = codecs.decode_broker(B1, znode(data))
        assert broker.endpoints == (Endpoint(listener=listener, security_protocol=listener, host="h", port=9092),)
        assert (broker.rack, broker.features) == (None, {})


class TestControllers:
    def test_the_controller_is_written_as_a_broker_expects_it(self) -> None:
        assert codecs.encode_controller(BrokerId(1000), 1700000000000) == (
            b'{"version":2,"brokerid":1000,"timestamp":"1700000000000","kraftControllerEpoch":-1}'
        )

    def test_a_controller_of_any_version_needs_only_its_id(self) -> None:
        assert codecs.decode_controller(b'{"version":1,"brokerid":3,"timestamp":"1"}') == 3

    def test_the_epoch_is_decimal_text(self) -> None:
        assert codecs.encode_controller_epoch(ControllerEpoch(12)) == b"12"
        assert codecs.decode_controller_epoch(b"12") == 12

    def test_a_producer_id_block_spells_its_ends_as_text(self) -> None:
        block = ProducerIdBlock(first=0, last=999, broker=B1)
        data = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
        assert codecs.encode_producer_id_block(block) == data
        assert codecs.decode_producer_id_block(data) == block


class TestTopics:
    def test_a_topic_is_written_in_numeric_order_with_only_what_moves(self) -> None:
        assignment = TopicAssignment(
            topic_id=TOPIC_ID,
            partitions={
                PartitionId(10): ReplicaAssignment(replicas=(B1,)),
                PartitionId(2): ReplicaAssignment(replicas=(B3, B1, B2), adding=(B3,), removing=(B2,)),
                PartitionId(0): ReplicaAssignment(replicas=(B1, B2)),
            },
        )
        assert codecs.encode_topic(assignment) == (
            b'{"version":3,"partitions":{"0":[1,2],"2":[3,1,2],"10":[1]},"adding_replicas":{"2":[3]},'
            b'"removing_replicas":{"2":[2]},"topic_id":"XRwcjopbTw6dfgEjRWeJqw"}'
        )
        assert codecs.decode_topic(ORDERS, codecs.encode_topic(assignment)) == assignment

    def test_a_topic_of_an_old_version_has_no_id_and_moves_nothing(self) -> None:
        topic = codecs.decode_topic(ORDERS, b'{"version":1,"partitions":{"10":[1],"9":[2]}}')
        assert topic.topic_id is None
        assert list(topic.partitions.items()) == [
            (9, ReplicaAssignment(replicas=(B2,))),
            (10, ReplicaAssignment(replicas=(B1,))),
        ]
        assert b"topic_id" not in codecs.encode_topic(topic)

    def test_a_state_is_written_as_kafka_does_and_its_version_is_the_partition_epoch(self) -> None:
        leadership = LeaderAndIsr(leader=B1, isr=(B1, B2), leader_epoch=LeaderEpoch(4))
        data = codecs.encode_partition_state(leadership, ControllerEpoch(2))
        assert data == b'{"version":1,"leader":1,"leader_epoch":4,"controller_epoch":2,"isr":[1,2]}'
        state = codecs.decode_partition_state(ORDERS_0, znode(data, version=6))
        assert (state.leader_and_isr, state.controller_epoch, state.partition_epoch) == (leadership, 2, 6)

    def test_the_recovery_state_is_written_only_while_recovering(self) -> None:
        leadership = LeaderAndIsr(leader=NO_LEADER, isr=(B1,), leader_recovery_state=LeaderRecoveryState.RECOVERING)
        data = codecs.encode_partition_state(leadership, ControllerEpoch(2))
        assert orjson.loads(data)["leader_recovery_state"] == 1
        assert codecs.decode_partition_state(ORDERS_0, znode(data)).leader_and_isr == leadership


class TestAdmin:
    def test_a_reassignment_is_the_json_of_kafkas_own_tool(self) -> None:
        plan = {ORDERS_0: (B3, B1)}
        data = codecs.encode_reassignment(plan)
        assert data == b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[3,1]}]}'
        decoded = codecs.decode_reassignment(data)
        assert (decoded.partitions, decoded.rejected) == (plan, ())

    @pytest.mark.parametrize(
        ("entry", "reason"),
        [
            ('{"topic":"orders","partition":1,"replicas":[]}', "replicas: List should have at least 1 item"),
            ('{"topic":"orders","partition":1,"replicas":[1,1]}', "names a broker twice"),
            ('{"topic":"orders","partition":1,"replicas":[1,-1]}', "replicas.1: Input should be greater than"),
            ('{"topic":"orders","partition":1,"replicas":["1"]}', "replicas.0: Input should be a valid integer"),
            ('{"topic":"orders","partition":1,"replicas":[true]}', "replicas.0: Input should be a valid integer"),
            ('{"topic":"orders","partition":-1,"replicas":[1]}', "partition: Input should be greater than"),
            ('{"topic":"","partition":1,"replicas":[1]}', "topic: Value error, Topic name is invalid"),
            ('{"partition":1,"replicas":[1]}', "topic: Field required"),
            ('{"topic":"orders","partition":0,"replicas":[2]}', "orders-0 has an earlier entry"),
            ("[]", "each entry must be an object"),
        ],
    )
    def test_a_bad_entry_is_reported_and_holds_up_no_other(self, entry: str, reason: str) -> None:
        first = '{"topic":"orders","partition":0,"replicas":[1],"log_dirs":["any"]}'
        last = '{"topic":"orders","partition":2,"replicas":[2,3]}'
        plan = codecs.decode_reassignment(f'{{"version":1,"partitions":[{first},{entry},{last}]}}'.encode())
        assert plan.partitions == {ORDERS_0: (B1,), TopicPartition(ORDERS, PartitionId(2)): (B2, B3)}
        (rejected,) = plan.rejected
        assert rejected.startswith("entry 1, ")
        assert reason in rejected

    def test_a_preferred_election_names_partitions_once(self) -> None:
        data = codecs.encode_partitions([ORDERS_0])
        assert data == b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
        twice = b'{"version":1,"partitions":[{"topic":"orders","partition":0},{"topic":"orders","partition":0},{}]}'
        plan = codecs.decode_preferred_election(twice)
        assert plan.partitions == (ORDERS_0,)
        assert plan.rejected == ("entry 2, {}: topic: Field required; partition: Field required",)


class TestNotifications:
    def test_isr_changes_and_log_dir_events_have_kafkas_form(self) -> None:
        isr_change = b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
        assert codecs.encode_partitions([ORDERS_0]) == isr_change
        assert codecs.decode_isr_change(isr_change) == (ORDERS_0,)
        log_dir_event = b'{"version":1,"broker":1,"event":1}'
        assert codecs.encode_log_dir_event(B1) == log_dir_event
        assert codecs.decode_log_dir_event(log_dir_event) == B1


class TestConfigs:
    def test_a_config_holds_strings_and_an_empty_znode_none(self) -> None:
        data = b'{"version":1,"config":{"retention.ms":"1000"}}'
        assert codecs.encode_config({"retention.ms": "1000"}) == data
        assert codecs.decode_config(data) == {"retention.ms": "1000"}
        assert codecs.decode_config(b"") == {}

    def test_a_change_names_its_entity_in_either_version(self) -> None:
        data = codecs.encode_config_change("topics/orders")
        assert data == b'{"version":2,"entity_path":"topics/orders"}'
        assert codecs.decode_config_change(data) == "topics/orders"
        old = b'{"version":1,"entity_type":"topics","entity_name":"orders"}'
        assert codecs.decode_config_change(old) == "topics/orders"


class TestFeatures:
    def test_finalized_levels_are_written_as_kafka_3_9_writes_them(self) -> None:
        data = b'{"version":2,"status":1,"features":{"f":{"max_version_level":3}}}'
        assert codecs.encode_features(FeatureZnode(features={"f": 3})) == data
        assert codecs.decode_features(data) == FeatureZnode(features={"f": 3})

    def test_version_1_is_read_without_its_lowest_level(self) -> None:
        data = b'{"version":1,"status":0,"features":{"f":{"min_version_level":2,"max_version_level":3}}}'
        assert codecs.decode_features(data) == FeatureZnode(version=1, is_enabled=False, features={"f": 3})


STATE = '{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1]%s}'


@pytest.mark.parametrize(
    ("decode", "data", "message"),
    [
        (codecs.decode_controller, "", r"/controller: expected a JSON object, found ''"),
        (codecs.decode_controller, "{}", r'/controller: the field "brokerid" is missing'),
        (codecs.decode_controller_epoch, "x", r"/controller_epoch: expected a decimal number such as 7, found 'x'"),
        (codecs.decode_producer_id_block, '{"block_start":"a"}', '"block_start" must be a whole number'),
        (lambda data: codecs.decode_topic(ORDERS, data), "[]", r"/brokers/topics/orders: expected a JSON object"),
        (lambda data: codecs.decode_whole_topic(ORDERS, data), '{"partitions":{"x":[1]}}', "numbers as its keys"),
        (lambda data: codecs.decode_whole_topic(ORDERS, data), '{"partitions":{"0":[1,1]}}', '"partitions.0" names a'),
        (lambda data: codecs.decode_whole_topic(ORDERS, data), '{"partitions":{"0":[1.5]}}', "list of whole numbers"),
        (lambda data: codecs.decode_topic(ORDERS, data), '{"partitions":{},"topic_id":"short"}', "22 characters"),
        (lambda data: codecs.decode_broker(B1, znode(data)), '{"endpoints":["h:1"]}', "LISTENER://host:port"),
        (lambda data: codecs.decode_broker(B1, znode(data)), '{"version":1,"port":1}', '"host" is missing'),
        (
            lambda data: codecs.decode_broker(B1, znode(data)),
            '{"endpoints":[],"features":{"f":1}}',
            "an object, found 1",
        ),
        (lambda data: codecs.decode_partition_state(ORDERS_0, znode(data)), "nonsense", "orders/partitions/0/state"),
        (lambda data: codecs.decode_partition_state(ORDERS_0, znode(data)), "[1]", "expected a JSON object"),
        (lambda data: codecs.decode_partition_state(ORDERS_0, znode(data)), '{"leader":1}', "is missing"),
        (
            lambda data: codecs.decode_partition_state(ORDERS_0, znode(data)),
            STATE % ',"leader_recovery_state":2',
            "0 or 1, found 2",
        ),
        (
            lambda data: codecs.decode_partition_state(ORDERS_0, znode(data)),
            STATE.replace('"leader":1', '"leader":true') % "",
            '"leader" must be a whole number, found true',
        ),
        (
            lambda data: codecs.decode_partition_state(ORDERS_0, znode(data)),
            STATE.replace("[1]", '["1"]') % "",
            '"isr" must be a list of whole numbers',
        ),
        (codecs.decode_reassignment, "not json", "/admin/reassign_partitions: expected a JSON object"),
        (codecs.decode_reassignment, '{"partitions":{}}', '"partitions" must be a list'),
        (codecs.decode_preferred_election, "{}", '"partitions" is missing'),
        (codecs.decode_isr_change, '{"partitions":[1]}', '"partitions" must hold objects, found 1'),
        (codecs.decode_log_dir_event, '{"broker":null}', '"broker" is missing'),
        (codecs.decode_config, '{"config":{"a":1}}', 'config "a" must be a string'),
        (codecs.decode_config_change, "{}", '"entity_type" is missing'),
        (codecs.decode_features, "", "/feature: expected a JSON object, found ''"),
        (codecs.decode_features, '{"version":3}', "/feature: version 3 is unknown; known are 1 to 2"),
        (codecs.decode_features, '{"version":2}', '"status" is missing'),
        (codecs.decode_features, '{"version":2,"status":1}', '"features" is missing'),
        (
            codecs.decode_features,
            '{"version":2,"status":2}',
            r'"status" must be 0 \(disabled\) or 1 \(enabled\), found 2',
        ),
        (codecs.decode_features, '{"version":2,"status":1,"features":{"f":1}}', '"f" must be an object, found 1'),
        (
            codecs.decode_features,
            '{"version":2,"status":1,"features":{"f":{"max_version_level":0}}}',
            'the levels of feature "f" must be 1 or more',
        ),
        (
            codecs.decode_features,
            '{"version":1,"status":1,"features":{"f":{"max_version_level":3}}}',
            '"min_version_level" is missing',
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_path_and_reason(
    decode: Callable[[bytes], object], data: str, message: str
) -> None:
    with pytest.raises(MalformedZnode, match=message):
        decode(data.encode())


TOO_LARGE = 2**31
MANY_DIGITS = "9" * 4400


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        pytest.param(codecs.decode_controller, f'{{"brokerid":{TOO_LARGE}}}', id="controller"),
        pytest.param(codecs.decode_controller, '{"brokerid":-1}', id="negative controller"),
        pytest.param(codecs.decode_controller_epoch, str(TOO_LARGE - 1), id="the last epoch"),
        pytest.param(codecs.decode_controller_epoch, MANY_DIGITS, id="an epoch of many digits"),
        pytest.param(codecs.decode_controller_epoch, "-1", id="negative epoch"),
        pytest.param(codecs.decode_producer_id_block, '{"broker":1,"block_start":0,"block_end":-1}', id="negative ids"),
        pytest.param(
            codecs.decode_producer_id_block, f'{{"broker":1,"block_start":0,"block_end":"{2**63}"}}', id="too many ids"
        ),
        pytest.param(codecs.decode_log_dir_event, f'{{"broker":"{MANY_DIGITS}"}}', id="log directory"),
        pytest.param(codecs.decode_isr_change, f'{{"partitions":[{{"topic":"t","partition":{TOO_LARGE}}}]}}', id="ISR"),
        pytest.param(
            codecs.decode_features,
            '{"version":2,"status":1,"features":{"f":{"max_version_level":32768}}}',
            id="level of a feature",
        ),
        pytest.param(codecs.decode_cluster_id, f'{{"id":"{"x" * 40_000}"}}', id="cluster id"),
        pytest.param(
            lambda data: codecs.decode_broker(B1, znode(data)),
            '{"endpoints":["PLAINTEXT://h:1"],"features":{"f":{"min_version":0,"max_version":32768}}}',
            id="feature of a broker",
        ),
        pytest.param(
            lambda data: codecs.decode_broker(B1, znode(data)), '{"endpoints":["PLAINTEXT://:1"]}', id="no host"
        ),
        pytest.param(
            lambda data: codecs.decode_broker(B1, znode(data)),
            f'{{"endpoints":["PLAINTEXT://{"h" * 40_000}:1"]}}',
            id="long host",
        ),
        pytest.param(
            lambda data: codecs.decode_broker(B1, znode(data)),
            f'{{"endpoints":["PLAINTEXT://h:1"],"rack":"{"r" * 40_000}"}}',
            id="long rack",
        ),
        pytest.param(
            lambda data: codecs.decode_broker(B1, znode(data)), '{"version":1,"host":"h","port":65536}', id="port"
        ),
        *(
            pytest.param(
                lambda data: codecs.decode_partition_state(ORDERS_0, znode(data)),
                (STATE % "").replace(f'"{name}":{good}', f'"{name}":{bad}'),
                id=f"{name} {bad}",
            )
            for name, good, bad in (
                ("leader", 1, TOO_LARGE),
                ("leader", 1, -2),
                ("leader_epoch", 0, TOO_LARGE - 1),
                ("leader_epoch", 0, -1),
                ("controller_epoch", 1, TOO_LARGE),
                ("isr", "[1]", f"[{TOO_LARGE}]"),
                ("isr", "[1]", "[-1]"),
                ("isr", "[1]", "{}"),
            )
        ),
        *(
            pytest.param(
                lambda data: codecs.decode_whole_topic(ORDERS, data), f'{{"partitions":{{{entry}}}}}', id=entry[:40]
            )
            for entry in (
                f'"0":[{TOO_LARGE}]',
                '"0":[-1]',
                f'"{TOO_LARGE}":[1]',
                f'"{MANY_DIGITS}":[1]',
                '"00":[1]',
                '"٣":[1]',
                '"0":[1]},"removing_replicas":{"0":[2147483648]',
            )
        ),
    ],
)
def test_a_value_outside_its_type_is_refused(decode: Callable[[bytes], object], data: str) -> None:
    with pytest.raises(MalformedZnode):
        decode(data.encode())


def test_what_is_nested_too_deep_is_described_all_the_same() -> None:
    with pytest.raises(MalformedZnode, match="nested too deep"):
        codecs.decode_reassignment(b'{"partitions":{"x":' + b"[" * 400 + b"]" * 400 + b"}}")


def test_a_bad_entry_of_a_topic_is_kept_and_written_back() -> None:
    data = (
        b'{"version":3,"partitions":{"0":[1,2],"1":[2147483648],"x":null},"adding_replicas":{"1":[7]},'
        b'"removing_replicas":{},"topic_id":"XRwcjopbTw6dfgEjRWeJqw"}'
    )
    topic = codecs.decode_topic(ORDERS, data)
    assert dict(topic.partitions) == {PartitionId(0): ReplicaAssignment(replicas=(B1, B2))}
    assert [entry.key for entry in topic.unusable] == ["1", "x"]
    assert codecs.encode_topic(topic) == data


def test_what_comes_or_goes_is_assigned() -> None:
    data = b'{"partitions":{"0":[1,2]},"adding_replicas":{"0":[2,9]},"removing_replicas":{"0":[7,1]}}'
    (assignment,) = codecs.decode_topic(ORDERS, data).partitions.values()
    assert assignment == ReplicaAssignment(replicas=(B1, B2), adding=(B2,), removing=(B1,))


@pytest.mark.parametrize(("number", "is_usable"), [("99999", True), ("100000", False)])
def test_a_partition_has_a_folder_on_its_brokers(number: str, is_usable: bool) -> None:
    topic = codecs.decode_topic(TopicName("t" * 249), f'{{"partitions":{{"0":[1],"{number}":[1]}}}}'.encode())
    assert (PartitionId(int(number)) in topic.partitions) is is_usable
    assert len(topic.unusable) == (not is_usable)


def test_a_listener_has_one_endpoint_and_a_name_in_capitals() -> None:
    """Brokers refuse every UpdateMetadata in which a broker has a listener twice."""
    data = b'{"endpoints":["plaintext://h:1","PLAINTEXT://h:2"],"listener_security_protocol_map":{"plaintext":"plaintext"}}'
    broker = codecs.decode_broker(B1, znode(data))
    assert broker.endpoints == (Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="h", port=1),)
    assert broker.unusable == ('listener "PLAINTEXT" appears twice; give each its own name',)


def test_an_entry_that_could_not_be_written_back_makes_its_topic_unreadable() -> None:
    nested = "[" * 400 + "]" * 400
    with pytest.raises(MalformedZnode):
        codecs.decode_topic(ORDERS, f'{{"partitions":{{"0":[1],"1":{nested}}}}}'.encode())


@pytest.mark.parametrize(
    "decode",
    [lambda d: codecs.decode_throttle("/t", d), lambda d: codecs.decode_record("/t", d), codecs.decode_deleted_topics],
)
@pytest.mark.parametrize("version", ["2", "99", '"1"', "1.5", "true"])
def test_a_znode_of_ours_of_a_later_version_is_not_read(decode: Callable[[bytes], object], version: str) -> None:
    with pytest.raises(LaterVersion, match="a later Kontroller"):
        decode(f'{{"version":{version}}}'.encode())


@pytest.mark.parametrize("entity", ["", "topics/", "topics/../x", "users/alice", "brokers/x", "brokers/007", "/"])
def test_a_claim_is_of_a_broker_or_a_topic(entity: str) -> None:
    with pytest.raises(MalformedZnode):
        codecs.decode_record("/t", f'{{"version":1,"claims":{{"{entity}":{{}}}}}}'.encode())


def test_an_entity_without_settings_claims_nothing() -> None:
    data = b'{"version":1,"claims":{"topics/orders":{},"brokers/1":{"rate":{"values":["7"],"is_created":false}}}}'
    record = codecs.decode_record("/t", data)
    assert list(record.claims) == ["brokers/1"]
    assert codecs.decode_record("/t", codecs.encode_record(record)) == record
