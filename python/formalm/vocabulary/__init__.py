"""Vocabularies: token ids, their bytes, end tokens, and the tokenizer."""

from formalm.vocabulary.vocabulary import Vocabulary

__all__ = ["Vocabulary"]
