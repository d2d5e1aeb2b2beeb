"""Who is shown the credentials of a file: the servers that it names, and nobody whom a KafkaCluster names."""

from pathlib import Path

import pytest

from controller_core.security.properties_file import InvalidProperties
from controller_core.zk.secured.properties import NO_ZK_SECURITY
from controller_operator.kafka.ensembles import Ensembles


def written(folder: Path, name: str, connect: str, login: str) -> Path:
    file = folder / name
    file.write_text(f"zookeeper.connect={connect}\nzookeeper.auth.digest={login}\n")
    return file


@pytest.fixture
def ensembles(tmp_path: Path) -> Ensembles:
    return Ensembles(
        [
            written(tmp_path, "one", "zk-0.zk:2181,ZK-1.zk,[2001:db8::1]/kafka", "one:secret"),
            written(tmp_path, "two", "other:2182", "two:secret"),
        ]
    )


@pytest.mark.parametrize(
    ("connect", "user"),
    [
        ("zk-0.zk:2181,zk-1.zk:2181/kafka", "one"),
        ("zk-1.zk,zk-0.zk/another", "one"),
        ("[2001:db8::1]:2181", "one"),
        ("other:2182/kafka", "two"),
        ("other:2181/kafka", None),
        ("zk-0.zk:2181,stranger:2181/kafka", None),
        ("stranger:2181/zk-0.zk:2181", None),
        ("", None),
    ],
)
def test_only_the_servers_that_a_file_names_see_what_it_says(
    ensembles: Ensembles, connect: str, user: str | None
) -> None:
    security = ensembles.security_of(connect)
    assert (security.digest.username if security.digest else None) == user
    assert user is not None or security == NO_ZK_SECURITY


def test_a_file_that_changes_is_read_again(ensembles: Ensembles, tmp_path: Path) -> None:
    written(tmp_path, "two", "other:2182", "three:secret")
    digest = ensembles.security_of("other:2182").digest
    assert digest is not None
    assert digest.username == "three"


def test_a_file_for_nobody_is_refused_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("zookeeper.auth.digest=one:secret\n")
    with pytest.raises(InvalidProperties, match=r"zookeeper\.connect"):
        Ensembles([file]).check()
    with pytest.raises(InvalidProperties, match="absent"):
        Ensembles([tmp_path / "absent"]).check()
