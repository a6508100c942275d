"""The grammar of SQL beside SQLite, whose ``EXPLAIN`` parses a statement without running it.

SQLite finds out some mistakes while it parses, such as a table that is missing, and stops there.
What is written behind such a mistake it never reads: of those statements nothing can be said if we
refuse them, and they are counted.
"""

from __future__ import annotations

import re
import sqlite3
from functools import lru_cache
from itertools import product
from random import Random

import pytest

from formalm import Constraint, Matcher, Vocabulary
from formalm.grammars import SQL
from tests.parity.sql_statements import STATEMENTS

pytestmark = pytest.mark.skipif(
    sqlite3.sqlite_version_info[:2] != (3, 40), reason="the grammar is that of SQLite 3.40"
)


@lru_cache(1)
def database() -> sqlite3.Connection:
    """A database with the tables that the statements speak of, so that few mistakes are early."""
    made = sqlite3.connect(":memory:")
    for name in "tuv":
        made.execute(f"CREATE TABLE {name} (a, b, c, id, x, y, z, name, key, n)")
    made.execute("CREATE INDEX i ON t (a)")
    return made


def verdict(statement: str) -> bool | None:
    """Whether SQLite reads a statement; None if it stopped at another mistake."""
    try:
        database().execute(statement)
    except sqlite3.ProgrammingError:
        return None
    except sqlite3.Error as error:
        message = str(error)
        words = message.endswith("syntax error") or message.startswith("unrecognized token")
        return False if words or message == "incomplete input" else None
    except sqlite3.Warning:
        return None
    return True


@pytest.mark.parametrize(
    "alphabet",
    ["0|x|X|F|g|_|é|1", "0|1|.|e|E|+|a|_", "0x|1|.|e|a| |-|f", "0x1|x|'|1|AND|or| |as|limit 1"],
)
def test_all_short_texts_like_numbers_are_read_as_sqlite_does(alphabet: str) -> None:
    for count in range(1, 5):
        for parts in product(alphabet.split("|"), repeat=count):
            statement = "EXPLAIN SELECT " + "".join(parts)
            read = verdict(statement)
            assert read is None or SQL.matches(statement) == read, statement


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_are_read(statement: str) -> None:
    assert verdict(f"EXPLAIN {statement}") is not False
    assert SQL.matches(f"EXPLAIN {statement}")
    assert SQL.matches(f"{statement};\n-- and another one\n{statement}")


@pytest.mark.parametrize(
    ("statement", "member"),
    [
        ("SELECT 1AND 2", False),
        ("SELECT 1 AND 2", True),
        ("SELECT x'0'", False),
        ("SELECT x'00'", True),
        ("SELECT x'00' x, y 'z'", True),
        ("CREATE TABLEt (a)", False),
        ("CREATE TABLE if (a)", False),
        ("CREATE TABLE select (a)", False),
        ('CREATE TABLE "select" ([from], `where`)', True),
        ("CREATE TABLE abort (key, replace, like)", True),
        ("SELECT a like FROM t", False),
        ("SELECT a AS like FROM t", True),
        ("SELECT a AS b -- c", True),
        ("SELECT a /* b */ FROM t", True),
        ("SELECT cast FROM t", False),
        ("INSERT INTO t SELECT * FROM u ON CONFLICT DO NOTHING", False),
        ("SELECT $a::b(c), ?, ?2, :d, @e", True),
        ("SELECT #1", False),
        ("SELECT 1.e5, .5, 0x1F", True),
        ("SELECT 0x", False),
        ("SELECT 1e", False),
        ("SELECT * FROM (a ON 1, with)", True),
        ("SELECT * FROM (with x AS (SELECT 1) SELECT * FROM x)", True),
        ("SELECT * FROM (with)", False),
        ("SELECT * FROM ((with JOIN b))", False),
        ("SELECT * FROM (with.a b)", False),
        ("SELECT a LIKE NOT b = c ESCAPE d", True),
        ("SELECT a NOT LIKE 1 + - NOT b IS NULL AND c", True),
        ("SELECT a GLOB 1 + - NOT b IS NULL ESCAPE c", True),
        ("SELECT a LIKE NOT b LIKE c = d ESCAPE e ESCAPE f", False),
        ("SELECT a LIKE NOT b LIKE c ESCAPE d ESCAPE e", True),
        ("SELECT a LIKE b = c ESCAPE d", False),
        ("SELECT a LIKE NOT b AND c ESCAPE d", False),
        ("SELECT a LIKE b ESCAPE NOT c = d ESCAPE e", False),
        # Letters whose upper or lower case is one of ASCII.
        ("\u017fELECT 1", False),
        ("SELECT 1 L\u0131MIT 1", False),
        ("SELECT 1 AS \u017felect, 2 \u212aEY", True),
    ],
)
def test_words_and_numbers_are_those_of_sqlite(statement: str, member: bool) -> None:
    assert SQL.matches(f"EXPLAIN {statement}") is member
    assert (verdict(f"EXPLAIN {statement}") is not False) is member


