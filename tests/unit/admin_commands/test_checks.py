"""The findings of the checks of an installation, and their texts."""

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest
from kio.schema.api_versions.v3 import ApiVersionsRequest
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kio.schema.describe_quorum.v0 import DescribeQuorumRequest, DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import Unreachable
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerId
from controller_operator.kubernetes.object_api import ApiError, ApiForbidden, ApiRefused, ApiUnavailable, ObjectGone
from controller_operator.resources import KINDS
from kontroller.checks.api import look_at_api
from kontroller.checks.cluster import look_at_cluster
from kontroller.checks.empty_brokers import ReplicasLeft, look_for_replicas
from kontroller.checks.waiting import NotWell, wait_until_well
from tests.unit.client.transport.quorums import NO_TIME, make_api_versions, quorum_led_by

Response = TypeVar("Response", bound=ResponsePayload)

ALL_KINDS = frozenset(kind.definition.kind for kind in KINDS)


@dataclass
class SimulatedMembers:
    """Members of a cluster by their ports, each with the controller and the members that it knows."""

    known: dict[int, tuple[int, tuple[int, ...]]]
    controller_answers: ErrorCode | None = ErrorCode.none
    """None: it does not answer."""
    quorum: DescribeQuorumResponse | None = None
    """The answer to DescribeQuorum, if there is a quorum."""
    asked: int = 1
    topics: tuple[MetadataResponseTopic, ...] = ()
    files: dict[int, dict[str, str]] = field(default_factory=dict)
    """The settings in the members' files. A member that is not here refuses to return them."""

    def restrict_to(self, address: Address) -> "SimulatedMembers":
        return replace(self, asked=address.port)

    async def ask_any(self, request: RequestPayload, response_type: type[Response]) -> Response:
        if self.asked not in self.known:
            raise Unreachable(f"{self.asked} cannot be reached")
        if isinstance(request, DescribeConfigsRequest):
            configs: Any = make_file_answer(self.asked, self.files.get(self.asked))
            assert isinstance(configs, response_type)
            return configs
        controller, members = self.known[self.asked]
        metadata: Any = MetadataResponse(
            throttle_time=NO_TIME,
            brokers=tuple(
                MetadataResponseBroker(node_id=WireBrokerId(member), host="kafka", port=i32(member), rack=None)
                for member in members
            ),
            cluster_id="c",
            controller_id=WireBrokerId(controller),
            topics=self.topics,
        )
        assert isinstance(metadata, response_type)
        return metadata

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        if isinstance(request, ApiVersionsRequest):
            answer: Any = make_api_versions(has_quorum=self.quorum is not None)
        elif isinstance(request, DescribeQuorumRequest):
            answer = self.quorum
        else:
            answer = self._answer_as_controller(request)
        assert isinstance(answer, response_type)
        return answer

    def _answer_as_controller(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, ListPartitionReassignmentsRequest)
        if self.controller_answers is None:
            raise Unreachable("nobody answered")
        return ListPartitionReassignmentsResponse(
            throttle_time=NO_TIME, error_code=self.controller_answers, error_message=None, topics=()
        )


def make_file_answer(member: int, file: dict[str, str] | None) -> DescribeConfigsResponse:
    result = DescribeConfigsResult(
        error_code=ErrorCode.cluster_authorization_failed if file is None else ErrorCode.none,
        error_message=None,
        resource_type=i8(4),
        resource_name=str(member),
        configs=tuple(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=True,
                config_source=i8(4),
                is_sensitive=False,
                synonyms=(DescribeConfigsSynonym(name=name, value=value, source=i8(4)),),
                config_type=i8(0),
                documentation=None,
            )
            for name, value in (file or {}).items()
        ),
    )
    return DescribeConfigsResponse(throttle_time=NO_TIME, results=(result,))


def members(**differently: tuple[int, tuple[int, ...]]) -> SimulatedMembers:
    known: dict[int, tuple[int, tuple[int, ...]]] = dict.fromkeys((1, 2, 9), (9, (1, 2, 9)))
    known |= {int(name[1:]): value for name, value in differently.items()}
    return SimulatedMembers(known, files={member: {} for member in known})


async def test_a_cluster_that_agrees_on_its_controller_is_well() -> None:
    assert await look_at_cluster(members()) == "cluster c: 9 at kafka:9 is the controller, say all of 1,2,9"


async def test_a_cluster_without_zookeeper_is_well_when_its_quorum_has_a_leader_whoever_brokers_name() -> None:
    said = await look_at_cluster(replace(members(_2=(1, (1, 2, 9))), quorum=quorum_led_by(101)))
    assert said == "cluster c: 101 leads the quorum of controllers in epoch 5, and all of 1,2,9 know each other"


async def test_settings_that_differ_are_named_and_members_that_do_not_return_them() -> None:
    files = {1: {"num.partitions": "6"}, 9: {"num.partitions": "1"}}
    said = await look_at_cluster(replace(members(), files=files))
    assert said.splitlines()[1:] == [
        "settings differ: num.partitions is 1 at 9; 6 at 1",
        "settings of 2 are not known: DescribeConfigs: cluster_authorization_failed",
    ]


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        (replace(members(), quorum=quorum_led_by(-1)), "the quorum of controllers has no leader"),
        (replace(members(_2=(9, (1, 9))), quorum=quorum_led_by(101)), "2 knows the members 1,9, others 1,2,9"),
        (
            replace(members(), quorum=quorum_led_by(101, ErrorCode.cluster_authorization_failed)),
            "the leader of the quorum: cluster authorization failed",
        ),
        (SimulatedMembers({}), r"no server answers: 1 cannot be reached; give the address of a running broker"),
        (members(_1=(-1, (1, 2))), "no controller is known"),
        (members(_1=(9, (1, 2))), "no controller is known"),
        (replace(members(), controller_answers=None), "9 does not answer as the controller: nobody answered"),
        (replace(members(), controller_answers=ErrorCode.cluster_authorization_failed), "CLUSTER_AUTHORIZATION_FAILED"),
        (members(_2=(1, (1, 2, 9))), "2 believes that 1 is the controller, others believe 9"),
        (members(_2=(9, (1, 9))), "2 knows the members 1,9, others 1,2,9"),
        (SimulatedMembers({1: (9, (1, 9))}), "9 is a member of the cluster and does not answer"),
    ],
)
async def test_what_is_wrong_with_a_cluster_is_said(cluster: SimulatedMembers, told: str) -> None:
    with pytest.raises(NotWell, match=told):
        await look_at_cluster(cluster)


