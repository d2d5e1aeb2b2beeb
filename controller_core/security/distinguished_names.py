"""The subject of a certificate as Java writes it (`X500Principal.getName()`, RFC 2253): so brokers name who shows it.

The last part comes first. A part with several attributes has `+` between them. Attributes that RFC 2253 has no keyword for
are numbers, and their values bytes.
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
"""Of the kinds of strings, by their tags in ASN.1."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_SPACES: Final = " \r"


def subject_of(certificate: bytes) -> str:
    """`certificate`: as DER. Raises `ValueError` where it is none, or its subject cannot be read."""
    try:
        parts = list(Certificate.load(certificate).subject.chosen)
        return ",".join("+".join(_attribute(attribute) for attribute in part) for part in reversed(parts))
    except (TypeError, KeyError, AttributeError) as error:  # what asn1crypto raises for some of what is broken
        raise ValueError(f"the subject cannot be read: {error}") from error


def _attribute(attribute: Any) -> str:
    number, value = attribute["type"].dotted, attribute["value"]
    value = getattr(value, "chosen", value)
    encoding = _ENCODINGS.get(value.tag)
    keyword = _KEYWORDS.get(number)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{value.dump().hex()}"
    return f"{keyword}={_escaped(value.contents.decode(encoding, errors='replace'))}"


def _escaped(text: str) -> str:
    characters = ["\\" + each if each in _ESCAPED else "\\00" if each == "\0" else each for each in text]
    plain = "".join(characters)
    start, end = len(plain) - len(plain.lstrip(_SPACES)), len(plain.rstrip(_SPACES))
    if start >= end:
        return "".join("\\" + each for each in plain)
    return "".join(("\\" + each) for each in plain[:start]) + plain[start:end] + "".join("\\" + e for e in plain[end:])