PIECES = re.compile(r"\s+|[A-Za-z_]\w*|'[^']*'|\d+|.", re.DOTALL)
WORDS = [
    *"SELECT FROM a ( ) , AND NOT 1 'x' AS ON WITH KEY END IF * || . JOIN LEFT x'00' ROW".split(),
    *"BETWEEN LIKE OVER NULL == ~ [b] ?1".split(),
    "--c\n",
    "/*c*/",
]


def mutant(random: Random) -> str:
    """A statement with one to three pieces of it left out, put in, changed or exchanged."""
    text = random.choice(STATEMENTS)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        pieces = PIECES.findall(text) or [" "]
        at, other = random.randrange(len(pieces)), random.randrange(len(pieces))
        kind = random.randrange(5)
        if kind == 0:
            del pieces[at]
        elif kind == 1:
            blank = random.choice([" ", ""])
            pieces.insert(at, blank + random.choice(WORDS) + random.choice([" ", ""]))
        elif kind == 2:
            pieces[at] = random.choice(WORDS)
        elif kind == 3:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        else:
            pieces.insert(at, random.choice(PIECES.findall(random.choice(STATEMENTS))))
        text = "".join(pieces)
    return text


def test_mutants_are_judged_as_by_sqlite() -> None:
    random, judged, read, open_ones = Random(0), 0, 0, 0
    while judged < 2_000:
        text = f"EXPLAIN {mutant(random)}"
        expected, member = verdict(text), SQL.matches(text)
        if re.search(r"/\*(?!.*\*/)", text, re.DOTALL):
            continue  # SQLite lets the end of the text close a comment.
        if expected is None:
            # Another mistake than one of syntax: nothing is known of what stands behind it.
            open_ones += not member
            continue
        assert member is expected, text
        judged += 1
        read += member
    assert read > 100
    assert open_ones < 200


KEYWORDS = sorted(set(re.findall(r'"([A-Z_]+)"i', SQL.text)))
TOKENS = [
    *(f" {word}" for word in KEYWORDS),
    *[" a", " t", " u.b", " x", "'s'", " 1", " 2.5", "x'00'", '"q"', " ?1", " :v", " [b]", "`c`"],
    *"( ) , = < > + - * / || -> . ~".split(),
    " ",
    "/*c*/",
    "--\n",
]


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_generated_statements_have_no_mistake_of_syntax(count: int) -> None:
    vocabulary = Vocabulary.from_tokens([token.encode() for token in TOKENS])
    constraint = Constraint(SQL, vocabulary)
    random, seen = Random(1), set()
    while len(seen) < count:
        seen.add(walk(constraint.matcher(), random))
    for text in sorted(seen):
        assert verdict(text) is not False, text


def walk(matcher: Matcher, random: Random) -> str:
    """A random statement: allowed tokens, then the shortest end."""
    matcher.advance(TOKENS.index(" EXPLAIN"))
    for _ in range(random.randrange(3, 25)):
        allowed = matcher.allowed_token_ids().tolist()
        if not allowed:
            break
        matcher.advance(random.choice(allowed))
    whole = SQL.shortest(matcher.text)
    assert whole is not None
    return whole.decode()
