"""Random certificates and mapping rules, with the names that Kafka's own classes give them.

`python -m tests.fuzz.principals` compares new ones until the time is over. The same seed gives the same ones.
"""

import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from typing import Annotated, Final

import typer

from controller_core.security.distinguished_names import write_name
from controller_core.security.principal_mapping import NoRuleApplies, PrincipalMapping
from devcluster.building.java import tool_command

_KAFKA: Final = Path(__file__).with_name("MapPrincipals.java")
_AT_ONCE: Final = 4000
_SUBJECTS: Final = 12
_WORDS: Final = (
    *("CN=", "OU=", "O=", ",", ",", "+", "kafka", "Kafka", "a", "a", "b", "b", "ab", "A", "K", "c1", "\\,", "\\\\"),
    *"_-09 \t\v\f\x1c\xa0\u3000\n\r\x85\u2028\ufffd${[",
    *"\u212a\u017f\xdf\u0130\u0131\u03c3\u03a3\u03c2\xe9\u0663\xb2\xaa\U0001f600\U00010400\u10d0\ua7c1\u0300",
)
_FAMILIAR: Final = 16
"""The number of words that are ASCII and frequent."""
_SUPPORTED: Final = r"""
    a b ab K CN= OU= , = . . . ^ $ - _ & : ! " # @ \w \W \d \D \s \S \. \, \/ \\ \$ \_ \- \[ \<
    [a-z] [^,] [^a] [ab] [A-Z0-9_] [\w.-] [^\w] [^\W] [\s,] [^\S] [\D] [-a] [a-] [\]] [+--] [\-a] [.] [(]
"""
_OTHERS: Final = r"""
    [^^] [a^] [a&b] [a&&b] [[a]b] []a] [b-a] [a-b-c] [--a] { } ] ) ( * ? é \b \B \A \z \Z \R \h \1 \t \x41 \u0041
    (?i) (?i:a) (?=a) (?!a) (?<=a) (?>a) (?#a) \p{Alpha} \Qa.b\E \k<n>
"""
_ATOMS: Final = (" ", *_SUPPORTED.split(), *_OTHERS.split())
_COMMON: Final = 1 + len(_SUPPORTED.split())
"""The number of atoms that are mostly supported. The others are chosen more rarely."""
_DENSE: Final = ("a", "b", "a", "b", ".", "[ab]", "[^b]", "^", "$")
"""Few atoms, with which subjects of few letters often match."""
_REPEATS: Final = (
    *("*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1,}", "{0,2}", "{1,3}?"),
    *("*+", "{2,1}", "{,2}", "{a}"),
)
_WRITTEN: Final = r"$1 $1 $1 $2 $0 $3 $12 $01 x - @ User . \$ \\ \/ \a \$1 \$2 \$0 ${n} ${m} ${1} $ $a { & $10 \1"
_REPLACED: Final = (" ", *_WRITTEN.split())
_KINDS: Final = (12, 12, 12, 19, 22, 20, 30, 28, 27, 4, 2, 18, 26)
_TYPES: Final = (
    *("550403", "550403", "550406", "550407", "550408", "550409", "55040a", "55040b", "0992268993f22c640119"),
    *("0992268993f22c640101", "2a864886f70d010901", "550405", "55040c", "55042a", "55040d"),
)
"""The types of attributes: those with a keyword in RFC 2253, and others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The numbers of names that equal Kafka's and that are refused here, and the differences."""

    equal: int = 0
    refused: int = 0
    differences: tuple[str, ...] = ()

    def __add__(self, other: "Comparison") -> "Comparison":
        return Comparison(
            equal=self.equal + other.equal,
            refused=self.refused + other.refused,
            differences=(*self.differences, *other.differences),
        )


def compare_rules(random: Random, number: int) -> Comparison:
    """Compare the names by random rules for random subjects."""
    asked = [(_make_rules(random), [_make_subject(random) for _ in range(_SUBJECTS)]) for _ in range(number)]
    lines = [" ".join(["rules", _write(rules), *map(_write, subjects)]) for rules, subjects in asked]
    total = Comparison()
    for (rules, subjects), answer in zip(asked, _ask_kafka(lines), strict=True):
        try:
            mapping = PrincipalMapping(rules)
        except ValueError:
            total += Comparison(refused=1)
            continue
        names = answer.split(" ") if answer != "invalid" else ["invalid"] * len(subjects)
        for subject, name in zip(subjects, names, strict=True):
            total += _compare(f"{rules!r} for {subject!r}", _find_name(mapping, subject), name)
    return total


def compare_subjects(random: Random, number: int) -> Comparison:
    """Compare the texts of random distinguished names."""
    names = [_make_name(random) for _ in range(number)]
    total = Comparison()
    for name, answer in zip(names, _ask_kafka([f"subject {name.hex()}" for name in names]), strict=True):
        try:
            ours = "=" + _write(write_name(name))
        except ValueError:
            ours = None
        total += _compare(name.hex(), ours, answer)
    return total


