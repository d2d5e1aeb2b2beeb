"""UpdateFeatures: every live broker supports the finalized levels, and a refused or failed update writes nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.schema.update_features.v0.request import FeatureUpdateKey as FeatureUpdateKey0
from kio.schema.update_features.v0.request import UpdateFeaturesRequest as UpdateFeaturesRequest0
from kio.schema.update_features.v1 import UpdateFeaturesRequest, UpdateFeaturesResponse
from kio.schema.update_features.v1.request import FeatureUpdateKey
from kio.schema.update_features.v2 import UpdateFeaturesRequest as UpdateFeaturesRequest2
from kio.schema.update_features.v2 import UpdateFeaturesResponse as UpdateFeaturesResponse2
from kio.schema.update_features.v2.request import FeatureUpdateKey as FeatureUpdateKey2
from kio.static.primitive import i8, i16, i32Timedelta

from controller_core.admin import update_features
from controller_core.model.features import UpgradeType
from controller_core.model.ids import BrokerId
from controller_core.wire.codecs.frames import decode_response, encode_request, read_request_head
from controller_core.wire.listener.owned_api import OwnedApi
from controller_core.wire.messages import ErrorCode
from controller_core.zk import codecs, paths
from controller_core.zk.session import AccessRefused, Check, Delete, SetData, WriteOp
from simulation.cluster import Cluster, tp

A_MINUTE = i32Timedelta.parse(timedelta(minutes=1))
NO_FEATURES = b'{"version":2,"status":1,"features":{}}'


def request(*updates: tuple[str, int, UpgradeType], validate_only: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        timeout=A_MINUTE,
        feature_updates=tuple(
            FeatureUpdateKey(feature=feature, max_version_level=i16(level), upgrade_type=i8(upgrade_type))
            for feature, level, upgrade_type in updates
        ),
        validate_only=validate_only,
    )


def upgrade(validate_only: bool = False, **levels: int) -> UpdateFeaturesRequest:
    updates = ((feature, level, UpgradeType.UPGRADE) for feature, level in levels.items())
    return request(*updates, validate_only=validate_only)


def downgrade(**levels: int) -> UpdateFeaturesRequest:
    return request(*((feature, level, UpgradeType.SAFE_DOWNGRADE) for feature, level in levels.items()))


def errors(response: UpdateFeaturesResponse) -> dict[str, ErrorCode]:
    assert response.error_code is ErrorCode.none
    return {result.feature: result.error_code for result in response.results}


def message(response: UpdateFeaturesResponse, feature: str) -> str:
    return next(result.error_message or "" for result in response.results if result.feature == feature)


def read_finalized(cluster: Cluster) -> tuple[Mapping[str, int], int]:
    """The levels in ZooKeeper, and their epoch."""
    node = cluster.zk.tree.read(paths.FEATURE)
    assert node is not None
    return codecs.decode_features(node.data).features, node.version


def read_known(cluster: Cluster) -> tuple[Mapping[str, int], int]:
    """The levels as the controller has them, and their epoch."""
    features = cluster.active.term.state.finalized_features
    assert features is not None
    return features.features, features.epoch


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Two brokers that support the features f and g; broker 2 supports f only up to 4."""
    cluster.support(1, f=(1, 5), g=(1, 2))
    cluster.support(2, f=(1, 4), g=(1, 2))
    cluster.start_brokers(1, 2)
    await cluster.serve()
    return cluster


