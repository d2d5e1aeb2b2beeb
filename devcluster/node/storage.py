"""Volumes for the pods of a node: ready-made folders of the run, in the node's default storage class."""

import json
from pathlib import Path
from typing import Any

_CLASS = "run-folder"
_COUNT = 16


def manifests(data: Path) -> str:
    """Return the storage class and its volumes, as one list to apply; makes the volumes' folders."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": _CLASS, "annotations": default},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volumes = [_volume(number, data / "volumes" / str(number)) for number in range(_COUNT)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [storage_class, *volumes]})


def _volume(number: int, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    # The kubelet gives a host's folder to no group, and pods run as various users.
    folder.chmod(0o777)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{number}"},
        "spec": {
            "storageClassName": _CLASS,
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(folder)},
        },
    }
