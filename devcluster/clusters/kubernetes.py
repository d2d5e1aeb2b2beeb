"""A Kubernetes API server with its etcd, without nodes and controllers: enough for resources, RBAC, admission and Helm
charts.

Nothing garbage-collects: objects of a deleted owner stay, and a deleted namespace stays `Terminating`. If KUBECONFIG is
set in the environment, `kubernetes_api` yields that cluster instead and leaves it running.
"""

import json
import os
import secrets
import shlex
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any, Final

from devcluster.building import progress
from devcluster.building.toolchain import require, run
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.programs import ETCD, HELM, KUBE_APISERVER, KUBECTL
from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import ManagedProcess, wait_until
from devcluster.running.servers import Startable
from devcluster.running.tokens import API_SERVER, Hold, machine_tokens

KEY: Final = "service-accounts.key"
"""The file of `make_credentials` below the data folder: the key that signs service accounts' tokens."""
CERTIFICATE: Final = "certificates/apiserver.crt"
"""The API server's certificate, below the data folder."""

_OUR_COMMANDS: Final = ("kontroller", "kubectl-kontroller")


class CommandError(Exception):
    """kubectl or helm failed; the message is its output."""


class KubernetesCluster:
    """The cluster of a kubeconfig file, used as its administrator."""

    def __init__(self, folder: RunFolder, kubeconfig: Path) -> None:
        self._folder = folder
        self.kubeconfig = kubeconfig

    def kubectl(self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None) -> str:
        """Run kubectl (by default as the administrator) and return its output. Raises CommandError."""
        return self._command(KUBECTL.path(), arguments, stdin, kubeconfig)

    def helm(self, *arguments: str, stdin: str | None = None) -> str:
        """Run helm and return its output. Raises CommandError."""
        return self._command(HELM.path(), arguments, stdin, None)

    def get(self, *arguments: str) -> Any:
        """Run `kubectl get ARGUMENTS -o json` and parse the output."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def wait_until_established(self, *definitions: str) -> None:
        """Wait until the API server serves these custom resource definitions, or all if none is named.

        `kubectl wait` fails on a definition that has no conditions yet, and clients find a kind a moment after its
        definition is established. Raises ConditionTimeoutError.
        """

        def are_established() -> bool:
            found = self.get("crds", *definitions)
            items = found.get("items", [found])
            return (
                all(map(_is_established, items)) and {each["metadata"]["name"] for each in items} <= self._list_served()
            )

        wait_until(are_established, "the API server serves the definitions")

    def _list_served(self) -> set[str]:
        """Return the resources that clients find, by `plural.group`; empty if the API server cannot answer for all."""
        try:
            return set(self.kubectl("api-resources", "--output", "name").split())
        except CommandError:
            return set()

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a token of an existing service account, so with exactly that account's rights."""
        token = self.kubectl("create", "token", name, "--namespace", namespace, "--duration", "24h").strip()
        shown = json.loads(self.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        path = self._folder.data("kubeconfigs") / f"{namespace}-{name}.json"
        write_private(path, json.dumps(kubeconfig(shown["clusters"][0]["cluster"], token, namespace)))
        return path

    def write_clients(self) -> Path:
        """Write a folder with `kubectl`, its plugin `kontroller`, `helm` and others as programs that reach this cluster
        without further settings.
        """
        folder = self._folder.data("bin")
        # kubectl accepts no option before the name of a plugin, so a variable says where the cluster is. The next cluster
        # has the same address, and kubectl remembers for hours which kinds an address serves.
        variables = {"KUBECONFIG": self.kubeconfig, "KUBECACHEDIR": self._folder.data("client")}
        where = f"export {' '.join(f'{name}={shlex.quote(str(path))}' for name, path in variables.items())}"
        for name, command in self._clients().items():
            script = folder / name
            script.write_text(f'#!/bin/sh\n{where}\nexec {shlex.join(command)} "$@"\n')
            script.chmod(0o755)
        return folder

    def _clients(self) -> Mapping[str, list[str]]:
        """Return the command lines of the programs of `write_clients`, by their names."""
        binaries = (KUBECTL.path(), HELM.path(), *(Path(sys.executable).with_name(name) for name in _OUR_COMMANDS))
        return {binary.name: self._client_command([str(binary)]) for binary in binaries}

    def _client_command(self, command: list[str]) -> list[str]:
        """Return the command line that runs a client so that it reaches the API server."""
        return command

    def _command(self, binary: Path, arguments: tuple[str, ...], stdin: str | None, kubeconfig: Path | None) -> str:
        own = str(self._folder.data("client"))
        folders = ("KUBECACHEDIR", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        done = subprocess.run(
            self._client_command([str(binary), "--kubeconfig", str(kubeconfig or self.kubeconfig), *arguments]),
            env={**os.environ, **dict.fromkeys(folders, own)},
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise CommandError(f"{binary.name} {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout


class KubernetesApi(KubernetesCluster, Startable):
    """An API server of our own: RBAC on, loopback only. Entering the context starts it and leaving kills it."""

    def __init__(self, folder: RunFolder, *, name: str = "kubernetes", options: tuple[str, ...] = ()) -> None:
        """`options`: further options of the API server."""
        self._data = folder.data(name)
        super().__init__(folder, self._data / "admin.json")
        self.port, self._etcd_port, self._etcd_peer_port = (reserve_port() for _ in range(3))
        self._certificate = self._data / CERTIFICATE
        self._token = make_credentials(self._data)
        self._hold: Hold | None = None
        self.etcd = ManagedProcess(
            f"{name}-etcd",
            etcd_command(self._data, clients=self._etcd_port, peers=self._etcd_peer_port),
            log_path=folder.log(f"{name}-etcd"),
            ready=self._etcd_is_healthy,
        )
        self.process = ManagedProcess(
            f"{name}-apiserver",
            [
                *api_server_command(self._data, etcd_port=self._etcd_port),
                "--bind-address=127.0.0.1",
                f"--secure-port={self.port}",
                # Without a controller manager nobody makes the service accounts that this admission step demands.
                "--disable-admission-plugins=ServiceAccount",
                *options,
            ],
            log_path=folder.log(f"{name}-apiserver"),
            ready=self._is_ready,
        )

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start both and wait until the default namespace is there. Raises StartError."""
        self._hold = self._hold or machine_tokens().take(API_SERVER)
        self.etcd.start()
        self.process.start()
        cluster = {"server": self.url, "certificate-authority": str(self._certificate)}
        write_private(self.kubeconfig, json.dumps(kubeconfig(cluster, self._token, "default")))

    def stop(self) -> None:
        """Kill both; the data stays for another start."""
        self.process.kill()
        self.etcd.kill()

    def restart(self) -> None:
        """Kill the API server and start it again; open watches break."""
        self.process.kill()
        self.process.start()

    def close(self) -> None:
        """Kill both and give the ports and tokens back."""
        self.stop()
        if self._hold is not None:
            self._hold.give_back()
            self._hold = None
        for port in (self.port, self._etcd_port, self._etcd_peer_port):
            release_port(port)

    def _etcd_is_healthy(self) -> bool:
        return b'"true"' in _read(HTTPConnection("127.0.0.1", self._etcd_port, timeout=2), "/health", {})

    def _is_ready(self) -> bool:
        trust = ssl.create_default_context(cafile=self._certificate)
        permission = {"Authorization": f"Bearer {self._token}"}
        for path in ("/readyz", "/api/v1/namespaces/default"):
            _read(HTTPSConnection("127.0.0.1", self.port, timeout=5, context=trust), path, permission)
        return True


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def make_credentials(data: Path) -> str:
    """Make the key that signs service accounts' tokens and an administrator's token, and return that token."""
    token = secrets.token_hex(16)
    write_private(data / "tokens.csv", f'{token},admin,admin,"system:masters"\n')
    run([require("openssl"), "genrsa", "-out", str(data / KEY), "2048"], what="making a service account key")
    return token


def etcd_command(data: Path, *, clients: int, peers: int) -> list[str]:
    """Return the command line of etcd on two loopback ports. Its data need not survive a power cut."""
    client_url, peer_url = f"http://127.0.0.1:{clients}", f"http://127.0.0.1:{peers}"
    return [
        str(ETCD.path()),
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--data-dir={data / 'etcd'}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
    ]


def api_server_command(data: Path, *, etcd_port: int) -> list[str]:
    """Return the command line of an API server with RBAC and the credentials of `make_credentials`.

    The caller adds the options about the address and the port.
    """
    return [
        str(KUBE_APISERVER.path()),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        f"--cert-dir={(data / CERTIFICATE).parent}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={data / KEY}",
        f"--service-account-signing-key-file={data / KEY}",
        "--authorization-mode=RBAC",
        f"--token-auth-file={data / 'tokens.csv'}",
    ]


@contextmanager
def kubernetes_api(folder: RunFolder) -> Iterator[KubernetesCluster]:
    """Yield the cluster of `$KUBECONFIG` if that is set, and leave it running; otherwise run one of our own in the
    block.
    """
    given = os.environ.get("KUBECONFIG")
    if given:
        progress.say(f"Using the cluster of $KUBECONFIG: {given}")
        yield KubernetesCluster(folder, Path(given))
    else:
        with KubernetesApi(folder) as cluster:
            yield cluster


def _read(connection: HTTPConnection, path: str, headers: dict[str, str]) -> bytes:
    """Return the body of a successful answer; raise OSError otherwise, which readiness checks take for not yet."""
    with closing(connection):
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        if answer.status != HTTPStatus.OK:
            raise OSError(f"{path} answered {answer.status}")
        return answer.read()


def kubeconfig(cluster: dict[str, Any], token: str, namespace: str) -> dict[str, Any]:
    """Return a kubeconfig file's content: a cluster entry, a bearer token and the default namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "devcluster",
        "clusters": [{"name": "devcluster", "cluster": cluster}],
        "users": [{"name": "devcluster", "user": {"token": token}}],
        "contexts": [
            {
                "name": "devcluster",
                "context": {"cluster": "devcluster", "user": "devcluster", "namespace": namespace},
            }
        ],
    }


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_text(text)
