"""The subject of a certificate as Java writes it (`X500Principal.getName()`, RFC 2253), from which principals are made.

The last part comes first. A part with several attributes has `+` between them. Attributes without a keyword in RFC 2253
are written as numbers, and their values as bytes.
"""

from typing import Any, Final

from asn1crypto.x509 import Certificate

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ENCODINGS: Final = {
    12: "utf-8",
    19: "ascii",
    20: "latin-1",
    22: "ascii",
    27: "latin-1",
    28: "utf-32-be",
    30: "utf-16-be",
}
"""The encoding of each string type, by its ASN.1 tag."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_SPACES: Final = " \r"


def read_subject(certificate: bytes) -> str:
    """Return the subject of a certificate in DER. Raises `ValueError` if it is not a certificate or its subject is
    unreadable."""
    try:
        parts = list(Certificate.load(certificate).subject.chosen)
        return ",".join("+".join(_attribute(attribute) for attribute in part) for part in reversed(parts))
    except (TypeError, KeyError, AttributeError) as error:  # asn1crypto raises any of these for broken input
        raise ValueError(f"the subject cannot be read: {error}") from error


def _attribute(attribute: Any) -> str:
    number, value = attribute["type"].dotted, attribute["value"]
    value = getattr(value, "chosen", value)
    encoding = _ENCODINGS.get(value.tag)
    keyword = _KEYWORDS.get(number)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{value.dump().hex()}"
    return f"{keyword}={_escape(value.contents.decode(encoding, errors='replace'))}"


def _escape(text: str) -> str:
    characters = ["\\" + each if each in _ESCAPED else "\\00" if each == "\0" else each for each in text]
    plain = "".join(characters)
    start, end = len(plain) - len(plain.lstrip(_SPACES)), len(plain.rstrip(_SPACES))
    # A value of nothing but spaces: each of them must be escaped.
    if start >= end:
        return "".join("\\" + each for each in plain)
    return "".join(("\\" + each) for each in plain[:start]) + plain[start:end] + "".join("\\" + e for e in plain[end:])
