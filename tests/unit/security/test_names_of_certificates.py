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
        ("DEFAULT", SUBJECT),
        ("RULE:^CN=(.*?),OU=.*$/$1/", "Kafka"),
        ("RULE:^CN=(.*?),OU=.*$/$1/L", "kafka"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*)$/$1@$2.$3/U", "KAFKA@SERVERS.ORG"),
        ("RULE:^CN=other$/x/, RULE:^CN=(.*?),.*$/$1/,DEFAULT", "Kafka"),
        ("RULE:^CN=other$/x/,  DEFAULT", SUBJECT),
        ("RULE:^.*,O=(?<org>\\w+)$/${org}-\\$/", "Org-$"),
        ("RULE:^CN=K|.*/x/", "xxx"),
        ("RULE:.*/x/", "xx"),
        ("RULE:(?:CN|OU|O)=([^,]*),?(?:OU=.*)?/<$1>/", "<Kafka>"),
        ("RULE:^CN=(.*?),.*$/\\$1/", "$1"),
        ("RULE:.*CN=(\\w)(\\w+),.*/$12/", "K2"),
    ],
)
def test_the_first_rule_that_the_whole_subject_matches_says_the_name(rules: str, name: str) -> None:
    assert PrincipalMapping(rules).find_name(SUBJECT) == name


@pytest.mark.parametrize(
    ("rule", "subject"),
    [
        (r"RULE:^CN=(\w+)$/$1/L", "CN=\u212aafka"),
        (r"RULE:^CN=k(\d+)$/$1/", "CN=k\u0661"),
        (r"RULE:^CN=a\s$/a/", "CN=a\u2003"),
    ],
)
def test_classes_have_ascii_characters_alone(rule: str, subject: str) -> None:
    with pytest.raises(NoRuleApplies):
        PrincipalMapping(rule).find_name(subject)


@pytest.mark.parametrize(
    ("rule", "subject", "words"),
    [
        ("RULE:.*/a/", "CN=a\n", "the end of a line"),
        ("DEFAULT", "CN=a\u2028", "the end of a line"),
        ("DEFAULT", "CN=" + "a" * 4096, "more than 4096 characters"),
        ("RULE:CN=(.*)/$1/L", "CN=\ua7c0", "releases of Java differ"),
        ("RULE:a*|.*/x/", "\U0001f600", "Java would cut in two"),
    ],
)
def test_a_subject_whose_name_depends_on_the_release_of_java_is_refused(rule: str, subject: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PrincipalMapping(rule).find_name(subject)


def test_no_subject_makes_a_match_take_long() -> None:
    rule = "RULE:" + "(.*),OU=" * 12 + "(.*)X/$1/"
    with pytest.raises(NoRuleApplies):
        PrincipalMapping(rule).find_name(",OU=" * 1000)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", r"write \\\("),
        (")", r"write \\\)"),
        ("[a", r"write \\\["),
        ("a{", r"write \\\{"),
        ("*a", r"write \\\*"),
        ("a*+", r"possessive, which is not supported: write a\*"),
        ("a**", "repeats twice"),
        ("(a*)*", "is ambiguous: leave out"),
        ("(?:(a))*a", r"write \(\?:...\) for the inner one"),
        ("((a)b){1,2}", r"or leave out \{1,2\}"),
        ("a{2,1}", "wrong order"),
        ("a{5000}", "write a shorter one"),
        ("(" * 60 + ")" * 60, "nested more than 50 deep"),
        ("(?i)a", r"write \[Aa\]"),
        ("(?=a)b", "only "),
        ("(?<n>a)(?<n>b)", "with another name"),
        (r"\ba", "write a class such as"),
        (r"\p{Alpha}", "write a class such as"),
        (r"(a)\1", "write a class such as"),
        ("[a&&b]", r"write \\&"),
        ("[a[b]]", r"write \\\["),
        ("[b-a]", "is no range"),
        (r"[\w-z]", r"write \\-"),
        ("[a-c-e]", r"write \\-"),
        ("\u00e9", "not printable ASCII"),
    ],
)
def test_a_pattern_that_java_may_read_in_another_way_is_refused_in_words(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PrincipalMapping(f"RULE:{pattern}/x/")


@pytest.mark.parametrize(
    ("replacement", "words"),
    [
        ("$2", "has no group 2: its groups are 0 to 1"),
        ("${n}", r"has no group n: write \(\?<n>"),
        ("$a", "after \\$ write the number"),
        (r"\$2", "leave out the \\$"),
    ],
)
def test_a_replacement_that_kafka_cannot_write_is_refused_in_words(replacement: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PrincipalMapping(f"RULE:(a)/{replacement}/")


def test_where_no_rule_applies_there_is_no_name() -> None:
    with pytest.raises(NoRuleApplies):
        PrincipalMapping("RULE:^CN=Kafka$/x/").find_name(SUBJECT)


@pytest.mark.parametrize("rules", ["RULE:a/b", "DEFAULT DEFAULT", "CN=(.*)", "RULE:(/x/", "DEFAULTS", ""])
def test_what_is_no_rule_is_refused_in_words(rules: str) -> None:
    with pytest.raises(ValueError, match=r"is not a rule|cannot be used|write DEFAULT"):
        PrincipalMapping(rules)