class TestFailover:
    async def test_a_cluster_that_never_had_features_begins_with_none(self, served: Cluster) -> None:
        assert served.data(paths.FEATURE) == NO_FEATURES
        assert read_known(served) == ({}, 0)

    async def test_disabled_features_are_enabled_and_empty(self, cluster: Cluster) -> None:
        cluster.put(paths.FEATURE, b'{"version":2,"status":0,"features":{"f":{"max_version_level":3}}}')
        await cluster.serve()
        assert cluster.data(paths.FEATURE) == NO_FEATURES
        assert read_known(cluster) == ({}, 1)

    async def test_enabled_features_are_taken_over_as_they_are(self, cluster: Cluster) -> None:
        data = b'{"version": 2, "status": 1, "features": {"f": {"max_version_level": 3}}}'
        cluster.put(paths.FEATURE, data)
        await cluster.serve()
        assert cluster.data(paths.FEATURE) == data
        assert read_known(cluster) == ({"f": 3}, 0)

    async def test_features_of_the_old_version_keep_their_levels(self, cluster: Cluster) -> None:
        cluster.put(
            paths.FEATURE,
            b'{"version":1,"status":1,"features":{"f":{"min_version_level":1,"max_version_level":3}}}',
        )
        await cluster.serve()
        assert cluster.data(paths.FEATURE) == b'{"version":2,"status":1,"features":{"f":{"max_version_level":3}}}'
        assert read_known(cluster) == ({"f": 3}, 1)

    async def test_a_lost_answer_to_a_rewrite_sets_them_up_once(self, cluster: Cluster) -> None:
        process = await cluster.serve()
        cluster.put(paths.FEATURE, b'{"version":2,"status":0,"features":{}}')
        cluster.zk.lose_next_response(process.session)
        await cluster.settle()
        assert read_known(cluster) == read_finalized(cluster) == ({}, 2)


UNREADABLE = (
    b"",
    b"nonsense",
    b'{"version":3,"status":1,"features":{}}',
    b'{"version":2,"status":7,"features":{}}',
    b'{"version":2,"status":1}',
    b'{"version":2,"status":1,"features":{"f":{"max_version_level":0}}}',
)


class TestUnreadableZnode:
    @pytest.mark.parametrize("data", UNREADABLE)
    async def test_it_is_left_as_it_is_and_everything_else_is_served(self, cluster: Cluster, data: bytes) -> None:
        cluster.put(paths.FEATURE, data)
        cluster.support(1, f=(1, 5))
        cluster.start_brokers(1)
        cluster.create_topic("orders", [1])
        await cluster.serve()
        response = await cluster.request(upgrade(f=2))
        assert errors(response) == {"f": ErrorCode.feature_update_failed}
        assert "repair the data of /feature" in message(response, "f")
        assert cluster.data(paths.FEATURE) == data
        assert [log["event"] for log in cluster.logs if log["log_level"] == "error"].count(
            "unreadable finalized features: no feature can be changed"
        ) >= 1
        assert cluster.broker(1).leads((*cluster.broker(1).replicas,)[0])

    async def test_features_can_be_changed_again_once_it_is_repaired(self, cluster: Cluster) -> None:
        cluster.put(paths.FEATURE, b"nonsense")
        cluster.support(1, f=(1, 5))
        cluster.start_brokers(1)
        await cluster.serve()
        cluster.put(paths.FEATURE, NO_FEATURES)
        await cluster.settle()
        assert errors(await cluster.request(upgrade(f=2))) == {"f": ErrorCode.none}
        assert read_finalized(cluster) == ({"f": 2}, 2)


class TestDeletedZnode:
    """The versions of a new znode begin at 0: a broker that saw a higher one and not its deletion would end itself."""

    async def test_only_the_next_controller_makes_one(self, served: Cluster) -> None:
        await served.request(upgrade(f=4))
        served.write(Delete(path=paths.FEATURE))
        await served.settle()
        response = await served.request(upgrade(f=2))
        assert errors(response) == {"f": ErrorCode.feature_update_failed}
        assert "restart the controller" in message(response, "f")
        assert served.zk.tree.read(paths.FEATURE) is None
        await served.active.kill()
        await served.serve(1001)
        assert read_known(served) == read_finalized(served) == ({}, 0)

    async def test_one_that_somebody_makes_anew_is_taken_over(self, served: Cluster) -> None:
        served.write(Delete(path=paths.FEATURE))
        await served.settle()
        served.put(paths.FEATURE, b'{"version":2,"status":1,"features":{"f":{"max_version_level":2}}}')
        await served.settle()
        assert read_known(served) == ({"f": 2}, 0)


