"""Execution of queries: checked arguments, contexts, limits, and the model's answers.

Searches, samples and bounds on probabilities share this room, and generation shares its arguments::

    arguments ──► query_setup ──► query_contexts ──► query_execution ──► native frontiers
                                           model ◄── model_answer_cache ◄── model_rows
"""
