"""JAAS properties mean what they mean to Kafka. The expected values are those of Kafka 3.9's `JaasContext`."""

import pytest

from controller_core.security.jaas import read_jaas, read_options, read_users, write_jaas
from controller_core.security.properties_file import InvalidProperties

READ = {
    "blanks around =": ('username = "u" password\n=\t"p";', "p"),
    "an escaped character": (r'username="u" password="pa\$s";', "pa$s"),
    "an escaped quote": (r"username='u' password='p\'x';", "p'x"),
    "the other quote": ("""username="u" password="p'x";""", "p'x"),
    "a control character": (r'username="u" password="a\tb\n\a";', "a\tb\n\a"),
    "an escaped backslash": (r'username="u" password="a\\tb";', r"a\tb"),
    "octal digits": (r'username="u" password="\101\47\0471\400\8";', "A''1 08"),
    "no escape of Unicode": (r'username="u" password="\u0041";', "u0041"),
    "a word without quotes": ("username=u password=p-1.$_é;", "p-1.$_é"),
    "characters of the syntax in quotes": ('username="u" password="a;b=c # d //e /*f*/";', "a;b=c # d //e /*f*/"),
    "a comment behind": ('username="u" password="p"; // c', "p"),
    "comments between": ('/* a;\n */ username="u" // "x"\n password="p" /b\n;', "p"),
    "a line end in quotes": ('username="u\n password="p\n;', "p"),
    "the last of two": ('username="u" password="x" password="p";', "p"),
    "an empty value": ('username="u" password="";', ""),
    "another option": ('username="u" password="p" tokenauth="true";', "p"),
}


@pytest.mark.parametrize(("options", "password"), READ.values(), ids=READ)
def test_a_login_is_read_as_kafka_reads_it(options: str, password: str) -> None:
    read = read_jaas(f"a.PlainLoginModule Required {options}", name="sasl.jaas.config", module="module")
    assert (read.username, read.password) == ("u", password)


def test_the_passwords_of_a_listener_s_users_are_read_by_the_same_rules() -> None:
    text = r'a.PlainLoginModule required username="broker" user_alice="pa\$s" user_bob = ' "'p\\'x'; // c"
    assert read_users(text, name="sasl.jaas.config") == {"alice": "pa$s", "bob": "p'x"}


def test_an_empty_text_has_no_options() -> None:
    assert read_options(" \n", "sasl.jaas.config") == {}


REFUSED = {
    "no end": ('M required username="HIDDEN" password="HIDDEN"', "no ; outside quotes ends it"),
    "a quotation that is cut off": ('M required username="HIDDEN', "no ; outside quotes ends it"),
    "two ends": ('M required username="HIDDEN";;', "after its first ;"),
    "two modules": ('M required username="HIDDEN"; M required password="HIDDEN";', "after its first ;"),
    "a comment of the shell": ('M required password="HIDDEN"; # c', "after its first ;"),
    "a semicolon without quotes": ("M required password=HIDDEN;x;", "after its first ;"),
    "no flag": ('M username="HIDDEN" password="HIDDEN";', "the second word is none of required"),
    "only options": ('username="HIDDEN" password="HIDDEN";', "the second word is none of required"),
    "nothing before the end": (";", "the second word is none of required"),
    "no value": ('M required username password="HIDDEN";', 'as NAME="VALUE"'),
    "a number without quotes": ("M required username=HIDDEN password=1;", 'as NAME="VALUE"'),
    "a sign without quotes": ("M required username=u password=HIDDEN#1;", 'as NAME="VALUE"'),
    "a quote in a value": ('M required username="u" password="HIDDEN"HIDDEN";', "no ; outside quotes ends it"),
    "a blank in a value without quotes": ("M required username=u password=HIDDEN HIDDEN;", 'as NAME="VALUE"'),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_what_kafka_refuses_is_refused_and_never_quoted(text: str, why: str) -> None:
    with pytest.raises(InvalidProperties, match=r"sasl\.jaas\.config cannot be read: ") as error:
        read_jaas(text, name="sasl.jaas.config", module="module")
    assert why in str(error.value)
    assert "HIDDEN" not in str(error.value)


def test_options_are_written_so_that_they_are_read_again() -> None:
    options = {"username": 'a"b', "password": "\\'\n\r\t\0;\xe9\u2168"}
    assert read_options(write_jaas("M", options), "sasl.jaas.config") == options
