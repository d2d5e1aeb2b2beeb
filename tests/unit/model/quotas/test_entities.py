"""The quota that counts, and the callers that share it, in Kafka's order."""

import pytest

from controller_core.model.quotas.entities import EVERYBODY, Candidate, Entity, list_candidates

BOTH, AS_ALICE, AS_APP = Entity("alice", "app"), Entity("alice", None), Entity(None, "app")


def test_what_is_most_about_who_asks_comes_first() -> None:
    assert list_candidates("alice", "app") == (
        Candidate(Entity("alice", "app"), BOTH),
        Candidate(Entity("alice", EVERYBODY), BOTH),
        Candidate(Entity("alice", None), AS_ALICE),
        Candidate(Entity(EVERYBODY, "app"), BOTH),
        Candidate(Entity(EVERYBODY, EVERYBODY), BOTH),
        Candidate(Entity(EVERYBODY, None), AS_ALICE),
        Candidate(Entity(None, "app"), AS_APP),
        Candidate(Entity(None, EVERYBODY), AS_APP),
    )


def test_a_client_without_an_id_has_quotas_of_users_alone() -> None:
    assert [each.entity for each in list_candidates("alice", "")] == [Entity("alice", None), Entity(EVERYBODY, None)]


def test_a_user_without_a_name_has_quotas_of_clients_alone() -> None:
    assert [each.entity for each in list_candidates("", "app")] == [Entity(None, "app"), Entity(None, EVERYBODY)]


def test_who_has_no_name_at_all_has_no_quota() -> None:
    assert list_candidates("", "") == ()


@pytest.mark.parametrize("is_user", [True, False])
def test_nobody_shares_a_bucket_with_who_has_another_name(is_user: bool) -> None:
    mine = {each.sharing for each in list_candidates("alice", "app")}
    others = list_candidates("bob", "app") if is_user else list_candidates("alice", "other")
    shared = mine & {each.sharing for each in others}
    assert shared == {AS_APP if is_user else AS_ALICE}
