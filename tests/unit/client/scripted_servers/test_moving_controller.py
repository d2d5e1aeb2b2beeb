"""The controller moves in the midst of each call: when the request has come to it, before it has answered."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import NoneType
from typing import Any, Final

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import AdminError, OutcomeUnknown
from controller_core.client.features import FeatureUpdate
from controller_core.wire.requests.configs import ResourceType
from tests.unit.client.scripted_servers.every_call import every_call
from tests.unit.client.scripted_servers.scripted import (
    ALTER_REASSIGNMENTS,
    ALTER_SCRAM,
    API_VERSIONS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_SCRAM,
    ELECT_LEADERS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_REASSIGNMENTS,
    UPDATE_FEATURES,
    Answer,
    ScriptedBroker,
    ScriptedCluster,
    fill_response,
    speaks,
    start_cluster,
)

SAID_BY_PARTS: Final = {CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS, ELECT_LEADERS, ALTER_SCRAM}
"""APIs by which Kafka says of each part that another is the controller, and of the whole nothing."""
OF_THE_CONTROLLER: Final = (
    CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS, ELECT_LEADERS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS,
    DESCRIBE_SCRAM, ALTER_SCRAM, UPDATE_FEATURES, INCREMENTAL_ALTER_CONFIGS, API_VERSIONS,
)  # fmt: skip
ANY_SERVER: Final = {INCREMENTAL_ALTER_CONFIGS, API_VERSIONS}
"""APIs whose servers do not ask themselves whether they are the controller."""
CHANGES: Final = {
    CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS, ELECT_LEADERS, ALTER_REASSIGNMENTS, ALTER_SCRAM, UPDATE_FEATURES,
}  # fmt: skip
CALLS: Final = sorted(every_call(AdminClient({"bootstrap.servers": "nowhere:1"})))


@dataclass(slots=True)
class Moves:
    """The controller moves at one of the requests that it gets."""

    at: int
    closes: bool = False
    """True if the connection ends, as when its process is killed. Otherwise it answers that it is not the controller.
    """
    finds_none: bool = False
    """True if it does not know yet that it has lost the role, and wrote nothing because there is no controller."""
    got: list[RequestPayload] = field(default_factory=list)
    """The requests that controllers received."""

    def happen_in(self, cluster: ScriptedCluster) -> None:
        for key in OF_THE_CONTROLLER:
            cluster.answers[key] = partial(self._answer, cluster.answers[key])

    @property
    def last_before(self) -> RequestPayload:
        """The request at which it moved."""
        return self.got[self.at - 1]

    def _answer(self, usual: Any, broker: ScriptedBroker, request: RequestPayload) -> Answer:
        cluster, key = broker.cluster, int(request.__api_key__)
        if broker.id == cluster.controller:
            self.got.append(request)
            if len(self.got) == self.at:
                cluster.controller = 3
                if self.closes:
                    return None
                if self.finds_none and key != API_VERSIONS:
                    return self._refuse(request, ErrorCode.stale_controller_epoch)
        if broker.id != cluster.controller and key not in ANY_SERVER:
            return self._refuse(request, ErrorCode.not_controller)
        answer: Answer = usual(broker, request) if callable(usual) else usual
        return answer

    def _refuse(self, request: RequestPayload, code: ErrorCode) -> Answer:
        key = int(request.__api_key__)
        return fill_response(load_response_schema(key, int(request.__version__)), code, of_parts=key in SAID_BY_PARTS)


async def end_call(call: str, moves: Moves) -> Any:
    """Return the result or the error of a call."""
    async with start_cluster() as cluster:
        cluster.topics = {"orders": [[1, 2]]}
        speaks(cluster, 1)
        admin = cluster.client()
        await admin.describe_cluster()
        moves.happen_in(cluster)
        try:
            return await every_call(admin)[call]()
        except AdminError as error:
            return error


def error_of(end: Any) -> AdminError | None:
    """Return the error of a call, or of a part of its result."""
    if isinstance(end, Mapping):
        return next((each for each in end.values() if isinstance(each, AdminError)), None)
    return end if isinstance(end, AdminError) else getattr(end, "error", None)


def changes(request: RequestPayload) -> bool:
    """Return True if the request must not be sent twice. Changes of a topic's configuration may, because any broker
    takes them."""
    if int(request.__api_key__) == INCREMENTAL_ALTER_CONFIGS:
        return any(each.resource_type != ResourceType.TOPIC for each in getattr(request, "resources", ()))
    return int(request.__api_key__) in CHANGES and not getattr(request, "validate_only", False)


def test_every_call_that_makes_a_request_is_among_them() -> None:
    calls = {
        name for name, _ in inspect.getmembers(AdminClient, inspect.iscoroutinefunction) if not name.startswith("_")
    }
    made_of_others = {"start_reassignment", "wait_for_reassignment", "describe_topics", "current_assignment"}
    assert set(CALLS) == calls - made_of_others


@pytest.mark.parametrize("finds_none", [False, True])
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_goes_on_where_the_controller_says_that_it_is_none_any_more(call: str, finds_none: bool) -> None:
    for at in count(1):
        moves = Moves(at=at, finds_none=finds_none)
        assert error_of(await end_call(call, moves)) is None
        if len(moves.got) < at:
            break


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_whose_controller_dies_may_have_been_done_or_goes_on_where_nothing_can_have_been(
    call: str,
) -> None:
    for at in count(1):
        moves = Moves(at=at, closes=True)
        error = error_of(await end_call(call, moves))
        if len(moves.got) < at:
            assert error is None
            break
        assert isinstance(error, OutcomeUnknown if changes(moves.last_before) else NoneType), (moves.last_before, error)
        assert error is None or moves.got[at:] == [], "nothing is asked for again, nor what would have come after it"


async def test_updates_of_features_are_sent_as_the_controller_that_has_come_takes_them() -> None:
    """An update that began at a controller that takes all or none is sent again, validated first, to one that needs
    that."""
    async with start_cluster() as cluster:
        speaks(cluster, 2)
        takes_all_or_none = cluster.answers[API_VERSIONS]

        def last_words(broker: ScriptedBroker, _: RequestPayload) -> Answer:
            broker.cluster.controller = 3
            speaks(broker.cluster, 1)
            return takes_all_or_none if not callable(takes_all_or_none) else None

        cluster[1].answers[API_VERSIONS].append(last_words)
        response = load_response_schema(UPDATE_FEATURES, 2)
        cluster[1].answers[UPDATE_FEATURES].append(fill_response(response, ErrorCode.not_controller))
        cluster[3].ranges[UPDATE_FEATURES] = (0, 1)
        await cluster.client().update_features([FeatureUpdate(feature=name, level=1) for name in "fg"])
        sent = cluster[3].list_requests(UPDATE_FEATURES)
        assert [(each.__version__, each.validate_only) for each in sent] == [(1, True), (1, False)]


async def test_updates_of_features_go_on_where_the_controller_that_takes_them_has_come_back() -> None:
    """It was away for as long as a broker that takes no such version had the role, and was asked."""
    async with start_cluster() as cluster:
        speaks(cluster, 2)
        cluster[3].ranges[UPDATE_FEATURES] = (0, 1)

        def gives_the_role_up(broker: ScriptedBroker, _: RequestPayload) -> Answer:
            broker.cluster.controller = 3
            return fill_response(load_response_schema(UPDATE_FEATURES, 2), ErrorCode.not_controller)

        def gives_it_back(broker: ScriptedBroker, _: RequestPayload) -> Answer:
            broker.cluster.controller = 1
            return None

        cluster[1].answers[UPDATE_FEATURES].append(gives_the_role_up)
        cluster[3].answers[API_VERSIONS].append(gives_it_back)
        await cluster.client().update_features([FeatureUpdate(feature=name, level=1) for name in "fg"])
        assert [each.__version__ for each in cluster[1].list_requests(UPDATE_FEATURES)] == [2, 2]
        assert not cluster[3].list_requests(UPDATE_FEATURES)
