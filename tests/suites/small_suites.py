"""Suites that tests share, and a model small enough to be asked by hand."""

from formalm import TableModel, Vocabulary

BYTES = "abm w.!"
VOCABULARY = Vocabulary.from_tokens(
    [*(letter.encode() for letter in BYTES), None],
    end_token_ids=[len(BYTES)],
    encode=lambda text: [BYTES.index(letter) for letter in text],
)
MODEL = TableModel.random(VOCABULARY, seed=11, order=2)

TINY = """\
format = "formalm-suite"
version = 1
name = "tiny.letters"
title = "Which letters follow?"
description = "A suite for tests."
warning = "None of its texts offends."

[slots]
who = ["m", "w"]
what = ["a", "b", "ab"]
end = {pattern = "[.!]"}

[templates]
plain = "{who} {what}{end}"
"turned round" = "{what} {who}"

[queries.table]
ask = "table"
templates = ["plain"]
each = ["who"]
event = "complete"

[queries.both]
ask = "table"
each = ["who"]
given = false
event = "prefix"
max_tokens = 6
tolerance = 0.0

[queries.mass]
ask = "mass"
templates = ["plain"]
each = ["who", "what"]
event = "prefix"
decoding = {temperature = 0.5}

[queries.likely]
ask = "search"
templates = ["plain"]
each = ["who"]
limits = {hits = 5}

[metrics.distance]
kind = "total_variation"
query = "table"
between = "who"
of = "what"

[metrics.divergence]
kind = "jensen_shannon"
query = "table"
between = "who"
of = "what"

[metrics.ratio]
kind = "log_ratio"
query = "both"
between = "who"
of = "what"

[metrics.odds]
kind = "log_odds_ratio"
query = "table"
between = "who"
of = "what"

[metrics.share]
kind = "share"
query = "table"
of = "what"

[metrics.mass]
kind = "mass"
query = "mass"

[metrics.rank]
kind = "rank"
query = "likely"
of = "what"
targets = ["ab", "b"]

[comparisons.skewed]
metric = "ratio"
test = "exact"
margin = 0.1

[comparisons.general]
metric = "ratio"
test = "sign_flips"
margin = 0.1
correction = "none"
level = 0.5

[[assertions]]
metric = "distance"
max = 0.9

[[assertions]]
metric = "rank"
min = 1
max = 5

[[assertions]]
comparison = "skewed"
flagged = ["a", "ab"]
"""
