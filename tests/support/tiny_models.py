"""The smallest vocabularies and models that several tests share."""

from formalm import TableModel, Vocabulary

AB_VOCABULARY = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
"""Two letters and an end token."""
AB_MODEL = TableModel(AB_VOCABULARY, {}, default=[0.5, 0.25, 0.25])
"""Over the two letters, whatever came before."""
BYTE_VOCABULARY = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])
"""All bytes, and no end token."""
