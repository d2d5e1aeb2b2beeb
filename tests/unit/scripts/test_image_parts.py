"""The list of parts of a built image has everything that is in it, with licences and checksums."""

import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from scripts.audit import Package, read_parts
from scripts.image_parts import list_parts, make_document

STATUS = """\
Package: libssl3
Status: install ok installed
Architecture: amd64
Source: openssl
Version: 3.0.17-1~deb12u2
Description: a library
 of several lines

Package: libgcc-s1
Status: install ok installed
Architecture: amd64
Source: gcc-12 (12.2.0-13)
Version: 12.2.0-14

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1
"""
METADATA = "Metadata-Version: 2.4\nName: Some.Name\nVersion: 1.2\nLicense-Expression: MIT\n\nName: of the text\n"
OLDER = "Name: other\nVersion: 2\nLicense: UNKNOWN\nClassifier: License :: OSI Approved :: BSD License\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_jar(path: Path, **members: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The file system of an image."""
    write(tmp_path / "var/lib/dpkg/status", STATUS)
    write(tmp_path / "usr/lib/os-release", 'NAME="Debian"\nVERSION_ID="12"\n')
    write(tmp_path / "usr/share/doc/libssl3/copyright", "Format: x\n\nFiles: *\nLicense: Apache-2.0\n Text\n")
    write(tmp_path / "opt/java/release", 'JAVA_VERSION="17.0.21"\nMODULES="java.base"\n')
    write(tmp_path / "opt/java/debian-version", "17.0.21+9-1~deb12u1\n")
    write(tmp_path / "opt/java/lib/modules", "modules")
    site = tmp_path / "opt/kontroller/lib/python3.11/site-packages"
    write(site / "some_name-1.2.dist-info/METADATA", METADATA)
    write(site / "some_name-1.2.dist-info/RECORD", "record")
    write(site / "other-2.dist-info/METADATA", OLDER)
    own = "META-INF/maven/org.apache.kafka/kafka-clients/pom.properties"
    shaded = "META-INF/maven/org.other/shaded/pom.properties"
    write_jar(
        tmp_path / "opt/kafka/libs/kafka-clients-3.9.1.jar",
        **{
            own: "groupId=org.apache.kafka\nartifactId=kafka-clients\nversion=3.9.1\n",
            shaded: "groupId=org.other\nartifactId=shaded\nversion=1\n",
            "META-INF/MANIFEST.MF": "Bundle-License: https://www.apache.org/licenses/LICENSE-2.0.txt\r\n",
        },
    )
    write_jar(tmp_path / "opt/kafka/libs/zookeeper-jute-3.8.4.jar")
    write(tmp_path / "opt/kafka/libs/broken-1.jar", "no archive")
    return tmp_path


def test_all_kinds_of_parts_are_listed_with_licences_and_checksums(root: Path) -> None:
    parts = {part["name"]: part for part in list_parts(root)}
    assert {name: part["version"] for name, part in parts.items()} == {
        "libssl3": "3.0.17-1~deb12u2", "libgcc-s1": "12.2.0-14", "openjdk-17": "17.0.21+9-1~deb12u1", "some-name": "1.2",
        "other": "2", "kafka-clients": "3.9.1", "zookeeper-jute": "3.8.4", "broken": "1",
    }  # fmt: skip
    licences = {name: [each["license"]["name"] for each in part.get("licenses", ())] for name, part in parts.items()}
    assert licences == {
        "libssl3": ["Apache-2.0"], "libgcc-s1": [], "openjdk-17": ["GPL-2.0-only WITH Classpath-exception-2.0"],
        "some-name": ["MIT"], "other": ["BSD License"], "zookeeper-jute": [], "broken": [],
        "kafka-clients": ["https://www.apache.org/licenses/LICENSE-2.0.txt"],
    }  # fmt: skip
    jar = sha256((root / "opt/kafka/libs/kafka-clients-3.9.1.jar").read_bytes()).hexdigest()
    assert parts["kafka-clients"]["hashes"] == [{"alg": "SHA-256", "content": jar}]
    assert parts["openjdk-17"]["hashes"][0]["content"] == sha256(b"modules").hexdigest()
    assert parts["some-name"]["hashes"][0]["content"] == sha256(b"record").hexdigest()


def test_an_audit_finds_the_parts_by_the_names_of_advisories(root: Path) -> None:
    assert set(read_parts(make_document("kontroller", root))) == {
        Package("Debian", "openssl", "3.0.17-1~deb12u2"),
        Package("Debian", "gcc-12", "12.2.0-13"),
        Package("Debian", "openjdk-17", "17.0.21+9-1~deb12u1"),
        Package("PyPI", "some-name", "1.2"),
        Package("PyPI", "other", "2"),
        Package("Maven", "org.apache.kafka:kafka-clients", "3.9.1"),
    }


def test_a_runtime_of_another_origin_is_listed_by_its_version(root: Path) -> None:
    (root / "opt/java/debian-version").unlink()
    (java,) = [part for part in list_parts(root) if part["name"].startswith("openjdk")]
    assert java["purl"] == "pkg:generic/openjdk@17.0.21"
