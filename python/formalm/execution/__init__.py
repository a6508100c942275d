"""Execution of queries: checked arguments, contexts, limits, and the frontier of token sequences.

Searches, samples and bounds on probabilities share this room, and generation shares its arguments::

    arguments ──► query_setup ──► query_contexts ──► query_execution ──► frontier
                                                          model ◄── model_answer_cache
"""
