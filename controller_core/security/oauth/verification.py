"""The verification of a client's token: signature, times, audience, issuer and name, as in Kafka's validator.

Strangers cause little work: a signature is verified only if its algorithm is in a list and its key is known, and the
claims are decoded only if the signature is right. PyJWT looks at each character of a token, which takes milliseconds.
"""

import time
from typing import Any, Final

import jwt
from jwt.algorithms import get_default_algorithms
from jwt.utils import base64url_decode

from controller_core.security.oauth.key_sets import ALGORITHMS, KeySet, PublicKey
from controller_core.security.oauth.token_rules import InvalidToken, TokenRules, VerifiedToken

_METHODS: Final = get_default_algorithms()
_LONGEST_HEADER: Final = 4096
_LONGEST_KID: Final = 1000
"""Limit of the characters of a key's id. As in Kafka."""
_LONGEST_NAME: Final = 1000
_LONGEST_S: Final = 365 * 24 * 3600.0
"""Limit of a token's believed lifetime."""
_REASONS: Final[dict[type[Exception], str]] = {
    jwt.ExpiredSignatureError: "the token has expired: the client must get a new one, or the clocks differ",
    jwt.ImmatureSignatureError: "the token is not valid yet: see sasl.oauthbearer.clock.skew.seconds",
    jwt.InvalidAudienceError: "the token is for another audience: see sasl.oauthbearer.expected.audience",
    jwt.InvalidIssuerError: "the token has another issuer: see sasl.oauthbearer.expected.issuer",
}


class TokenVerifier:
    """Verifies the tokens of a listener."""

    def __init__(self, rules: TokenRules) -> None:
        self.rules: Final = rules
        self._keys = KeySet(rules, monotonic_s=time.monotonic)

    def expire_keys(self) -> None:
        """See `KeySet.expire`."""
        self._keys.expire()

    async def verify(self, token: str) -> VerifiedToken:
        """Return the content of a token. Raises `InvalidToken`, and `NoKeys` if there are no keys to verify it."""
        key, algorithm = await self._find_key(token)
        if not _is_signed(token, key, algorithm):
            raise InvalidToken("the token's signature is wrong")
        claims = self._decode(token, key, algorithm)
        self._check_scope(claims.get(self.rules.scope_claim))
        name = claims.get(self.rules.subject_claim)
        if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
            raise InvalidToken(
                f"the token's claim {self.rules.subject_claim} is not a name: see sasl.oauthbearer.sub.claim.name"
            )
        return VerifiedToken(name=name.strip(), expires_in_s=min(float(claims["exp"]) - time.time(), _LONGEST_S))

    async def _find_key(self, token: str) -> tuple[PublicKey, str]:
        encoded = token.partition(".")[0]
        if len(encoded) > _LONGEST_HEADER:
            raise InvalidToken(f"the token's header has more than {_LONGEST_HEADER} characters")
        try:
            header = jwt.get_unverified_header(f"{encoded}..")  # without the rest, which takes longer
        except (jwt.PyJWTError, RecursionError):
            raise InvalidToken("the token is not a usable JWT") from None
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise InvalidToken(f"the token's algorithm is none of {', '.join(ALGORITHMS)}")
        if not isinstance(kid, str | None) or (kid is not None and len(kid) > _LONGEST_KID):
            raise InvalidToken("the token names its key by something that is not an id")
        key = await self._keys.find_key(kid, algorithm)
        if key is None:
            raise InvalidToken("the token's key is not among those of sasl.oauthbearer.jwks.endpoint.url")
        return key, algorithm

    def _decode(self, token: str, key: PublicKey, algorithm: str) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=self.rules.audiences or None,
                issuer=self.rules.issuer,
                leeway=self.rules.clock_skew_s,
                options={"require": ["exp", "iat"], "verify_sub": False, "verify_jti": False},
            )
        except jwt.MissingRequiredClaimError as error:
            raise InvalidToken(f"the token has no claim {error.claim}") from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            # The cause is dropped, because it may quote the token.
            raise InvalidToken(_REASONS.get(type(error), "the token is malformed")) from None
        return claims

    def _check_scope(self, scope: object) -> None:
        scopes = scope if isinstance(scope, list) else [] if scope is None else [scope]
        if not all(isinstance(each, str) and each.strip() for each in scopes):
            raise InvalidToken(f"the token's claim {self.rules.scope_claim} is not a list of names")


def _is_signed(token: str, key: PublicKey, algorithm: str) -> bool:
    said, _, signature = token.rpartition(".")
    try:
        return _METHODS[algorithm].verify(said.encode(), key.key, base64url_decode(signature))
    except ValueError:
        return False
