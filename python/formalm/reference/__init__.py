"""The articles' own algorithms and the plain definitions: oracles, and something to learn from.

Nothing here is fast, and nothing else imports it.
"""
