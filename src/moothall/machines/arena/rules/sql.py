"""Rule `string-built-sql`: how a text is told to be SQL, and what a shell puts together.

`is_sql` reads a text in which the unknown sign stands for whatever is put in. English that begins like SQL is not SQL:
"Select one option from …" has words side by side where SQL has columns, and is spelled as a sentence is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from moothall.machines.arena.figures import names
from moothall.machines.arena.rules.containers import MENTIONED, is_message
from moothall.machines.arena.rules.programs import SHELLS
from moothall.machines.arena.rules.shell import Trace, trace
from moothall.machines.arena.rules.texts import UNKNOWN

HOLE = UNKNOWN
IDENTIFIER = rf"[\w.\"`\[\]{HOLE}$@#-]+"
COLUMN = (
    rf"(?:{IDENTIFIER}\s*\((?:[^()]|\([^()]*\))*\)(?:\s+over\s*\([^()]*\))?|\((?:[^()]|\([^()]*\))*\)"
    rf"|case\b.*?\bend|'[^']*'|(?:{IDENTIFIER}\.)?\*|{IDENTIFIER})"
)
EXPRESSION = rf"{COLUMN}(?:\s*(?:::\w+|[-+*/%|]{{1,2}}\s*{COLUMN}))*(?:\s+as\s+{IDENTIFIER})?"
COLUMNS = re.compile(
    rf"\s*(?:distinct\s+|all\s+|top\s*\(?[\d{HOLE}]+\)?\s+)?{EXPRESSION}(?:\s*,\s*{EXPRESSION})*\s*", re.I | re.S
)
CLAUSE = (
    r"(?:where|inner|left|right|full|cross|join|natural|group|order|limit|offset|union|having|for|fetch|on|using"
    r"|returning|set|values|as|intersect|except|window)\b"
)
TABLE = re.compile(
    rf"\s*(?:only\s+)?(?:\(|'?{IDENTIFIER}'?(?:\s+as\s+\w+|\s+(?!{CLAUSE})\w+)?\s*(?:$|[,;)'\"]|{HOLE}|{CLAUSE}))", re.I
)
SELECT = re.compile(r"^[\s(]*select\b(?P<columns>.*?)\bfrom\b(?P<rest>.*)$", re.I | re.S)
OTHERS = (
    re.compile(
        rf"^\s*insert\s+(?:or\s+\w+\s+|ignore\s+|overwrite\s+)?into\s+{IDENTIFIER}\s*(?:\(|values\b|select\b|default\b|set\b|$)",
        re.I,
    ),
    re.compile(rf"^\s*(?:replace|merge)\s+into\s+{IDENTIFIER}", re.I),
    re.compile(
        rf"^\s*update\s+(?:or\s+\w+\s+|only\s+)?{IDENTIFIER}(?:\s+(?:as\s+)?\w+)?\s+set\s+(?:{IDENTIFIER}\s*=|{HOLE})",
        re.I,
    ),
    re.compile(
        rf"^\s*delete\s+from\s+{IDENTIFIER}(?:\s+(?:as\s+)?\w+)?\s*(?:$|;|where\b|using\b|returning\b|limit\b|order\b)",
        re.I,
    ),
    re.compile(
        rf"^\s*(?:drop|truncate|alter|create)\s+(?:(?:or\s+replace|temp|temporary|unique|unlogged|materialized)\s+)*"
        rf"(?:table|database|schema|index|view|user|role|sequence|trigger|function|procedure|type)\s+"
        rf"(?:concurrently\s+)?(?:if\s+(?:not\s+)?exists\s+)?['\"`]?{IDENTIFIER}",
        re.I,
    ),
    re.compile(rf"^\s*truncate\s+{IDENTIFIER}\s*(?:$|;|,|restart|cascade)", re.I),
    re.compile(
        rf"^\s*with\s+(?:recursive\s+)?{IDENTIFIER}\s*(?:\([^)]*\)\s*)?as\s+(?:(?:not\s+)?materialized\s+)?\(\s*(?:select|insert|update|delete|with|values|{HOLE})",
        re.I,
    ),
    re.compile(rf"^\s*(?:grant|revoke)\s+[\w,\s{HOLE}]+\s+on\s+.*\b(?:to|from)\b", re.I | re.S),
    re.compile(rf"^\s*pragma\s+{IDENTIFIER}\s*(?:\(|=)", re.I),
    re.compile(r"^\s*attach\s+database\b", re.I),
    re.compile(rf"^\s*copy\s+{IDENTIFIER}\s*(?:\([^)]*\)\s*)?(?:from|to)\s+", re.I),
    re.compile(r"^\s*(?:explain|analyze|explain\s+analyze)\s+(?:select|insert|update|delete)\b", re.I),
)
SENTENCE = re.compile(r"^\s*[A-Z][a-z]+\s+[a-z{" + HOLE + "]")
ARTICLES = names("the a an this that these those your our my their its his her any each all one")


def is_sql(text: str, *, executed: bool = False) -> bool:
    """Whether a text is SQL. Where it is handed to a database (`executed`), spelling as in a sentence is forgiven."""
    text = re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    sentence = bool(SENTENCE.match(text)) and not executed
    if match := SELECT.match(text):
        columns, rest = match["columns"], match["rest"]
        if not COLUMNS.fullmatch(columns) or not TABLE.match(rest):
            return False
        first = re.match(r"\s*(\w+)", rest)
        if first and first.group(1).lower() in ARTICLES:
            return False
        return not sentence or bool(
            re.search(rf"[*(]|\b(?:where|join|group by|order by|limit)\b.*[=<>\d{HOLE}]", columns + rest, re.I | re.S)
        )
    if not any(pattern.match(text) for pattern in OTHERS):
        return False
    return not sentence or bool(re.search(r"[=;(]", text))


def is_built(text: str, *, executed: bool = False) -> bool:
    """Whether a text with holes is SQL that was put together."""
    return HOLE in text and is_sql(text, executed=executed)


CLIENTS = names(
    "sqlite3 psql mysql mariadb duckdb sqlcmd clickhouse-client clickhouse cqlsh sqlplus bq usql litecli pgcli mycli"
    " cockroach snowsql trino presto isql tsql osql"
)


def shell_sql_reasons(told: Trace) -> Iterator[str]:
    """Why a shell text puts SQL together, a sentence for each command that does."""
    for command in told.commands:
        if command.name in MENTIONED or is_message(command):
            continue
        if command.name in SHELLS or command.name == "eval":
            for word in command.words[1:]:
                if HOLE in word.shape and word.shape != word.text:  # the outer shell fills what the inner one runs
                    yield from shell_sql_reasons(trace(word.shape))
        client = command.name in CLIENTS
        built = any(is_built(_statement(word.shape), executed=client) for word in command.words[1:])
        if client and command.input is not None and not built:
            statements = re.split(r";\s*", command.input.shape)
            built = any(is_built(statement, executed=True) for statement in statements)
        if built:
            yield f"{command.name} gets SQL that is put together with shell variables; bind parameters instead"


def _statement(shape: str) -> str:
    """SQL behind an option's name, or the last of several statements with a hole."""
    shape = re.sub(r"^--?[\w-]+=", "", shape)
    return next((part for part in re.split(r";\s*", shape) if HOLE in part), shape)