def _compare(asked: str, ours: str | None, kafkas: str) -> Comparison:
    if ours is None:
        return Comparison(refused=1)
    return Comparison(equal=1) if ours == kafkas else Comparison(differences=(f"{asked}: {ours}, Kafka: {kafkas}",))


def _find_name(mapping: PrincipalMapping, subject: str) -> str | None:
    try:
        return "=" + _write(mapping.find_name(subject))
    except NoRuleApplies:
        return "-"
    except ValueError:
        return None


def _ask_kafka(lines: Sequence[str]) -> list[str]:
    done = subprocess.run(
        tool_command(str(_KAFKA)), input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _write(text: str) -> str:
    return text.encode("utf-16-be").hex()


def _make_rules(random: Random) -> str:
    rules = [_make_rule(random) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    return random.choice((",", ", ", " , ")).join(rules)


def _make_rule(random: Random) -> str:
    if random.random() < 0.1:
        return random.choice(("DEFAULT", "DEFAULT", "DEFAULTS", "", "RULE:a/b", "RULE:(.*)/$1/X", "default"))
    common = _REPLACED if random.random() < 0.3 else ("$1", "$0", "x", "-")
    replacement = "".join(random.choice(common) for _ in range(random.randrange(4)))
    atoms = _DENSE if random.random() < 0.5 else _ATOMS
    return f"RULE:{_make_pattern(random, 3, atoms)}/{replacement}/{random.choice(('', '', 'L', 'U'))}"


def _make_pattern(random: Random, depth: int, atoms: Sequence[str]) -> str:
    return "".join(_make_piece(random, depth, atoms) for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4))))


def _make_piece(random: Random, depth: int, atoms: Sequence[str]) -> str:
    if depth and random.random() < 0.35:
        opening = random.choice(("(",) * 12 + ("(?:",) * 6 + ("(?<n>",) * 3 + ("(?P<n>",))
        branches = [_make_pattern(random, depth - 1, atoms) for _ in range(random.choice((1, 1, 2, 3)))]
        piece = f"{opening}{'|'.join(branches)})"
    elif random.random() < 0.06:
        piece = "|"
    else:
        piece = random.choice(atoms[:_COMMON] if random.random() < 0.97 else atoms)
    if random.random() < 0.6:
        return piece
    # Java backtracks for ever in repetitions of repetitions, so they are few.
    if len(piece) > 3 and not {"*", "+", "{", "?"}.isdisjoint(piece.removeprefix("(?")):
        return piece + random.choice(("?", "??"))
    return piece + random.choice(_REPEATS[:-4] if random.random() < 0.97 else _REPEATS)


def _make_subject(random: Random) -> str:
    words = random.choice((_WORDS, _WORDS[:_FAMILIAR], ("a", "b"), ("a", "b")))
    return "".join(random.choice(words) for _ in range(random.randrange(7)))


def _make_name(random: Random) -> bytes:
    parts = b""
    for _ in range(random.randrange(4)):
        attributes = [_make_attribute(random) for _ in range(random.choice((1, 1, 1, 2, 3)))]
        parts += _element(0x31, b"".join(attributes))
    return _element(0x30, parts)


def _make_attribute(random: Random) -> bytes:
    kind, text = random.choice(_KINDS), _make_subject(random)
    encoding = {30: "utf-16-be", 28: "utf-32-be", 12: "utf-8"}.get(kind, random.choice(("ascii", "utf-8", "latin-1")))
    value = random.randbytes(random.randrange(6)) if random.random() < 0.1 else text.encode(encoding, "replace")
    return _element(0x30, _element(6, bytes.fromhex(random.choice(_TYPES))) + _element(kind, value))


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x82, *size.to_bytes(2)])
    if 128 <= size < 256:
        length = bytes([0x81, size])
    return bytes([tag]) + length + content


def _compare_for(seconds: int, random: Random) -> Iterator[Comparison]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield compare_rules(random, _AT_ONCE)
        yield compare_subjects(random, _AT_ONCE)


def main(
    seconds: Annotated[int, typer.Option(help="Seconds of comparing.")] = 60,
    seed: Annotated[int | None, typer.Option(help="The seed of the random choices. Default: a new one.")] = None,
) -> None:
    """Compare the names of random certificates with those that Kafka's own classes give them."""
    chosen = SystemRandom().randrange(1 << 32) if seed is None else seed
    total = sum(_compare_for(seconds, Random(chosen)), Comparison())
    typer.echo(f"principals (seed {chosen}): {total.equal} names equal Kafka's, {total.refused} refused here")
    for difference in total.differences[:20]:
        typer.echo(f"DIFFERENT NAME: {difference}")
    raise typer.Exit(int(bool(total.differences)))


if __name__ == "__main__":
    typer.run(main)
