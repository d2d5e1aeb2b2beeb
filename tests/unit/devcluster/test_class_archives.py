"""Archives of classes: each program takes its own. If none could be made, all start without one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from devcluster.building import class_archives
from devcluster.building.class_archives import Program
from devcluster.clients.tools import CONFIGS


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KONTROLLER_CACHE", str(tmp_path / "cache"))
    return tmp_path


def make_failing_command(_program: Program, _arguments: Sequence[str], _options: Sequence[str]) -> list[str]:
    return ["false"]


def test_what_is_no_server_is_a_tool() -> None:
    found = [class_archives.find_program(name) for name in ("kafka.Kafka", str(Program.ZOOKEEPER), CONFIGS)]
    assert found == [Program.BROKER, Program.ZOOKEEPER, Program.TOOL]


def test_a_program_takes_its_archive_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "broker.jsa").write_bytes(b"")
    assert class_archives.using(tmp_path, Program.BROKER)[0] == f"-XX:SharedArchiveFile={tmp_path}/broker.jsa"
    assert class_archives.using(tmp_path, Program.TOOL) == ()


def test_where_nothing_can_be_recorded_all_starts_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "java").touch()
    folder = class_archives.class_archives(str(tmp_path / "java"), ("jars",), make_failing_command).folder()
    assert [class_archives.using(folder, program) for program in Program] == [(), (), ()]
    assert "starts more slowly" in capsys.readouterr().err


def test_another_java_has_archives_of_its_own(tmp_path: Path) -> None:
    entries = []
    for name in ("java-17", "java-21"):
        (tmp_path / name).touch()
        entries.append(class_archives.class_archives(str(tmp_path / name), ("jars",), make_failing_command))
    first = entries[0].folder()
    assert (first.exists(), entries[1].is_there) == (True, False)
