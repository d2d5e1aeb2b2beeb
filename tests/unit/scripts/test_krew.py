"""krew's manifest fulfils krew's rules, and has the hash of the built archive."""

import os
import re
import subprocess
import sys
import tomllib
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import jsonschema
import yaml

from scripts import krew

ROOT = Path(__file__).resolve().parents[3]
MANIFEST: dict[str, Any] = yaml.safe_load(krew.MANIFEST.read_text())
LINE = {"type": "string", "minLength": 1}
SCHEMA = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "krew.googlecontainertools.github.com/v1alpha2"},
        "kind": {"const": "Plugin"},
        "metadata": {"type": "object", "properties": {"name": {"pattern": r"^[\w-]+$"}}, "required": ["name"]},
        "spec": {
            "type": "object",
            "required": ["version", "shortDescription", "platforms", "homepage", "description"],
            "additionalProperties": False,
            "properties": {
                "version": {"pattern": r"^v\d+\.\d+\.\d+$"},
                "shortDescription": {"type": "string", "minLength": 1, "maxLength": 50, "pattern": "[^.]$"},
                "description": LINE,
                "caveats": LINE,
                "homepage": {"pattern": "^https://"},
                "platforms": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["selector", "uri", "sha256", "bin"],
                        "additionalProperties": False,
                        "properties": {
                            "selector": {"type": "object"},
                            "uri": {"pattern": r"^https://.*\.zip$"},
                            "sha256": {"pattern": "^[0-9a-f]{64}$"},
                            "bin": LINE,
                            "files": {"type": "array", "items": {"required": ["from", "to"]}},
                        },
                    },
                },
            },
        },
    },
}
"""The rules of krew's validation of a manifest (pkg/index/validation)."""


def test_the_manifest_is_as_krew_wants_it() -> None:
    jsonschema.validate(MANIFEST, SCHEMA)
    assert krew.MANIFEST.stem == MANIFEST["metadata"]["name"]


def test_the_committed_manifest_is_that_of_the_archive() -> None:
    assert krew.MANIFEST.read_text() == krew.manifest(), "stale: run `python -m scripts.krew ARCHIVE`"
    (platform,) = MANIFEST["spec"]["platforms"]
    assert platform["sha256"] == sha256(krew.archive()).hexdigest()


def test_the_archive_has_an_executable_and_a_licence() -> None:
    (platform,) = MANIFEST["spec"]["platforms"]
    with ZipFile(BytesIO(krew.archive())) as archive:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    assert modes == {"kubectl-kontroller": 0o755, "LICENSE": 0o644}
    assert {each["from"] for each in platform["files"]} == modes.keys()
    assert platform["bin"] in modes
    assert os.access(krew.PLUGIN, os.X_OK)


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == krew.VERSION
    assert project["scripts"]["kubectl-kontroller"] == "kontroller.plugin.command_line:main"


def test_the_script_runs_the_plugin_and_hands_its_exit_code_on() -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"}
    run = subprocess.run(
        [krew.PLUGIN, "plan", "nonsense"], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert re.search("KIND/NAME|KUBECONFIG", run.stderr)


def test_the_script_does_not_run_what_lies_about_and_says_what_is_missing(tmp_path: Path) -> None:
    package = tmp_path / "kontroller" / "plugin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "command_line.py").write_text("print('surprise')")
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    run = subprocess.run([krew.PLUGIN], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert "install the distribution kafka-kontroller" in run.stderr
