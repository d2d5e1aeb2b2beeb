"""Writes images/*/sbom.cdx.json: the components that each image adds to its base, in CycloneDX's format.

Python distributions come from the image's lock file, with the checksums of its wheels and sources, jars from its pom.xml
with the licences and checksums of CycloneDX's Maven plugin. `image_parts.py` lists what a built image has besides. The
same inputs give the same bytes, so a difference is a change of what ships. Run by `make sbom`.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

_PROJECT = Path(__file__).resolve().parents[1]
_IMAGES = _PROJECT / "images"
_LOCKS = {"kontroller": "image.txt", "kontroller-history": "history.txt"}
_PLUGIN = "org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom"
_PIN = re.compile(r"^([a-z0-9._-]+)==(\S+)((?:.*\n +--hash=\S+)*)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def distributions(lock: Path) -> Iterator[Component]:
    """Yield the distributions of a lock file, except pip, which installs the others and is not in the image."""
    for name, version, hashes in _PIN.findall(lock.read_text()):
        if name == "pip":
            continue
        purl = PackageURL("pypi", name=name, version=version)
        component = Component(type=ComponentType.LIBRARY, name=name, version=version, purl=purl, bom_ref=str(purl))
        # The files of a version that may be installed; an installation takes the one of its platform.
        files = [HashType(alg=HashAlgorithm.SHA_256, content=found) for found in _HASH.findall(hashes)]
        url = XsUri(f"https://pypi.org/project/{name}/{version}/")
        component.external_references.add(
            ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=url, hashes=files)
        )
        yield component


def jars(pom: Path) -> Iterator[Component]:
    """Yield the jars that Maven copies for a pom.xml, without links to their websites."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "pom.xml"
        copy.write_text(pom.read_text())
        options = ["-DoutputFormat=json", f"-DoutputDirectory={folder}", "-DoutputName=bom", "-DschemaVersion=1.6"]
        subprocess.run(["mvn", "-q", "-B", "-f", str(copy), _PLUGIN, *options], check=True)  # noqa: S603, S607
        found = Bom.from_json(json.loads((Path(folder) / "bom.json").read_text()))
    for component in found.components:
        component.external_references.clear()
        component.description = component.publisher = None
        component.hashes = [digest for digest in component.hashes if digest.alg is HashAlgorithm.SHA_256]
        yield component


def write(image: Path) -> None:
    """Write the SBOM of an image."""
    bom = Bom()
    lock, pom = _LOCKS.get(image.name), image / "pom.xml"
    if lock:
        bom.components.update(distributions(_PROJECT / "locks" / lock))
    if pom.exists():
        bom.components.update(jars(pom))
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    document.pop("serialNumber")
    document["metadata"] = {"component": {"type": "container", "name": image.name, "bom-ref": image.name}}
    document.pop("dependencies", None)
    (image / "sbom.cdx.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    for containerfile in sorted(_IMAGES.glob("*/Containerfile")):
        write(containerfile.parent)
