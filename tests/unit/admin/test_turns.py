"""The event loop serves sockets during the largest requests. The tests count its turns, not time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
from kio.schema.errors import ErrorCode

from controller_core.admin import alter_scram
from controller_core.admin.cluster import metadata
from controller_core.admin.topics import create_partitions, create_topics
from controller_core.controller.loop.slices import SLICE
from controller_core.controller.term.term import Term
from controller_core.model.quotas.mutation_quota import UNLIMITED
from controller_core.wire.listener.owned_api import AskBroker
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster
from simulation.turns import turns_during
from tests.unit.admin.cluster.test_metadata import request as question
from tests.unit.admin.cluster.test_metadata import view
from tests.unit.admin.test_alter_scram import upsert
from tests.unit.admin.topics.test_create_partitions import request as growth
from tests.unit.admin.topics.test_create_partitions import topic as grown
from tests.unit.admin.topics.test_create_topics import request as creation
from tests.unit.admin.topics.test_create_topics import topic

LARGE = 10 * SLICE


@pytest.fixture
async def served() -> AsyncIterator[Cluster]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        yield cluster


def term_of(cluster: Cluster) -> Term:
    term = cluster.active.controller.term
    assert term is not None
    return term


async def test_one_topic_of_very_many_partitions_is_placed_and_checked_in_steps(served: Cluster) -> None:
    asked = creation(topic("wide", create_topics.MAX_PARTITIONS_PER_REQUEST, 3), validate_only=True)
    answer: Any
    answer, turns = await turns_during(create_topics.on_create_topics(term_of(served), asked, UNLIMITED))
    assert [result.error_code for result in answer.topics] == [ErrorCode.invalid_partitions]
    assert turns >= 20


async def test_a_topic_that_shall_have_very_many_partitions_is_placed_in_steps(served: Cluster) -> None:
    served.create_topic("orders", [1, 2])
    await served.settle()
    asked = growth(grown("orders", create_topics.MAX_PARTITIONS_PER_REQUEST))
    answer: Any
    answer, turns = await turns_during(create_partitions.on_create_partitions(term_of(served), asked, UNLIMITED))
    assert [result.error_code for result in answer.results] == [ErrorCode.invalid_partitions]
    assert turns >= 20


async def test_the_answer_about_thousands_of_topics_is_made_in_slices(served: Cluster) -> None:
    few, many = (
        creation(*(topic(f"topic-{number}", 1, 1) for number in range(count)), validate_only=True)
        for count in (1, LARGE)
    )
    _, turns_of_few = await turns_during(create_topics.on_create_topics(term_of(served), few, UNLIMITED))
    answer: Any
    answer, turns = await turns_during(create_topics.on_create_topics(term_of(served), many, UNLIMITED))
    assert {result.error_code for result in answer.topics} == {ErrorCode.none}
    checks, results = create_topics.TOPIC_WEIGHT * LARGE // SLICE, LARGE // SLICE
    assert turns - turns_of_few >= checks + results


async def test_the_users_of_a_request_are_looked_at_in_slices(served: Cluster) -> None:
    users = tuple(upsert(f"user-{number}", mechanism=9) for number in range(LARGE))
    asked = AlterUserScramCredentialsRequest(deletions=(), upsertions=users)
    answer, turns = await turns_during(alter_scram.on_alter_scram(term_of(served), asked))
    assert {result.error_code for result in answer.results} == {ErrorCode.unsupported_sasl_mechanism}
    assert turns >= 3 * LARGE // SLICE


@pytest.mark.parametrize("version", [0, 9, 12])
async def test_where_no_broker_answers_all_topics_are_answered_in_slices(served: Cluster, version: int) -> None:
    served.create_topic("wide", *([1, 2] for _ in range(LARGE)))
    await served.settle()
    asked = await metadata.on_metadata(view(served), question(version))
    assert isinstance(asked, AskBroker)
    assert asked.otherwise is not None
    answer: Any
    answer, turns = await turns_during(asked.otherwise())
    assert answer.__version__ == version
    assert [len(entry.partitions) for entry in answer.topics] == [LARGE]
    assert turns >= LARGE // SLICE


async def test_a_topic_that_goes_while_all_are_answered_is_left_out_where_it_was_not_reached(served: Cluster) -> None:
    served.create_topic("a-wide", *([1, 2] for _ in range(LARGE)))
    served.create_topic("z-last", [1, 2])
    await served.settle()
    term = term_of(served)
    asked = await metadata.on_metadata(view(served), question(12))
    assert isinstance(asked, AskBroker)
    assert asked.otherwise is not None
    answering = asyncio.ensure_future(asked.otherwise())
    await asyncio.sleep(0)  # now the first slice is made
    first, last = term.state.topics
    term.state.remove_topic(last)
    answer: Any = await answering
    assert [entry.name for entry in answer.topics] == [first]
