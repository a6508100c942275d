"""The automaton of canonical token sequences, against the tokenizer itself."""

from formalm import Constraint, Regex
from formalm.models.canary import canary


def test_each_member_has_its_own_tokens_and_no_others() -> None:
    vocabulary = canary().vocabulary
    language = Regex("(the |a )?(cat|dog)s?( sat| ran)?[.!]")
    members = list(language.to_automaton())
    written = Constraint(language, vocabulary, tokenization="canonical").to_automaton()
    wanted = {tuple(vocabulary.encode(text)) for text in members}
    assert {tuple(ids) for ids in written.enumerate()} == wanted
    assert written.count() == len(members) == 72
    assert Constraint(language, vocabulary).to_automaton().count() > len(members)
