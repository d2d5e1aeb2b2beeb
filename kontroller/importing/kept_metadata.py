"""The labels and annotations that a KafkaTopic takes over from its source.

Marks of the tool that manages the source object stay behind. A copy of Argo CD's, Flux's or Helm's mark would make the
tool prune an object that it did not create."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kontroller.importing.values import Unreadable, read_text

_FOREIGN_DOMAINS: Final = (
    "banzaicloud.io",
    "confluent.io",
    "jikkou.io",
    "kapp.k14s.io",
    "kubectl.kubernetes.io",
    "meta.helm.sh",
    "objectset.rio.cattle.io",
    "strimzi.io",
)
"""Domains whose labels and annotations, and those of their subdomains, are marks of a tool."""
_MARKS: Final = frozenset({
    "app.kubernetes.io/instance",  # also the default mark of Argo CD before 3.0
    "app.kubernetes.io/managed-by",
    "argocd.argoproj.io/installation-id",
    "argocd.argoproj.io/instance",
    "argocd.argoproj.io/tracking-id",
    "config.kubernetes.io/origin",
    "helm.sh/chart",
    "helm.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/namespace",
    "heritage",
    "kafkaCluster",  # koperator's
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
    "managedBy",  # koperator's
})  # fmt: skip
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def select_labels(found: Mapping[str, object], notes: list[str]) -> dict[str, str]:
    """Return the labels to keep, and note those that Kubernetes refuses."""
    kept = {}
    for key, value in _select(found, "label", notes):
        if value and not _NAME.fullmatch(value):
            notes.append(f"label {key} is left out: Kubernetes refuses the value {value!r}")
        else:
            kept[key] = value
    return kept


def select_annotations(found: Mapping[str, object], notes: list[str]) -> dict[str, str]:
    """Return the annotations to keep, and note those that Kubernetes refuses."""
    return dict(_select(found, "annotation", notes))


def _select(found: Mapping[str, object], kind: str, notes: list[str]) -> Iterator[tuple[str, str]]:
    for key, value in found.items():
        domain, _, name = key.rpartition("/")
        if key in _MARKS or any(f".{domain}".endswith(f".{foreign}") for foreign in _FOREIGN_DOMAINS):
            continue
        if not _NAME.fullmatch(name) or (domain and not _DOMAIN.fullmatch(domain)):
            notes.append(f"{kind} {key} is left out: Kubernetes refuses the name")
            continue
        try:
            yield key, "" if value is None else read_text(value)
        except Unreadable as error:
            notes.append(f"{kind} {key} is left out: {error}")