class TestUpdates:
    async def test_what_every_live_broker_supports_is_finalized(self, served: Cluster) -> None:
        assert errors(await served.request(upgrade(f=4, g=1))) == {"f": ErrorCode.none, "g": ErrorCode.none}
        assert read_finalized(served) == read_known(served) == ({"f": 4, "g": 1}, 1)
        assert errors(await served.request(upgrade(g=2))) == {"g": ErrorCode.none}
        assert read_finalized(served) == read_known(served) == ({"f": 4, "g": 2}, 2)

    async def test_a_broker_in_the_way_is_named_and_the_other_updates_are_applied(self, served: Cluster) -> None:
        response = await served.request(upgrade(f=5, g=1, h=1))
        assert errors(response) == {
            "f": ErrorCode.invalid_request, "g": ErrorCode.none, "h": ErrorCode.invalid_request,
        }  # fmt: skip
        assert "broker 2 supports 1 to 4" in message(response, "f")
        assert "broker 1" not in message(response, "f")
        assert "is not supported" in message(response, "h")
        assert read_finalized(served) == ({"g": 1}, 1)

    async def test_a_broker_that_does_not_know_the_feature_is_in_the_way(self, served: Cluster) -> None:
        served.start_broker(3)
        await served.settle()
        response = await served.request(upgrade(f=2))
        assert errors(response) == {"f": ErrorCode.invalid_request}
        assert "broker 3 supports none" in message(response, "f")

    async def test_a_broker_that_registered_this_moment_counts(self, served: Cluster) -> None:
        served.support(3, f=(1, 1))
        served.start_broker(3)
        assert errors(await served.request(upgrade(f=2))) == {"f": ErrorCode.invalid_request}

    async def test_a_broker_that_rewrote_its_registration_counts_as_it_is_now(self, served: Cluster) -> None:
        served.support(2, f=(1, 9), g=(1, 2))
        await served.settle()
        assert served.active.term.state.brokers[BrokerId(2)].features["f"].max_version == 9
        assert errors(await served.request(upgrade(f=5))) == {"f": ErrorCode.none}

    async def test_a_dead_broker_does_not_count(self, served: Cluster) -> None:
        served.kill_broker(2)
        await served.settle()
        assert errors(await served.request(upgrade(f=5))) == {"f": ErrorCode.none}

    async def test_a_validation_answers_the_same_and_writes_nothing(self, served: Cluster) -> None:
        response = await served.request(upgrade(validate_only=True, f=4, h=1))
        assert errors(response) == {"f": ErrorCode.none, "h": ErrorCode.invalid_request}
        assert read_finalized(served) == read_known(served) == ({}, 0)

    async def test_updates_that_are_all_refused_write_nothing(self, served: Cluster) -> None:
        assert errors(await served.request(upgrade(h=1))) == {"h": ErrorCode.invalid_request}
        assert read_finalized(served) == ({}, 0)

    async def test_a_downgrade_is_done_where_it_is_asked_for(self, served: Cluster) -> None:
        await served.request(upgrade(f=4))
        assert errors(await served.request(upgrade(f=2))) == {"f": ErrorCode.invalid_request}
        assert errors(await served.request(downgrade(f=2))) == {"f": ErrorCode.none}
        assert read_finalized(served) == ({"f": 2}, 2)

    async def test_level_0_deletes_even_what_no_broker_supports_any_more(self, served: Cluster) -> None:
        await served.request(upgrade(f=4, g=1))
        served.support(1)
        served.support(2)
        await served.settle()
        assert errors(await served.request(downgrade(f=0))) == {"f": ErrorCode.none}
        assert read_finalized(served) == ({"g": 1}, 2)

    async def test_a_feature_that_is_named_twice_has_one_answer_and_the_first_level(self, served: Cluster) -> None:
        twice = request(("f", 2, UpgradeType.UPGRADE), ("f", 3, UpgradeType.UPGRADE))
        assert errors(await served.request(twice)) == {"f": ErrorCode.none}
        assert read_finalized(served) == ({"f": 2}, 1)


