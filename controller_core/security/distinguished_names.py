"""The subject of a certificate as Java writes it (`X500Principal.getName()`, RFC 2253), from which principals are made.

The last part comes first. A part with several attributes has `+` between them. Attributes without a keyword in RFC 2253
are written as numbers, and their values as bytes.
"""

from typing import Final

from controller_core.security.der import SEQUENCE, SET, Element, read_element, read_object_identifier

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
_STRINGS: Final = frozenset({12, 19, 20, 22, 27, 30})
"""The ASN.1 tags of the strings that Java writes as text. It reads the bytes of each kind as UTF-8, also those of a
BMPString."""
_VERSION: Final = 0xA0
_SUBJECT: Final = 4
"""The place of the subject among the fields of a certificate, without the version."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_SPACES: Final = " \r"


def read_subject(certificate: bytes) -> str:
    """Return the subject of a certificate in DER. Raises `ValueError` if it is not a certificate or its subject is
    unreadable."""
    signed = read_element(certificate).parts(SEQUENCE)
    fields = signed[0].parts(SEQUENCE) if signed else []
    fields = fields[1:] if fields and fields[0].tag == _VERSION else fields
    if len(fields) <= _SUBJECT:
        raise ValueError("the subject cannot be read: this is not a certificate")
    return write_name(fields[_SUBJECT].encoded)


def write_name(name: bytes) -> str:
    """Return a distinguished name in DER as text. Raises `ValueError` if it is unreadable."""
    parts = read_element(name).parts(SEQUENCE)
    return ",".join("+".join(map(_write_attribute, part.parts(SET))) for part in reversed(parts))


def _write_attribute(attribute: Element) -> str:
    fields = attribute.parts(SEQUENCE)
    if len(fields) != 2:
        raise ValueError("an attribute of the subject cannot be read")
    number, value = read_object_identifier(fields[0]), fields[1]
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or number}=#{value.encoded.hex()}"
    try:
        return f"{keyword}={_escape(value.contents.decode())}"
    except UnicodeDecodeError as error:
        # Java replaces such bytes by U+FFFD, which gives several subjects one name.
        raise ValueError(f"its {keyword} is not UTF-8: issue it with a UTF8String") from error


def _escape(text: str) -> str:
    characters = ["\\" + each if each in _ESCAPED else "\\00" if each == "\0" else each for each in text]
    plain = "".join(characters)
    start, end = len(plain) - len(plain.lstrip(_SPACES)), len(plain.rstrip(_SPACES))
    # A value of nothing but spaces: each of them must be escaped.
    if start >= end:
        return "".join("\\" + each for each in plain)
    return "".join(("\\" + each) for each in plain[:start]) + plain[start:end] + "".join("\\" + e for e in plain[end:])