def topic(name: str, *replicas: tuple[int, ...], error: ErrorCode = ErrorCode.none) -> MetadataResponseTopic:
    partitions = tuple(
        MetadataResponsePartition(
            error_code=ErrorCode.none,
            partition_index=i32(number),
            leader_id=WireBrokerId(each[0]),
            replica_nodes=tuple(map(WireBrokerId, each)),
            isr_nodes=tuple(map(WireBrokerId, each)),
            offline_replicas=(),
        )
        for number, each in enumerate(replicas)
    )
    return MetadataResponseTopic(
        error_code=error, name=TopicName(name), topic_id=None, is_internal=False, partitions=partitions
    )


def add_topics(*topics: MetadataResponseTopic) -> SimulatedMembers:
    return replace(members(), topics=topics)


async def test_brokers_without_replicas_may_end() -> None:
    cluster = add_topics(topic("orders", (1, 2), (2, 1)), topic("new", error=ErrorCode.leader_not_available))
    assert await look_for_replicas(cluster, [BrokerId(3)]) == "broker 3 holds no replicas"
    assert await look_for_replicas(cluster, [BrokerId(4), BrokerId(3)]) == "brokers 3, 4 hold no replicas"


async def test_replicas_that_would_be_lost_are_counted_and_what_to_do_is_said() -> None:
    cluster = add_topics(topic("orders", (1, 2), (2, 3), (3, 1)), topic("payments", (1, 2)))
    with pytest.raises(ReplicasLeft) as raised:
        await look_for_replicas(cluster, [BrokerId(3)])
    assert str(raised.value) == (
        "broker 3 still has replicas of 2 partitions, which would be lost: orders-1, orders-2. Move them away first: create"
        " a PartitionReassignment with drainBrokers: [3], wait until it is Complete, and try again"
    )


async def test_nothing_is_said_of_brokers_while_a_topic_does_not_show_its_replicas() -> None:
    cluster = add_topics(topic("secret", error=ErrorCode.topic_authorization_failed))
    with pytest.raises(NotWell, match="the replicas of some topics are not shown: secret"):
        await look_for_replicas(cluster, [BrokerId(3)])
    with pytest.raises(NotWell, match="no broker says what the brokers hold: 1 cannot be reached"):
        await look_for_replicas(SimulatedMembers({}), [BrokerId(3)])


@dataclass
class SimulatedApi:
    kinds: frozenset[str] | ApiError = ALL_KINDS
    right: ApiError | None = None
    wrong: ApiError | None = field(default_factory=lambda: ApiRefused("spec.partitions"))

    async def read_served_kinds(self) -> frozenset[str]:
        if isinstance(self.kinds, ApiError):
            raise self.kinds
        return self.kinds

    async def dry_run(self, raw: dict[str, Any]) -> None:
        assert raw["spec"]["approval"] == "Required", "a policy may want it of every object"
        error = self.right if raw["spec"]["partitions"] else self.wrong
        if error is not None:
            raise error


async def test_an_api_server_that_knows_the_resources_is_well() -> None:
    assert "KafkaTopic" in await look_at_api(SimulatedApi(), "kafka")


@pytest.mark.parametrize(
    ("api", "told"),
    [
        (SimulatedApi(kinds=ApiUnavailable("refused")), "the API server cannot be asked: refused"),
        (SimulatedApi(kinds=ObjectGone("404")), "does not know KafkaCluster, .*install the chart's CRDs"),
        (SimulatedApi(kinds=ALL_KINDS - {"FeatureSet"}), "does not know FeatureSet of kontroller.dev/v1alpha1"),
        (SimulatedApi(right=ObjectGone("404")), "namespace kafka does not exist: name another with --namespace"),
        (
            SimulatedApi(right=ApiForbidden("403")),
            "allow this service account to create kafkatopics in namespace kafka",
        ),
        (SimulatedApi(right=ApiRefused("422")), "does not accept a valid KafkaTopic: 422"),
        (SimulatedApi(wrong=ApiUnavailable("500")), "gives no verdict on an invalid KafkaTopic"),
        (SimulatedApi(wrong=None), "accepts a KafkaTopic with 0 partitions"),
    ],
)
async def test_what_is_wrong_with_an_api_server_is_said(api: SimulatedApi, told: str) -> None:
    with pytest.raises(NotWell, match=told):
        await look_at_api(api, "kafka")


async def test_a_check_looks_again_until_all_is_well() -> None:
    troubles = [NotWell("one"), NotWell("two")]

    async def look() -> str:
        if troubles:
            raise troubles.pop()
        return "well"

    assert await wait_until_well(look, 60, pause_s=0) == "well"


async def test_a_check_reports_the_last_trouble_when_its_time_is_over() -> None:
    troubles = [NotWell("late"), NotWell("early")]

    async def look() -> str:
        raise troubles.pop() if len(troubles) > 1 else troubles[0]

    with pytest.raises(NotWell, match="late"):
        await wait_until_well(look, 1, pause_s=0.001)
