"""Writes the CustomResourceDefinitions and docs/resources.md from the models of the resources.

    python -m scripts.crds

writes one file per kind to both folders, plain ones for `kubectl apply` and ones that the Helm chart renders, and the
page for people. The same models always give the same bytes.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from controller_operator.resources import KINDS
from controller_operator.resources.crds import SchemaError, custom_resource_definition
from scripts.resources_page.page import EXAMPLES, page

CRDS_FOLDER: Final = Path("crds")
CHART_FOLDER: Final = Path("charts/kontroller/templates/crds")
PAGE: Final = Path("docs/resources.md")

_HEADER: Final = "# Generated from the models in controller_operator/resources by `make crds`: change those instead.\n"
_CHART_METADATA: Final = """\
metadata:
  name: {name}
  {{{{- $kept := ternary (dict "helm.sh/resource-policy" "keep") dict .Values.crds.keep }}}}
  {{{{- include "kontroller.metadata" (dict "root" . "annotations" $kept) | nindent 2 }}}}
"""


def files(crds_folder: Path = CRDS_FOLDER, chart_folder: Path = CHART_FOLDER) -> dict[Path, str]:
    """Return the content of every file of the two folders, by its path."""
    contents = {}
    for kind in KINDS:
        crd = custom_resource_definition(kind)
        name = f"{kind.definition.plural}.yaml"
        contents[crds_folder / name] = _HEADER + _yaml(crd)
        contents[chart_folder / name] = _chart_template(crd)
    return contents


def write(crds_folder: Path = CRDS_FOLDER, chart_folder: Path = CHART_FOLDER) -> None:
    """Write the files, and remove those of kinds that no longer exist."""
    contents = files(crds_folder, chart_folder)
    for folder in (crds_folder, chart_folder):
        folder.mkdir(parents=True, exist_ok=True)
        for stale in set(folder.glob("*.yaml")) - contents.keys():
            stale.unlink()
    for path, content in contents.items():
        path.write_text(content)


def reference(examples: Path = EXAMPLES) -> str:
    """Return the page that describes all kinds, with the examples of a folder."""
    return page({kind.definition.kind: custom_resource_definition(kind) for kind in KINDS}, examples)


def _chart_template(crd: Mapping[str, Any]) -> str:
    """Return the CRD behind the chart's flag, with the chart's labels, and kept at `helm uninstall` if configured."""
    body = {keyword: value for keyword, value in crd.items() if keyword != "metadata"}
    if any("{{" in text for text in _texts(body)):
        raise SchemaError("a text in a model has '{{', which Helm would take for a template")
    lines = _yaml(body).splitlines(keepends=True)
    metadata = _CHART_METADATA.format(name=crd["metadata"]["name"])
    return "".join(["{{- if .Values.crds.install }}\n", _HEADER, *lines[:2], metadata, *lines[2:], "{{- end }}\n"])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


class _Dumper(yaml.SafeDumper):
    """Writes repeated lists in full, because few people can read YAML anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=110)


if __name__ == "__main__":
    write()
    PAGE.write_text(reference())
