"""A Kubernetes API server with its etcd: no nodes, no controllers, which is all that resources, RBAC,
admission and Helm charts need.

Nothing garbage-collects: objects of a deleted owner stay, and a deleted namespace stays `Terminating`. With
KUBECONFIG set in the environment, `kubernetes_api` hands out that cluster instead and leaves it running.
"""

import json
import os
import secrets
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

from devcluster.binaries import etcd_binary, helm_binary, kubernetes_binaries
from devcluster.ports import release_port, reserve_port
from devcluster.processes import ManagedProcess
from devcluster.run_folder import RunFolder
from devcluster.servers import Startable
from devcluster.toolchain import require, run


class CommandError(Exception):
    """kubectl or helm refused; the message is what it printed."""


class KubernetesCluster:
    """A cluster that a kubeconfig file leads to, as its administrator sees it."""

    def __init__(self, folder: RunFolder, kubeconfig: Path) -> None:
        self._folder = folder
        self.kubeconfig = kubeconfig

    def kubectl(self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None) -> str:
        """Runs kubectl (as the administrator unless told) and returns what it printed; raises CommandError."""
        return self._command(kubernetes_binaries() / "kubectl", arguments, stdin, kubeconfig)

    def helm(self, *arguments: str, stdin: str | None = None) -> str:
        """Runs helm and returns what it printed; raises CommandError."""
        return self._command(helm_binary(), arguments, stdin, None)

    def get(self, *arguments: str) -> Any:
        """`kubectl get ARGUMENTS -o json`, parsed."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a token of an existing service account, so with that account's rights and no others."""
        token = self.kubectl("create", "token", name, "--namespace", namespace, "--duration", "24h").strip()
        shown = json.loads(self.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        path = self._folder.data("kubeconfigs") / f"{namespace}-{name}.json"
        _write_private(path, json.dumps(_kubeconfig(shown["clusters"][0]["cluster"], token, namespace)))
        return path

    def _command(self, binary: Path, arguments: tuple[str, ...], stdin: str | None, kubeconfig: Path | None) -> str:
        own = str(self._folder.data("client"))
        folders = ("KUBECACHEDIR", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        done = subprocess.run(
            [str(binary), "--kubeconfig", str(kubeconfig or self.kubeconfig), *arguments],
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

    def __init__(self, folder: RunFolder, *, name: str = "kubernetes") -> None:
        self._data = folder.data(name)
        super().__init__(folder, self._data / "admin.json")
        self.port, self._etcd_port, self._etcd_peer_port = (reserve_port() for _ in range(3))
        self._certificate = self._data / "certificates" / "apiserver.crt"
        self._token = secrets.token_hex(16)
        _write_private(self._data / "tokens.csv", f'{self._token},admin,admin,"system:masters"\n')
        self.etcd = ManagedProcess(
            f"{name}-etcd", self._etcd_command(), log_path=folder.log(f"{name}-etcd"), ready=self._etcd_is_healthy
        )
        self.process = ManagedProcess(
            f"{name}-apiserver",
            self._api_server_command(),
            log_path=folder.log(f"{name}-apiserver"),
            ready=self._is_ready,
        )

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts both and waits until the default namespace is there; raises StartError."""
        self._make_service_account_key()
        self.etcd.start()
        self.process.start()
        cluster = {"server": self.url, "certificate-authority": str(self._certificate)}
        _write_private(self.kubeconfig, json.dumps(_kubeconfig(cluster, self._token, "default")))

    def stop(self) -> None:
        """Kills both; the data stays for another start."""
        self.process.kill()
        self.etcd.kill()

    def restart(self) -> None:
        """Kills the API server and starts it again; open watches break."""
        self.process.kill()
        self.process.start()

    def close(self) -> None:
        """Kills both and gives the ports back."""
        self.stop()
        for port in (self.port, self._etcd_port, self._etcd_peer_port):
            release_port(port)

    def _etcd_command(self) -> list[str]:
        clients = f"http://127.0.0.1:{self._etcd_port}"
        peers = f"http://127.0.0.1:{self._etcd_peer_port}"
        return [
            str(etcd_binary()),
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--data-dir={self._data / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        ]

    def _api_server_command(self) -> list[str]:
        key = self._data / "service-accounts.key"
        return [
            str(kubernetes_binaries() / "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self._certificate.parent}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self._data / 'tokens.csv'}",
            # Nothing here makes the service accounts that this admission step would demand.
            "--disable-admission-plugins=ServiceAccount",
        ]

    def _make_service_account_key(self) -> None:
        key = self._data / "service-accounts.key"
        if not key.exists():
            run([require("openssl"), "genrsa", "-out", str(key), "2048"], what="making a service account key")

    def _etcd_is_healthy(self) -> bool:
        return b'"true"' in _read(HTTPConnection("127.0.0.1", self._etcd_port, timeout=2), "/health", {})

    def _is_ready(self) -> bool:
        trust = ssl.create_default_context(cafile=self._certificate)
        permission = {"Authorization": f"Bearer {self._token}"}
        for path in ("/readyz", "/api/v1/namespaces/default"):
            _read(HTTPSConnection("127.0.0.1", self.port, timeout=5, context=trust), path, permission)
        return True


@contextmanager
def kubernetes_api(folder: RunFolder) -> Iterator[KubernetesCluster]:
    """The cluster of `$KUBECONFIG` when that is set, and it is left running; else one of our own that ends here."""
    given = os.environ.get("KUBECONFIG")
    if given:
        yield KubernetesCluster(folder, Path(given))
    else:
        with KubernetesApi(folder) as cluster:
            yield cluster


def _read(connection: HTTPConnection, path: str, headers: dict[str, str]) -> bytes:
    """The body of a successful answer; anything else raises OSError, which readiness takes as not yet."""
    with closing(connection):
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        if answer.status != HTTPStatus.OK:
            raise OSError(f"{path} answered {answer.status}")
        return answer.read()


def _kubeconfig(cluster: dict[str, Any], token: str, namespace: str) -> dict[str, Any]:
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


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
