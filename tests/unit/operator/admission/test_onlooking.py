"""An operator that stands by answers, too, from sessions of its own that end when it begins to work."""

import asyncio

from controller_operator.admission.judge import Judge, Judgement
from controller_operator.admission.onlooking import Onlooker
from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.clusters import raw
from tests.unit.operator.running.operating import CLUSTER, Operating, watch_objects

WRONG = raw("KafkaTopic", {"partitions": 1, "replicationFactor": 1, "config": {"retention.ms": "soon"}}, name="new")


def onlooker(around: Operating) -> Onlooker:
    return Onlooker(around.runtime.find_working_access, around.runtime.store, around.connect)


async def test_who_stands_by_judges_by_what_it_reads_and_writes_nothing() -> None:
    async with watch_objects() as around:
        looking = onlooker(around)
        zxid = around.zookeeper.tree.zxid
        judgement = await Judge(around.runtime.store, looking.find_access).judge(WRONG)
        assert judgement.refusal is not None
        assert "retention.ms" in judgement.refusal
        assert around.zookeeper.tree.zxid == zxid
        await looking.close()


async def test_who_begins_to_work_judges_by_what_it_works_on_and_keeps_no_second_session() -> None:
    async with watch_objects() as around:
        looking = onlooker(around)
        judge = Judge(around.runtime.store, looking.find_access)
        await judge.judge(WRONG)
        (own,) = around.sessions
        around.runtime.call_at_beginning(looking.close)
        around.runtime.begin_work()
        await around.wait_for_reason(CLUSTER, "Reconciled")
        assert not own.is_connected
        assert (await judge.judge(WRONG)).refusal is not None
        assert await looking.find_access() is around.runtime.find_working_access()
        await looking.close()


async def test_a_question_that_is_open_as_the_work_begins_is_answered_and_leaves_no_session() -> None:
    async with watch_objects() as around:
        looking = onlooker(around)
        around.take_zookeeper_away()
        open_question = asyncio.create_task(Judge(around.runtime.store, looking.find_access).judge(WRONG))
        await asyncio.sleep(0)
        around.runtime.call_at_beginning(looking.close)
        around.runtime.begin_work()
        around.bring_zookeeper_back()
        assert "retention.ms" in ((await open_question).refusal or "")
        assert sum(session.is_connected for session in around.sessions) == 1
        await looking.close()


async def test_a_cluster_that_nobody_names_any_more_is_read_no_more() -> None:
    async with watch_objects() as around:
        looking = onlooker(around)
        judge = Judge(around.runtime.store, looking.find_access)
        await judge.judge(WRONG)
        (own,) = around.sessions
        await around.api.remove(Key(*CLUSTER))
        await around.wait_until(lambda: around.runtime.store.get(CLUSTER) is None)
        judgement = await judge.judge(WRONG)
        assert judgement.refusal is None
        assert "ClusterNotFound" in judgement.warnings[0]
        assert not own.is_connected
        await looking.close()


async def test_while_zookeeper_is_away_nothing_is_refused() -> None:
    async with watch_objects() as around:
        around.take_zookeeper_away()
        looking = onlooker(around)
        judgement = await Judge(around.runtime.store, looking.find_access).judge(WRONG)
        assert judgement.refusal is None
        assert judgement != Judgement()
        await looking.close()
