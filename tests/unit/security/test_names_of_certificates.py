"""The name of a certificate's subject: as Java writes it, and by the rules of the cluster."""

from pathlib import Path

import pytest

from controller_core.security.distinguished_names import read_subject
from controller_core.security.principal_mapping import NoRuleApplies, PrincipalMapping
from devcluster.building.toolchain import require, run


def subject(folder: Path, written: str, *options: str) -> str:
    """Return the name of the subject in a certificate that openssl makes."""
    certificate = folder / "certificate.der"
    run(
        [
            require("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-utf8", "-keyout", str(folder / "key"), "-outform", "DER", "-out", str(certificate), "-subj", written,
            *options,
        ],
        what="making a certificate",
    )  # fmt: skip
    return read_subject(certificate.read_bytes())


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("/CN=kafka", "CN=kafka"),
        ("/C=DE/ST=Berlin/L=Berlin/O=Org/OU=Unit/CN=kafka", "CN=kafka,OU=Unit,O=Org,L=Berlin,ST=Berlin,C=DE"),
        ("/DC=org/DC=example/UID=u/street=Way 1/CN=a", r"CN=a,STREET=Way 1,UID=u,DC=example,DC=org"),
        ("/CN=a+OU=b/O=c", "O=c,CN=a+OU=b"),
        ('/CN=a\\, b\\+c "d" <e>\\;f=g#h\\\\', r"CN=a\, b\+c \"d\" \<e\>\;f\=g\#h\\"),
        ("/CN=süß", "CN=süß"),
        ("/CN=  a  ", r"CN=\ \ a\ \ "),
        ("/CN=a/emailAddress=a@b.example", "1.2.840.113549.1.9.1=#160b6140622e6578616d706c65,CN=a"),
        ("/CN=a/serialNumber=7", "2.5.4.5=#130137,CN=a"),
    ],
)
def test_a_subject_is_written_as_java_writes_it(tmp_path: Path, written: str, shown: str) -> None:
    assert subject(tmp_path, written, "-multivalue-rdn") == shown


@pytest.mark.parametrize("broken", [b"", b"0", b"\x30\x03\x02\x01\x00", bytes(100)])
def test_what_is_no_certificate_is_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_subject(broken)


SUBJECT = "CN=Kafka,OU=Servers,O=Org"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("", SUBJECT),
        ("DEFAULT", SUBJECT),
        ("RULE:^CN=(.*?),OU=.*$/$1/", "Kafka"),
        ("RULE:^CN=(.*?),OU=.*$/$1/L", "kafka"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*)$/$1@$2.$3/U", "KAFKA@SERVERS.ORG"),
        ("RULE:^CN=other$/x/, RULE:^CN=(.*?),.*$/$1/,DEFAULT", "Kafka"),
        ("RULE:^CN=other$/x/,  DEFAULT", SUBJECT),
        ("RULE:^.*,O=(\\w+)$/$1-$2/", "Org-$2"),
        ("RULE:^CN=(.*?),.*$/\\$1/", "$1"),
        ("RULE:.*CN=(\\w)(\\w+),.*/$12/", "K2"),
    ],
)
def test_the_first_rule_that_the_whole_subject_matches_says_the_name(rules: str, name: str) -> None:
    assert PrincipalMapping(rules).find_name(SUBJECT) == name


def test_where_no_rule_applies_there_is_no_name() -> None:
    with pytest.raises(NoRuleApplies):
        PrincipalMapping("RULE:^CN=Kafka$/x/").find_name(SUBJECT)


@pytest.mark.parametrize("rules", ["RULE:a/b", "DEFAULT DEFAULT", "CN=(.*)", "RULE:(/x/", "DEFAULTS"])
def test_what_is_no_rule_is_refused_in_words(rules: str) -> None:
    with pytest.raises(ValueError, match=r"is not a rule|cannot be read"):
        PrincipalMapping(rules)
