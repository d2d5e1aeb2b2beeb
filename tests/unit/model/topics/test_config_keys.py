"""Each key of a topic's configuration has one owner. The error about a key that no spec may declare says what to
change."""

from collections.abc import Mapping

import pytest

from controller_core.model.topics.config_keys import (
    RESERVED_KEYS,
    Owner,
    find_clashes,
    find_declarable,
    find_objections,
    find_owner,
    find_undeclared_keys,
)

LEADER = "leader.replication.throttled.replicas"
FOLLOWER = "follower.replication.throttled.replicas"


class TestOwners:
    @pytest.mark.parametrize(
        ("key", "named", "given", "owner"),
        [
            ("retention.ms", {"retention.ms"}, set(), Owner.NAMED),
            ("retention.ms", {"retention.ms"}, {"retention.ms"}, Owner.NAMED),
            ("retention.ms", set(), {"retention.ms"}, Owner.DROPPED),
            ("retention.ms", {"segment.ms"}, {"segment.ms"}, Owner.UNDECLARED),
            ("no.such.key", set(), set(), Owner.UNDECLARED),
            (LEADER, set(), set(), Owner.RESERVED),
            (FOLLOWER, set(), set(), Owner.RESERVED),
            (LEADER, set(), {LEADER}, Owner.DROPPED),
        ],
    )
    def test_a_key_has_one_owner(self, key: str, named: set[str], given: set[str], owner: Owner) -> None:
        assert find_owner(key, named, given) is owner

    def test_the_lists_of_a_throttle_are_not_undeclared(self) -> None:
        live = {LEADER: "0:1", FOLLOWER: "00:1", "retention.ms": "1", "flush.ms": "2", "segment.ms": "3"}
        assert find_undeclared_keys(live, {"segment.ms"}, ()) == {"flush.ms": "2", "retention.ms": "1"}


class TestObjections:
    @pytest.mark.parametrize("key", sorted(RESERVED_KEYS))
    def test_a_list_of_throttled_replicas_is_refused_with_the_field_to_use(self, key: str) -> None:
        (objection,) = find_objections({key: "*"}, 3)
        assert objection == (
            f"{key} belongs to moves of replicas: remove it, and set reassignment.throttle to limit the rate of moves"
        )

    @pytest.mark.parametrize(
        ("value", "replicas", "is_refused"),
        [("1", 1, False), ("2", 2, False), (" 2 ", 2, False), ("3", 2, True), ("2", 1, True)],
    )
    def test_more_in_sync_than_there_are_replicas_is_refused(self, value: str, replicas: int, is_refused: bool) -> None:
        assert bool(find_objections({"min.insync.replicas": value}, replicas)) is is_refused

    def test_the_words_say_both_ways_out(self) -> None:
        assert find_objections({"min.insync.replicas": "2"}, 1) == [
            "min.insync.replicas is 2, but each partition has 1 replica: brokers refuse writes with acks=all, or "
            "acknowledge them with fewer replicas. Set it to 1 or less, or give each partition 2 replicas"
        ]

    def test_no_value_is_a_reason_to_fail(self) -> None:
        assert find_objections({"min.insync.replicas": "many"}, 2) == [
            "Invalid value many for configuration min.insync.replicas: Not a number of type INT"
        ]

    @pytest.mark.parametrize(
        "config",
        [
            {"max.decompressed.message.bytes": "1000"},
            {"remote.copy.lag.ms": "5"},
            {"remote.log.copy.disable": "true", "remote.log.delete.on.disable": "true"},
        ],
    )
    def test_what_only_later_releases_take_is_refused_with_zookeeper_alone(self, config: Mapping[str, str]) -> None:
        assert find_objections(config, 1)
        assert find_objections(config, 1, has_zookeeper=False) == []

    @pytest.mark.parametrize("has_zookeeper", [True, False])
    def test_a_misspelled_key_is_refused_everywhere(self, has_zookeeper: bool) -> None:
        assert find_objections({"retension.ms": "1"}, 1, has_zookeeper=has_zookeeper)


class TestClashes:
    def test_a_named_key_that_contradicts_one_that_the_topic_has_clashes(self) -> None:
        live = {"max.compaction.lag.ms": "10"}
        assert find_clashes(live, {**live, "min.compaction.lag.ms": "20"}, 1)
        assert find_clashes(live, {**live, "min.compaction.lag.ms": "5"}, 1) == []

    def test_a_contradiction_that_was_there_before_is_not_the_changes(self) -> None:
        live = {"max.compaction.lag.ms": "10", "min.compaction.lag.ms": "20"}
        assert find_clashes(live, {**live, "retention.ms": "5"}, 1) == []

    def test_keys_that_make_no_sense_hide_no_contradiction(self) -> None:
        live = {"max.compaction.lag.ms": "10", "no.such.key": "1", "retention.ms": "soon", LEADER: "*"}
        assert find_clashes(live, {**live, "min.compaction.lag.ms": "20"}, 1)


class TestImport:
    @pytest.mark.parametrize(
        ("live", "left_out"),
        [
            ({"retention.ms": "1", "min.insync.replicas": "2"}, set()),
            ({"retention.ms": "1", LEADER: "0:1", FOLLOWER: "*"}, {LEADER, FOLLOWER}),
            ({"retention.ms": "1", "min.insync.replicas": "3"}, {"min.insync.replicas"}),
            ({"retention.ms": "1", "no.such.key": "1", "segment.ms": "soon"}, {"no.such.key", "segment.ms"}),
            ({"max.compaction.lag.ms": "10", "min.compaction.lag.ms": "20"}, {"min.compaction.lag.ms"}),
        ],
    )
    def test_what_can_be_declared_has_no_objections_and_nothing_is_lost(
        self, live: dict[str, str], left_out: set[str]
    ) -> None:
        found = find_declarable(live, 2)
        assert set(found.left_out) == left_out
        assert {**found.config, **{key: live[key] for key in found.left_out}} == live
        assert find_objections(found.config, 2) == []
        assert all(found.left_out.values())

    def test_thousands_of_senseless_keys_are_left_out(self) -> None:
        live = {f"no.such.key.{number}": "1" for number in range(5_000)}
        assert find_declarable({**live, "retention.ms": "1"}, 1).config == {"retention.ms": "1"}
