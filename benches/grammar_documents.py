"""Documents to read along grammars: JSON instances, and SQL statements made at random."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from random import Random

TABLES = [
    "users",
    "orders",
    "products",
    "line_items",
    "customers",
    "employees",
    "t1",
    "log_entries",
]
COLUMNS = [
    "id",
    "name",
    "price",
    "created_at",
    "user_id",
    "total",
    "status",
    "email",
    "x",
    "amount",
]
VALUES = ["'New York'", "'active'", "1", "42", "1999", "'2023-01-01'", "3.14", "TRUE", "'O K'"]
JOINS = ["JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN"]


def json_instances(source: Path, count: int) -> list[str]:
    """Return instances of JSON Schemas: one JSON object a line, with ``tests``.

    Every other one is written compactly.
    """
    found: list[str] = []
    with lzma.open(source, "rt", encoding="utf-8") as lines:
        for line in lines:
            valid = [test["data"] for test in json.loads(line)["tests"] if test["valid"]]
            containers = [data for data in valid if isinstance(data, dict | list)]
            if containers:
                separators = (",", ":") if len(found) % 2 else None
                text = json.dumps(containers[0], ensure_ascii=False, separators=separators)
                found.append(text)
    Random(1).shuffle(found)
    return found[:count]


class Statements:
    """Random SELECT statements of everyday SQL."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def one(self) -> str:
        """Return a statement, in capitals or not, on one line or several."""
        random = self.random
        line = random.choice([" ", " ", "\n", "\n  "])
        text = self._select(line)
        if random.random() < 0.15:
            text += f"{line}UNION ALL{line}{self._select(line)}"
        if random.random() < 0.3:
            text += f"{line}ORDER BY {self._column()} DESC"
            text += random.choice(["", f" LIMIT {random.randint(1, 99)}"])
        text += random.choice(["", ";"])
        return text if random.random() < 0.7 else text.lower()

    def _select(self, line: str) -> str:
        random = self.random
        columns = (self._value() + self._alias() for _ in range(random.randint(1, 4)))
        text = f"SELECT {random.choice(['', '', 'DISTINCT '])}{', '.join(columns)}"
        text += f"{line}FROM {random.choice(TABLES)}"
        for _ in range(random.choice([0, 0, 1, 2])):
            join = f"{random.choice(JOINS)} {random.choice(TABLES)}"
            text += f" {join} ON {self._column()} = {self._column()}"
        if random.random() < 0.7:
            more = (
                f" {random.choice(['AND', 'OR'])} {self._test()}"
                for _ in range(random.choice([0, 1, 2]))
            )
            text += f"{line}WHERE {self._test()}{''.join(more)}"
        if random.random() < 0.3:
            text += f"{line}GROUP BY {self._column()}"
        if random.random() < 0.15:
            text += f"{line}HAVING {self._test()}"
        return text

    def _alias(self) -> str:
        return f" AS {self.random.choice(COLUMNS)}2" if self.random.random() < 0.3 else ""

    def _column(self) -> str:
        column = self.random.choice(COLUMNS)
        return column if self.random.random() < 0.6 else f"{self.random.choice(TABLES)}.{column}"

    def _value(self) -> str:
        random, chance = self.random, self.random.random()
        if chance < 0.5:
            return self._column()
        if chance < 0.65:
            return random.choice(VALUES)
        if chance < 0.85:
            return f"{self._column()} {random.choice('+-*/')} {self._column()}"
        if chance < 0.9:
            return f"COALESCE({self._column()}, {random.choice(VALUES)})"
        if chance < 0.95:
            return f"{random.choice(['SUM(', 'AVG(', 'MAX(', 'COUNT('])}{self._column()})"
        values = random.choice(VALUES), random.choice(VALUES)
        return f"CASE WHEN {self._test()} THEN {values[0]} ELSE {values[1]} END"

    def _test(self) -> str:
        random, chance = self.random, self.random.random()
        column, negated = self._column(), random.choice(["", "NOT "])
        if chance < 0.5:
            sign = random.choice(["=", "<>", ">", "<", ">=", "<=", "!="])
            return f"{column} {sign} {random.choice([self._column(), random.choice(VALUES)])}"
        if chance < 0.6:
            return f"{column} IS {negated}NULL"
        if chance < 0.7:
            return f"{column} BETWEEN {random.choice(VALUES)} AND {random.choice(VALUES)}"
        if chance < 0.8:
            return f"{column} {negated}LIKE '%foo%'"
        if chance < 0.95:
            values = (random.choice(VALUES) for _ in range(random.randint(1, 3)))
            return f"{column} {negated}IN ({', '.join(values)})"
        return f"{column} IN (SELECT {self._column()} FROM {random.choice(TABLES)})"  # noqa: S608


def statements(count: int) -> list[str]:
    """Return random statements."""
    source = Statements(5)
    return [source.one() for _ in range(count)]
