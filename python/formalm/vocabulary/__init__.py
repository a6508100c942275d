"""Vocabularies: token ids and their bytes."""

from formalm.vocabulary.vocabulary import Vocabulary

__all__ = ["Vocabulary"]
