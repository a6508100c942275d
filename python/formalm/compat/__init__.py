"""Interfaces of other libraries on top of formalm, for code written for them."""
