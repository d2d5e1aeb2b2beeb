"""SCRAM users: Kafka's tool reads the client's writes, and the other way round."""

import pytest
from kio.schema.errors import ErrorCode

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import InvalidArgument, Refused
from devcluster.clients import tools
from tests.real.conformance.clusters import ConformanceCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


async def test_users_are_written_read_and_deleted_as_by_kafka_s_tool(
    cluster: ConformanceCluster, admin: AdminClient, name: str
) -> None:
    def theirs(*arguments: str) -> str:
        entity = ("--entity-type", "users", "--entity-name", name)
        done = cluster.run_tool(tools.CONFIGS, *entity, *arguments, bootstrap=cluster.kafka.bootstrap_servers)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    await admin.set_scram_user(name, "pencil", mechanism="SCRAM-SHA-256", iterations=4096)
    assert "SCRAM-SHA-256=iterations=4096" in theirs("--describe")
    assert "pencil" not in str(cluster.znodes.read(f"/config/users/{name}"))
    theirs("--alter", "--add-config", "SCRAM-SHA-512=[iterations=5000,password=eraser]")
    wanted = {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 5000}
    assert (await admin.list_scram_users())[name] == wanted
    await admin.delete_scram_user(name, "SCRAM-SHA-256")
    await admin.delete_scram_user(name, "SCRAM-SHA-512")
    with pytest.raises(Refused) as refused:
        await admin.delete_scram_user(name, "SCRAM-SHA-512")
    assert refused.value.code is ErrorCode.resource_not_found
    assert name not in await admin.list_scram_users()


async def test_what_makes_no_sense_is_not_sent(admin: AdminClient) -> None:
    with pytest.raises(InvalidArgument, match="choose SCRAM-SHA-256"):
        await admin.delete_scram_user("u", "MD5")
    with pytest.raises(InvalidArgument, match="choose 4096 to 16384"):
        await admin.set_scram_user("u", "p", iterations=100)
    with pytest.raises(InvalidArgument, match="give both"):
        await admin.set_scram_user("u", "")
