"""Lists all parts of a built image in CycloneDX's format: Debian packages, the Java runtime, Python distributions, jars.

    python -m scripts.image_parts NAME ROOT > NAME.cdx.json

ROOT is the image's file system in a folder. Unlike images/*/sbom.cdx.json, which is made from locks alone, the list has
what the base and Debian's archive brought on the day of the build, with licences and checksums.
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

_LICENCE: Final = re.compile(r"^License:[ \t]*(\S.*)$", re.MULTILINE)
_JAVA_VERSION: Final = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_JAR_NAME: Final = re.compile(r"(.+?)-(\d[^/]*)\.jar")
_NO_LICENCE: Final = ("UNKNOWN", "")

Part = dict[str, Any]


def list_parts(root: Path) -> list[Part]:
    """Return the components, each once, sorted."""
    found: dict[str, Part] = {}
    for part in (*_list_debian(root), *_list_java(root), *_list_distributions(root), *_list_jars(root)):
        found.setdefault(part["bom-ref"], part)
    return [found[reference] for reference in sorted(found)]


def make_document(name: str, root: Path) -> dict[str, Any]:
    """Return the list of parts of an image."""
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": name, "bom-ref": name}},
        "components": list_parts(root),
    }


def _list_debian(root: Path) -> Iterator[Part]:
    release = _read_release(root)
    status = root / "var/lib/dpkg/status"
    for entry in status.read_text().split("\n\n") if status.exists() else ():
        fields = Parser().parsestr(entry.strip())
        if fields.get("Status", "").split()[-1:] != ["installed"]:
            continue
        name, version = fields["Package"], fields["Version"]
        source, _, given = fields.get("Source", name).partition(" ")
        upstream = source + (f"@{given.strip('()')}" if given else "")
        qualifiers = f"arch={fields['Architecture']}&distro=debian-{release}&upstream={quote(upstream, safe='')}"
        purl = f"pkg:deb/debian/{quote(name)}@{quote(version)}?{qualifiers}"
        yield _make_part(name, version, purl, licences=_read_debian_licences(root, name))


def _read_release(root: Path) -> str:
    path = root / "usr/lib/os-release"
    found = re.search(r'^VERSION_ID="?([^"\n]+)', path.read_text(), re.MULTILINE) if path.exists() else None
    return found[1] if found else "unknown"


def _read_debian_licences(root: Path, name: str) -> list[str]:
    path = root / "usr/share/doc" / name / "copyright"
    try:
        return sorted({each.strip() for each in _LICENCE.findall(path.read_text(errors="replace"))})
    except OSError:  # it is a link to the file of another package, or not there
        return []


def _list_java(root: Path) -> Iterator[Part]:
    for path in sorted(root.glob("opt/*/release")):
        if (found := _JAVA_VERSION.search(path.read_text())) is None:
            continue
        modules, made_of = path.parent / "lib/modules", path.with_name("debian-version")
        name, version, purl = "openjdk", found[1], f"pkg:generic/openjdk@{quote(found[1])}"
        if made_of.exists():
            # By the package that the runtime is made from, advisories find it.
            name, version = f"openjdk-{version.partition('.')[0]}", made_of.read_text().strip()
            purl = f"pkg:deb/debian/{name}@{quote(version)}?distro=debian-{_read_release(root)}"
        digest = _hash(modules) if modules.exists() else None
        yield _make_part(name, version, purl, digest=digest, licences=["GPL-2.0-only WITH Classpath-exception-2.0"])


def _list_distributions(root: Path) -> Iterator[Part]:
    for path in sorted(root.glob("opt/*/lib/python*/site-packages/*.dist-info/METADATA")):
        fields = Parser().parsestr(path.read_text(errors="replace"), headersonly=True)
        name, version = re.sub(r"[-_.]+", "-", fields["Name"]).lower(), fields["Version"]
        record = path.with_name("RECORD")
        # pip checked each file of the wheel against its record when it installed it.
        digest = _hash(record) if record.exists() else None
        yield _make_part(
            name, version, f"pkg:pypi/{name}@{quote(version)}", digest=digest, licences=_read_licences(fields)
        )


def _read_licences(fields: Any) -> list[str]:
    classifiers = [each for each in fields.get_all("Classifier", ()) if each.startswith("License :: ")]
    given = fields.get("License-Expression") or fields.get("License") or ""
    short = given.strip().partition("\n")[0]
    return [short] if short not in _NO_LICENCE else [each.rpartition(" :: ")[2] for each in classifiers]


def _list_jars(root: Path) -> Iterator[Part]:
    for path in sorted(root.glob("opt/**/*.jar")):
        if path.is_symlink():
            continue
        group, name, version = _read_coordinates(path)
        purl = f"pkg:maven/{quote(group, safe='')}/{quote(name)}@{quote(version)}?type=jar" if group else None
        yield _make_part(name, version, purl, digest=_hash(path), group=group, licences=_read_jar_licences(path))


def _read_coordinates(jar: Path) -> tuple[str, str, str]:
    """Return the group, name and version of a jar by its own record, or without a group by its file's name."""
    named = _JAR_NAME.fullmatch(jar.name)
    name, version = (named[1], named[2]) if named else (jar.stem, "unknown")
    for text in _read_members(jar, r"META-INF/maven/[^/]+/[^/]+/pom\.properties"):
        fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        # A jar may have the records of others that it includes.
        if fields.get("artifactId") == name and fields.get("groupId"):
            return fields["groupId"].strip(), name, fields.get("version", version).strip()
    return "", name, version


def _read_jar_licences(jar: Path) -> list[str]:
    texts = _read_members(jar, r"META-INF/MANIFEST\.MF")
    return sorted(
        {found.strip() for text in texts for found in re.findall(r"^Bundle-License: *(.+)$", text, re.MULTILINE)}
    )


def _read_members(jar: Path, pattern: str) -> list[str]:
    try:
        with zipfile.ZipFile(jar) as file:
            names = [name for name in file.namelist() if re.fullmatch(pattern, name)]
            return [file.read(name).decode(errors="replace") for name in names]
    except zipfile.BadZipFile:
        return []


def _make_part(
    name: str, version: str, purl: str | None, *, licences: list[str], digest: str | None = None, group: str = ""
) -> Part:
    reference = purl or f"{name}@{version}"
    part: Part = {"type": "library", "name": name, "version": version, "bom-ref": reference}
    if purl:
        part["purl"] = purl
    if group:
        part["group"] = group
    if digest:
        part["hashes"] = [{"alg": "SHA-256", "content": digest}]
    if licences:
        part["licenses"] = [{"license": {"name": each}} for each in licences]
    return part


def _hash(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


if __name__ == "__main__":
    json.dump(make_document(sys.argv[1], Path(sys.argv[2])), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
