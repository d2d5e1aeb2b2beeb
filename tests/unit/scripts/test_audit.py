"""An audit names what is vulnerable, works from the cache, and fails if it has no database."""

import json
import os
import time
import zipfile
from functools import cmp_to_key
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from scripts import audit
from scripts.audit import Finding, Package, find_vulnerable, read_lock, read_parts
from scripts.package_versions import compare_debian, compare_maven, order_pypi

# From old to new.
DEBIAN = ["0~rc1", "0", "1.0~rc1-1", "1.0-1", "1.0-1+deb12u1", "1.0-1+deb12u2", "1.0-1+deb12u10", "1.0a-1", "1.0+b-1",
          "1.2-1", "1.10-1", "17.0.9+9-1~deb12u1", "17.0.10+7-1~deb12u1", "1:0.1-1"]  # fmt: skip
MAVEN = ["1-alpha", "1-alpha-2", "1-beta", "1-m1", "1-rc1", "1-SNAPSHOT", "1", "1-sp", "1-jre8", "1-1", "1.1", "1.2.3",
         "1.2.3.1", "1.10", "2.13.0-M1", "2.13.0", "2.13.1"]  # fmt: skip


def reverse(versions: list[str]) -> list[str]:
    return versions[::-1]


def test_debians_versions_have_its_order() -> None:
    assert sorted(reverse(DEBIAN), key=cmp_to_key(compare_debian)) == DEBIAN


def test_mavens_versions_have_its_order() -> None:
    assert sorted(reverse(MAVEN), key=cmp_to_key(compare_maven)) == MAVEN
    for one, other in [
        ("1", "1.0.0"),
        ("1.0-ga", "1"),
        ("1.0.RELEASE", "1-final"),
        ("1-A1", "1-alpha-1"),
        ("1.0-1", "1-1"),
    ]:
        assert compare_maven(one, other) == compare_maven(other, one) == 0


def test_pythons_versions_have_its_order() -> None:
    versions = ["not a version", "1.0rc1", "1.0", "1.0.post1", "1.9", "1.10"]
    assert sorted(reverse(versions), key=order_pypi) == versions


def make_database(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for record in records:
            file.writestr(f"{record['id']}.json", json.dumps(record))
    return path


def record(id_: str, ecosystem: str, name: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    return {"id": id_, "affected": [{"package": {"ecosystem": ecosystem, "name": name}, "ranges": ranges, **more}]}


KAFKA = "org.apache.kafka:kafka-clients"


@pytest.mark.parametrize(
    ("version", "is_vulnerable"),
    [("2.9", False), ("3.0.0", True), ("3.9.0", True), ("3.9.1", False), ("4.0.0", True), ("4.1", False)],
)
def test_a_version_is_vulnerable_between_its_bounds(tmp_path: Path, version: str, is_vulnerable: bool) -> None:
    bounds = {"introduced": "4.0"}, {"last_affected": "4.0.0"}, {"fixed": "3.9.1"}, {"introduced": "3.0"}
    database = make_database(tmp_path / "x.zip", record("A", "Maven", KAFKA, *bounds))
    package = Package("Maven", KAFKA, version)
    assert find_vulnerable(database, [package]) == ([Finding(package, "A", ("3.9.1",))] if is_vulnerable else [])


def test_other_packages_releases_and_withdrawn_records_are_left_out(tmp_path: Path) -> None:
    start = {"introduced": "0"}
    database = make_database(
        tmp_path / "x.zip",
        record("LISTED", "PyPI", "Some.Name", versions=["1"]),
        record("HERE", "Debian:12", "openssl", start),
        record("ELSEWHERE", "Debian:13", "openssl", start),
        record("OTHER", "PyPI", "openssl", start),
        {**record("WITHDRAWN", "PyPI", "some-name", start), "withdrawn": "2026-01-01"},
        {"id": "GIT", "affected": [{"ranges": [{"type": "GIT", "events": [start]}]}]},
    )
    packages = [Package("PyPI", "some-name", "1"), Package("Debian", "openssl", "3.0-1")]
    assert [each.id for each in find_vulnerable(database, packages)] == ["HERE", "LISTED"]


def test_packages_are_read_from_locks_and_lists_of_parts(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a-b==1.0 \\\n    --hash=sha256:00\nc==2 ; python_version < '3.12'\n")
    assert list(read_lock(tmp_path / "x.txt")) == [Package("PyPI", "a-b", "1.0"), Package("PyPI", "c", "2")]
    purls = [
        "pkg:maven/org.apache.kafka/kafka-clients@3.9.1?type=jar",
        "pkg:deb/debian/libssl3@3.0.17-1~deb12u2?arch=amd64&distro=debian-12&upstream=openssl",
        "pkg:deb/debian/libgcc-s1@12.2.0-14?upstream=gcc-12%4012.2.0-13",
        "pkg:deb/debian/adduser@3.134?arch=all",
        "pkg:pypi/Typing_Extensions@4",
        "pkg:generic/openjdk@17",
    ]
    assert list(read_parts({"components": [{"purl": purl} for purl in purls] + [{"name": "none"}]})) == [
        Package("Maven", KAFKA, "3.9.1"),
        Package("Debian", "openssl", "3.0.17-1~deb12u2"),
        Package("Debian", "gcc-12", "12.2.0-13"),
        Package("Debian", "adduser", "3.134"),
        Package("PyPI", "typing-extensions", "4"),
    ]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of databases, on a machine without a network."""

    def refuse(*_: object, **__: object) -> None:
        raise URLError("no such host")

    monkeypatch.setenv("KONTROLLER_CACHE", str(tmp_path))
    monkeypatch.setattr(audit, "urlopen", refuse)
    return tmp_path / "vulnerabilities"


def test_without_a_database_it_fails_and_says_where_to_put_it(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main() == 2
    printed = capsys.readouterr().err
    assert printed.startswith("NOT AUDITED: https://osv-vulnerabilities.storage.googleapis.com/")
    assert f"(no such host): connect to the network, or put that file at {cache}" in printed


def test_without_a_network_it_uses_the_databases_of_the_last_time(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = {"introduced": "0"}
    make_database(cache / "PyPI.zip", record("P", "PyPI", "pydantic", start, {"fixed": "999"}))
    make_database(cache / "Maven.zip", record("M", "Maven", KAFKA, start))
    make_database(cache / "Debian.zip", record("D", "Debian:12", "openssl", start))
    for path in cache.iterdir():
        os.utime(path, (time.time() - 50 * 3600,) * 2)
    parts = tmp_path / "parts.json"
    purls = "pkg:maven/org.apache.kafka/kafka-clients@3.9.1", "pkg:deb/debian/libssl3@3.0?upstream=openssl"
    parts.write_text(json.dumps({"components": [{"purl": purl} for purl in purls]}))
    accepted = tmp_path / "accepted.txt"
    accepted.write_text(f"# why\nM {KAFKA} not reachable here\n")
    monkeypatch.setattr(audit, "ACCEPTED", accepted)
    assert audit.main(str(parts)) == 1
    printed = capsys.readouterr().out
    assert "Maven: database of 50 hours ago\n" in printed
    assert ": P, fixed in 999\n" in printed
    assert f"accepted: {KAFKA}: M: not reachable here\n" in printed
    assert "1 known to be vulnerable; 1 vulnerabilities of Debian's packages have no fix yet\n" in printed


def test_every_accepted_vulnerability_has_a_reason() -> None:
    assert all(audit.read_accepted().values())
