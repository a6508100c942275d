"""Capture groups: which parts of a member a group of its language matched."""

from formalm.languages.captures.groups import Group

__all__ = ["Group"]
