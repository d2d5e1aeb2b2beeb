"""Names of objects: what Kubernetes takes, the same every time, and never the same for two topics."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_operator.resources.common import is_object_name
from kontroller.importing.object_names import NameTaken, ObjectNames, make_hashed_name, make_object_name

TOPICS = st.text(alphabet="abzAZ09._-", min_size=1, max_size=249)


@pytest.mark.parametrize("topic", ["orders", "audit.log", "a", "0", "a-b.c-d", "a" * 249])
def test_a_topic_whose_name_kubernetes_takes_keeps_it(topic: str) -> None:
    assert make_object_name(topic) == topic


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("Orders", "orders"),
        ("__consumer_offsets", "consumer-offsets"),
        ("audit..log", "audit-log"),
        ("audit.log-", "audit-log"),
        ("___", "topic"),
        ("A" * 249, "a" * 236),
    ],
)
def test_any_other_name_has_a_hash_behind_what_is_left_of_it(topic: str, words: str) -> None:
    assert re.fullmatch(rf"{words}-[0-9a-f]{{16}}", make_object_name(topic))


def test_a_name_is_the_same_every_time_and_as_it_is_documented() -> None:
    assert make_object_name("Orders") == "orders-b7e8acdd522e6190"


def test_a_topic_that_is_called_like_the_object_of_another_gets_another_name() -> None:
    impostor = make_object_name("Orders")
    assert make_object_name(impostor) not in (impostor, make_object_name("Orders"))


@given(st.sets(TOPICS, max_size=30))
def test_kubernetes_takes_every_name_and_no_two_topics_have_the_same(topics: set[str]) -> None:
    names = {make_object_name(topic) for topic in topics | {make_object_name(topic) for topic in topics}}
    assert all(map(is_object_name, names))
    given_out = ObjectNames()
    assert len({given_out.assign_name(topic) for topic in topics}) == len(topics)


def test_a_name_that_another_object_has_is_not_given_out() -> None:
    names = ObjectNames({"orders"})
    assert names.assign_name("orders") == make_hashed_name("orders")
    with pytest.raises(NameTaken):
        names.assign_name("orders")