class TestAtTheSameMoment:
    async def test_an_update_that_comes_while_another_is_written_is_judged_by_what_that_one_wrote(
        self, served: Cluster
    ) -> None:
        process, answers = served.active, []

        def ask_again(ops: Sequence[WriteOp]) -> None:
            if writes_features(ops):
                served.zk.interventions.clear()
                answers.append(asyncio.create_task(process.answer(upgrade(f=3, g=1))))

        served.zk.interventions.append(ask_again)
        assert errors(await served.request(upgrade(f=4))) == {"f": ErrorCode.none}
        (second,) = answers
        assert errors(second.result()) == {"f": ErrorCode.invalid_request, "g": ErrorCode.none}
        assert "from existing versionLevel:4 to provided versionLevel:3" in message(second.result(), "f")
        assert read_finalized(served) == read_known(served) == ({"f": 4, "g": 1}, 2)

    async def test_a_broker_that_registers_before_they_are_judged_is_in_the_way(self, served: Cluster) -> None:
        served.support(3, f=(1, 2))
        answer = asyncio.create_task(served.active.answer(upgrade(f=3)))
        await asyncio.sleep(0)
        served.start_broker(3)
        await served.settle()
        assert errors(answer.result()) == {"f": ErrorCode.invalid_request}
        assert "broker 3 supports 1 to 2" in message(answer.result(), "f")
        assert set(served.active.term.state.brokers) == {1, 2, 3}

    async def test_a_broker_that_registers_while_they_are_written_stays_outside(self, served: Cluster) -> None:
        served.support(3, f=(1, 2))

        def register(ops: Sequence[WriteOp]) -> None:
            if writes_features(ops):
                served.zk.interventions.clear()
                served.start_broker(3)

        served.zk.interventions.append(register)
        assert errors(await served.request(upgrade(f=3))) == {"f": ErrorCode.none}
        assert BrokerId(3) in served.live
        assert read_finalized(served) == ({"f": 3}, 1)
        assert set(served.active.term.state.brokers) == {1, 2}
        served.create_topic("orders", [3, 1])
        await served.settle()
        assert served.leadership(tp("orders")) == (1, [1])


class TestVersion0:
    @pytest.mark.parametrize(
        ("level", "allow_downgrade", "error"),
        [
            (1, False, ErrorCode.invalid_request),
            (1, True, ErrorCode.none),
            (0, True, ErrorCode.none),
            (0, False, ErrorCode.invalid_request),
            (4, False, ErrorCode.none),
            (4, True, ErrorCode.invalid_request),
        ],
    )
    async def test_its_only_flag_is_whether_a_downgrade_is_allowed(
        self, served: Cluster, level: int, allow_downgrade: bool, error: ErrorCode
    ) -> None:
        await served.request(upgrade(f=3))
        key = FeatureUpdateKey0(feature="f", max_version_level=i16(level), allow_downgrade=allow_downgrade)
        old = UpdateFeaturesRequest0(timeout=A_MINUTE, feature_updates=(key,))
        assert errors(await served.request(update_features.API.versions.lift(old))) == {"f": error}


