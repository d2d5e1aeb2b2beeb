"""The source of a recorder: the log of the controllers if it can be read, else the brokers. Unusable settings are
refused first."""

from pathlib import Path
from typing import Any

import pytest
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.api_versions.v3.response import ApiVersion
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16

from controller_core.model.ids import ControllerEpoch
from controller_core.process.recording.settings import RecorderProcessSettings
from controller_core.process.recording.sources import open_source
from controller_core.process.settings import InvalidSettings, load
from controller_core.recorder.directory import NOTHING_YET, Ended, UnusableDirectory
from controller_core.recorder.looker import ClusterLost
from controller_core.recorder.polled.looking import PolledLooker
from tests.unit.polling.quorum import API_VERSIONS, METADATA, NO_TIME, QUORUM, Quorum, Topic, serve


class Older(Quorum):
    """Brokers that do not say where controllers listen, as before Kafka 3.9."""

    def _answer(self, api_key: int, request: Any) -> Any:
        if api_key == API_VERSIONS and int(request.__version__) < 4:
            spoken = {METADATA: 12, API_VERSIONS: 4, QUORUM: 0}
            ranges = (
                ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(to)) for key, to in spoken.items()
            )
            return ApiVersionsResponse(error_code=ErrorCode.none, api_keys=tuple(ranges), throttle_time=NO_TIME)
        return super()._answer(api_key, request)


def settings(folder: Path, **given: object) -> RecorderProcessSettings:
    return load(RecorderProcessSettings, {"journal_directory": folder, **given})


async def test_where_the_log_is_not_told_brokers_are_asked_instead(tmp_path: Path) -> None:
    quorum = Older(topics={"orders": Topic([(1, 2)])})
    async with (
        serve(quorum),
        open_source(settings(tmp_path, bootstrap_server=str(quorum.address)), NOTHING_YET) as source,
    ):
        assert isinstance(source.looker, PolledLooker)
        view = await source.looker.look()
        assert (view.cluster_id, set(view.state.topics)) == ("kraft", {"orders"})
        assert view.role is not None
        assert view.role.id == quorum.leader


async def test_the_journal_of_another_cluster_is_not_gone_on_with(tmp_path: Path) -> None:
    quorum, ended = Older(), Ended(cluster_id="elsewhere", epoch=ControllerEpoch(4))
    async with serve(quorum):
        with pytest.raises(UnusableDirectory, match="of cluster elsewhere, this one is kraft"):
            async with open_source(settings(tmp_path, bootstrap_server=str(quorum.address)), ended):
                pass


async def test_a_cluster_that_does_not_answer_is_said_so(tmp_path: Path) -> None:
    wanted = settings(tmp_path, bootstrap_server="127.0.0.1:1", bootstrap_timeout_ms=1000)
    with pytest.raises(ClusterLost, match="no broker answered"):
        async with open_source(wanted, NOTHING_YET):
            pass


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give either --zookeeper"),
        ({"zookeeper": "localhost:2181", "bootstrap_server": "localhost:9092"}, "give either --zookeeper"),
        ({"bootstrap_server": "localhost"}, "--bootstrap-server"),
        ({"zookeeper": "localhost:2181", "command_config": Path("x")}, "--command-config needs --bootstrap-server"),
        ({"bootstrap_server": "a:1", "command_config": Path("x"), "properties": Path("y")}, "give one"),
    ],
)
def test_settings_say_one_cluster_and_one_way_to_it(tmp_path: Path, given: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidSettings, match=said):
        settings(tmp_path, **given)


async def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    wanted = settings(tmp_path, bootstrap_server="127.0.0.1:1", command_config=tmp_path / "nowhere")
    with pytest.raises(InvalidSettings, match="nowhere"):
        async with open_source(wanted, NOTHING_YET):
            pass
