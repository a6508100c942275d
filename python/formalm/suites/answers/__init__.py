"""Answers to the items of a suite: computed, stored as plain data, and checked when read."""