class TestWritesThatFail:
    async def test_what_somebody_else_finalized_is_not_written_over(self, served: Cluster) -> None:
        served.put(paths.FEATURE, b'{"version":2,"status":1,"features":{"g":{"max_version_level":2}}}')
        assert errors(await served.request(upgrade(f=4, g=1))) == {"f": ErrorCode.none, "g": ErrorCode.invalid_request}
        assert read_finalized(served) == read_known(served) == ({"f": 4, "g": 2}, 2)

    async def test_an_answer_that_is_lost_is_found_again(self, served: Cluster) -> None:
        served.zk.lose_next_response(served.active.session)
        assert errors(await served.request(upgrade(f=4))) == {"f": ErrorCode.none}
        assert read_finalized(served) == read_known(served) == ({"f": 4}, 1)

    @pytest.mark.parametrize("writes", [0, 1], ids=["before the write", "after the write"])
    async def test_a_controller_that_dies_over_it_leaves_nothing_or_all_of_it(
        self, served: Cluster, writes: int
    ) -> None:
        first = served.active
        first.life.last_write = first.life.writes + writes
        answer = asyncio.create_task(first.answer(upgrade(f=4, g=1)))
        await served.settle()
        assert not answer.done()
        await first.kill()
        answer.cancel()
        await served.serve(1001)
        levels = {"f": 4, "g": 1} if writes else {}
        assert read_finalized(served) == read_known(served) == (levels, writes)

    async def test_the_next_controller_knows_what_its_predecessor_answered(self, served: Cluster) -> None:
        await served.request(upgrade(f=4))
        await served.active.kill()
        await served.serve(1001)
        assert read_known(served) == ({"f": 4}, 1)

    async def test_a_controller_that_is_deposed_before_it_writes_changes_nothing(self, served: Cluster) -> None:
        first = served.active

        def depose(ops: Sequence[WriteOp]) -> None:
            if writes_features(ops):
                served.zk.interventions.clear()
                served.write(Delete(path=paths.CONTROLLER))
                served.make_kafka_controller(1)

        served.zk.interventions.append(depose)
        answer = asyncio.create_task(first.answer(upgrade(f=4)))
        await served.settle()
        assert answer.result().error_code is ErrorCode.not_controller
        assert read_finalized(served) == ({}, 0)

    async def test_a_write_that_zookeeper_refuses_fails_the_valid_updates_and_nothing_else(
        self, served: Cluster
    ) -> None:
        def refuse(ops: Sequence[WriteOp]) -> None:
            if writes_features(ops):
                raise AccessRefused("no access")

        served.zk.interventions.append(refuse)
        response = await served.request(upgrade(f=4, h=1))
        assert errors(response) == {"f": ErrorCode.feature_update_failed, "h": ErrorCode.invalid_request}
        assert "/feature could not be written and is unchanged: no access" in message(response, "f")
        assert read_finalized(served) == read_known(served) == ({}, 0)
        assert served.active.terms == 1

    async def test_updates_are_judged_anew_when_somebody_else_is_faster(self, served: Cluster) -> None:
        interfere(served, times=1)
        response = await served.request(upgrade(f=4, g=1))
        assert errors(response) == {"f": ErrorCode.none, "g": ErrorCode.invalid_request}
        assert read_finalized(served) == read_known(served) == ({"f": 4, "g": 2}, 2)

    async def test_updates_fail_when_somebody_else_is_always_faster(self, served: Cluster) -> None:
        interfere(served, times=1000)
        response = await served.request(upgrade(f=4))
        assert errors(response) == {"f": ErrorCode.feature_update_failed}
        assert read_finalized(served)[0] == read_known(served)[0] == {"g": 2}


class TestBrokersThatDoNotSupportWhatIsFinalized:
    @pytest.fixture
    async def finalized_at_4(self, served: Cluster) -> Cluster:
        await served.request(upgrade(f=4))
        return served

    async def test_one_that_starts_is_not_alive_to_the_controller(self, finalized_at_4: Cluster) -> None:
        cluster = finalized_at_4
        cluster.support(3, f=(1, 3))
        cluster.start_broker(3)
        await cluster.settle()
        assert set(cluster.active.term.state.brokers) == {1, 2}
        assert ["f is finalized at 4, the broker supports 1 to 3"] in [log.get("reasons") for log in cluster.logs]

    async def test_one_that_is_there_is_not_alive_to_a_new_controller(self, finalized_at_4: Cluster) -> None:
        cluster = finalized_at_4
        cluster.start_broker(3)
        await cluster.active.kill()
        await cluster.serve(1001)
        assert set(cluster.active.term.state.brokers) == {1, 2}

    async def test_one_that_comes_back_with_less_is_dead(self, finalized_at_4: Cluster) -> None:
        cluster = finalized_at_4
        cluster.create_topic("orders", [2, 1])
        await cluster.settle()
        cluster.kill_broker(2)
        cluster.support(2, f=(1, 3))
        cluster.start_broker(2)
        await cluster.settle()
        assert set(cluster.active.term.state.brokers) == {1}
        assert cluster.leadership(tp("orders")) == (1, [1])

    async def test_one_that_rewrites_its_registration_with_less_is_served_on(self, finalized_at_4: Cluster) -> None:
        cluster = finalized_at_4
        cluster.support(2, f=(1, 3))
        cluster.start_broker(3)
        await cluster.settle()
        assert set(cluster.active.term.state.brokers) == {1, 2}

    async def test_one_that_registers_again_with_more_is_alive(self, finalized_at_4: Cluster) -> None:
        cluster = finalized_at_4
        cluster.start_broker(3)
        await cluster.settle()
        cluster.support(3, f=(1, 4))
        await cluster.settle()
        assert set(cluster.active.term.state.brokers) == {1, 2, 3}

    async def test_one_is_alive_once_the_feature_is_deleted(self, finalized_at_4: Cluster) -> None:
        cluster = finalized_at_4
        cluster.start_broker(3)
        await cluster.settle()
        assert errors(await cluster.request(downgrade(f=0))) == {"f": ErrorCode.none}
        assert set(cluster.active.term.state.brokers) == {1, 2, 3}


