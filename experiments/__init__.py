"""Experiments that are run from a checkout; nothing here ships in the wheel."""
