"""Oracles that decide whether a string is real: lists, Bloom filters, corpora, HTTP requests."""