def writes_features(ops: Sequence[WriteOp]) -> bool:
    return any(isinstance(op, SetData) and op.path == paths.FEATURE for op in ops)


def interfere(cluster: Cluster, *, times: int) -> None:
    """Write `/feature` just before the controller does, that many times."""
    left = [times]

    def write(ops: Sequence[WriteOp]) -> None:
        if writes_features(ops) and any(isinstance(op, Check) for op in ops) and left[0]:
            left[0] -= 1
            cluster.put(paths.FEATURE, b'{"version":2,"status":1,"features":{"g":{"max_version_level":2}}}')

    cluster.zk.interventions.append(write)


def all_or_nothing(*updates: tuple[str, int, UpgradeType], validate_only: bool = False) -> UpdateFeaturesRequest2:
    keys = (
        FeatureUpdateKey2(feature=feature, max_version_level=i16(level), upgrade_type=i8(upgrade_type))
        for feature, level, upgrade_type in updates
    )
    return UpdateFeaturesRequest2(timeout=A_MINUTE, feature_updates=tuple(keys), validate_only=validate_only)


UP, DOWN = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE


class TestAllOrNothing:
    """All or nothing, from version 2 on."""

    async def test_all_that_may_be_is_written_at_once(self, served: Cluster) -> None:
        _, before = read_finalized(served)
        answer = await served.request(all_or_nothing(("f", 3, UP), ("g", 2, UP)))
        assert isinstance(answer, UpdateFeaturesResponse2)
        assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
        assert read_finalized(served) == ({"f": 3, "g": 2}, before + 1)
        assert read_known(served) == read_finalized(served)

    async def test_one_that_may_not_be_keeps_all_others_from_being_written_and_is_named(self, served: Cluster) -> None:
        before = read_finalized(served)
        answer = await served.request(all_or_nothing(("g", 1, UP), ("f", 5, UP), ("h", 1, UP)))
        assert answer.error_code is ErrorCode.invalid_request
        assert answer.error_message.startswith("No feature is updated, because f cannot be: ")
        assert read_finalized(served) == before
        assert read_known(served) == before

    async def test_the_same_in_an_older_version_writes_what_may_be(self, served: Cluster) -> None:
        answer = await served.request(upgrade(g=1, f=5))
        assert errors(answer) == {"g": ErrorCode.none, "f": ErrorCode.invalid_request}
        assert read_finalized(served)[0] == {"g": 1}

    async def test_a_validation_answers_the_same_and_writes_nothing(self, served: Cluster) -> None:
        before = read_finalized(served)
        valid = await served.request(all_or_nothing(("f", 3, UP), validate_only=True))
        invalid = await served.request(all_or_nothing(("f", 3, UP), ("g", 3, UP), validate_only=True))
        assert (valid.error_code, invalid.error_code) == (ErrorCode.none, ErrorCode.invalid_request)
        assert read_finalized(served) == before

    async def test_downgrades_and_deletions_are_among_all(self, served: Cluster) -> None:
        await served.request(all_or_nothing(("f", 3, UP), ("g", 2, UP)))
        refused = await served.request(all_or_nothing(("f", 2, UP), ("g", 0, UpgradeType.UNSAFE_DOWNGRADE)))
        assert refused.error_code is ErrorCode.invalid_request
        assert read_finalized(served)[0] == {"f": 3, "g": 2}
        done = await served.request(all_or_nothing(("f", 2, DOWN), ("g", 0, UpgradeType.UNSAFE_DOWNGRADE)))
        assert done.error_code is ErrorCode.none
        assert read_finalized(served)[0] == {"f": 2}

    async def test_a_znode_that_is_gone_is_said_of_all(self, served: Cluster) -> None:
        await served.zk.session().transact([Delete(path=paths.FEATURE)])
        answer = await served.request(all_or_nothing(("f", 1, UP)))
        assert answer.error_code is ErrorCode.feature_update_failed
        assert "restart the controller" in answer.error_message

    @pytest.mark.parametrize("data", UNREADABLE)
    async def test_a_znode_that_nobody_understands_is_said_of_all_and_stays(self, served: Cluster, data: bytes) -> None:
        served.put(paths.FEATURE, data)
        await served.settle()
        for validate_only in (True, False):
            answer = await served.request(all_or_nothing(("f", 1, UP), ("h", 1, UP), validate_only=validate_only))
            assert answer.error_code is ErrorCode.feature_update_failed
            assert "repair the data of /feature" in answer.error_message
        assert served.data(paths.FEATURE) == data

    async def test_a_write_that_zookeeper_refuses_is_said_of_all(self, served: Cluster) -> None:
        def refuse(ops: Sequence[WriteOp]) -> None:
            if writes_features(ops):
                raise AccessRefused("no access")

        served.zk.interventions.append(refuse)
        answer = await served.request(all_or_nothing(("f", 4, UP), ("g", 1, UP)))
        assert answer.error_code is ErrorCode.feature_update_failed
        assert "/feature could not be written and is unchanged: no access" in answer.error_message
        assert read_finalized(served) == read_known(served) == ({}, 0)
        assert served.active.terms == 1

    async def test_an_answer_that_is_lost_is_found_again(self, served: Cluster) -> None:
        served.zk.lose_next_response(served.active.session)
        answer = await served.request(all_or_nothing(("f", 4, UP), ("g", 1, UP)))
        assert answer.error_code is ErrorCode.none
        assert read_finalized(served) == read_known(served) == ({"f": 4, "g": 1}, 1)

    async def test_what_may_not_be_after_somebody_else_was_faster_keeps_all_from_being_written(
        self, served: Cluster
    ) -> None:
        interfere(served, times=1)
        answer = await served.request(all_or_nothing(("f", 4, UP), ("g", 1, UP)))
        assert answer.error_code is ErrorCode.invalid_request
        assert "because g cannot be: Can not downgrade" in answer.error_message
        assert read_finalized(served) == read_known(served) == ({"g": 2}, 1)

    async def test_a_feature_that_is_named_twice_has_the_first_level(self, served: Cluster) -> None:
        answer = await served.request(all_or_nothing(("f", 2, UP), ("f", 9, UP), ("g", 1, UP)))
        assert answer.error_code is ErrorCode.none
        assert read_finalized(served) == ({"f": 2, "g": 1}, 1)

    async def test_the_first_that_is_refused_is_that_of_the_request_s_order(self, served: Cluster) -> None:
        answer = await served.request(all_or_nothing(("h", 1, UP), ("f", 5, UP)))
        assert answer.error_message.startswith("No feature is updated, because h cannot be: ")

    @pytest.mark.parametrize("version", [0, 1, 2])
    async def test_who_is_not_in_charge_says_so_in_each_version_s_own_words(
        self, served: Cluster, version: int
    ) -> None:
        standby = served.start_controller(1001)
        await served.settle()
        request_type: Any = update_features.API.versions.request_type(version)
        frame = encode_request(request_type(feature_updates=()), 7, "client")[4:]
        api = OwnedApi(update_features.API.versions, standby.answer, update_features.API.refuse)
        answers = [await api.respond(read_request_head(frame), frame)]
        answers += [await api.make_refusal(read_request_head(frame), None, ErrorCode.not_controller) or b""]
        for answer in answers:
            assert isinstance(answer, bytes)
            response: Any = decode_response(load_response_schema(57, version), answer[4:])
            assert response.error_code is ErrorCode.not_controller
