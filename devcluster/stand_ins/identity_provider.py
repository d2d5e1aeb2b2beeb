"""An identity provider on this machine: a token endpoint for client credentials, and the keys of its tokens."""

import json
import ssl
import time
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER: Final = "https://identity.example"
AUDIENCE: Final = "kafka"
_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class Key:
    """A key pair with its id. Its kind follows from the algorithm."""

    kid: str
    algorithm: str = "RS256"
    private: Any = field(default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=_BITS))

    @classmethod
    def make_curve(cls, kid: str) -> "Key":
        return cls(kid, "ES256", ec.generate_private_key(ec.SECP256R1()))

    def public(self) -> dict[str, Any]:
        """Return the public key as in a JWKS (RFC 7517)."""
        public = self.private.public_key()
        if self.algorithm == "EdDSA":
            written = OKPAlgorithm.to_jwk(public)
        elif self.algorithm.startswith("ES"):
            written = ECAlgorithm.to_jwk(public)
        else:
            written = RSAAlgorithm.to_jwk(public)
        made: dict[str, Any] = json.loads(written)
        return {**made, "kid": self.kid, "alg": self.algorithm, "use": "sig"}


@dataclass(slots=True)
class IdentityProvider:
    """The provider. Use it as a context manager to serve HTTP on a port of its own."""

    clients: dict[str, str] = field(default_factory=lambda: {"admin": "a secret"})
    """The secrets by client. A token's subject is the client."""
    keys: list[Key] = field(default_factory=lambda: [Key("first")])
    """The published keys. The last one signs."""
    lifetime_s: float = 3600
    certificate: tuple[str, str] | None = None
    """The files of a certificate and of its key, to serve HTTPS."""
    answer: Callable[[str], tuple[int, bytes]] | None = None
    """Returns status and content for a path, instead of the proper answer."""
    asked: list[str] = field(default_factory=list)
    """The paths of all requests."""
    scopes: list[str] = field(default_factory=list)
    """The scopes of the requests for tokens."""
    _is_asked: Event = field(default_factory=Event)
    _resume: Event = field(default_factory=Event)
    _server: ThreadingHTTPServer | None = None

    def __post_init__(self) -> None:
        self._resume.set()

    def issue(self, subject: str, *, key: Key | None = None, **claims: object) -> str:
        """Return a signed token. A claim that is None is left out."""
        now_s = int(time.time())
        said = {"sub": subject, "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + self.lifetime_s, **claims}
        signed_by = key or self.keys[-1]
        return jwt.encode(
            {name: value for name, value in said.items() if value is not None},
            signed_by.private,
            algorithm=signed_by.algorithm,
            headers={"kid": signed_by.kid},
        )

    def jwks(self) -> bytes:
        """Return the published keys as a document."""
        return json.dumps({"keys": [key.public() for key in self.keys]}).encode()

    def wait_asked(self) -> None:
        """Wait for the first request."""
        assert self._is_asked.wait(timeout=60), "nobody asked"

    def hold(self) -> None:
        """Answer nothing until `resume` is called."""
        self._resume.clear()

    def resume(self) -> None:
        self._resume.set()

    @property
    def url(self) -> str:
        """The URL of the token endpoint."""
        return f"{self._base}/token"

    @property
    def jwks_url(self) -> str:
        return f"{self._base}/jwks"

    @property
    def _base(self) -> str:
        assert self._server is not None, "it serves as a context manager"
        return f"{'https' if self.certificate else 'http'}://localhost:{self._server.server_port}"

    def __enter__(self) -> Self:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        server.daemon_threads = True
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        self._server = server
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.resume()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def respond(self, path: str, authorization: str, form: bytes) -> tuple[int, bytes]:
        """Return status and content for a request."""
        self.asked.append(path)
        self._is_asked.set()
        self._resume.wait()
        if self.answer is not None:
            return self.answer(path)
        if path == "/jwks":
            return 200, self.jwks()
        asked = parse_qs(form.decode())
        self.scopes.extend(asked.get("scope", ()))
        client, _, secret = b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if asked.get("grant_type") != ["client_credentials"]:
            return 400, b'{"error":"unsupported_grant_type"}'
        if client not in self.clients or self.clients[client] != secret:
            return 401, b'{"error":"invalid_client","error_description":"the secret is not ' + secret.encode() + b'"}'
        token = self.issue(client)
        return 200, json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime_s}).encode()


def _make_handler(provider: IdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Passes requests to the provider."""

        def do_POST(self) -> None:
            self._respond(self.rfile.read(int(self.headers["Content-Length"] or 0)))

        def do_GET(self) -> None:
            self._respond(b"")

        def _respond(self, form: bytes) -> None:
            status, content = provider.respond(self.path, self.headers.get("Authorization", ""), form)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status in (301, 302):
                self.send_header("Location", provider.url)
            self.end_headers()
            try:
                self.wfile.write(content)
            except OSError:
                self.close_connection = True  # the client has left

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
