"""The Rust core. Private: the rooms of the package wrap it."""

from collections.abc import Sequence
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

__all__ = [
    "Automaton",
    "Constraint",
    "Deadline",
    "Encoder",
    "Expression",
    "Frontier",
    "Grammar",
    "GrammarText",
    "Graph",
    "Grouping",
    "IndentationLevels",
    "JsonSchema",
    "MassFrontier",
    "Matcher",
    "Members",
    "Parser",
    "SchemaOptions",
    "StringFrontier",
    "TokenFrontier",
    "Trees",
    "Vocabulary",
    "WalkFrontier",
    "__version__",
    "apply_bitmask",
    "best_tokens",
    "checksum",
    "fill_bitmasks",
    "fill_drafts",
    "generation_step",
    "log_sums",
    "masked_log_sums",
    "masked_scores",
    "row_error",
]

__version__: str

@final
class Expression:
    """A regular language as an immutable expression; hash-consed parts, no machine yet."""

    @staticmethod
    def pattern(
        pattern: str,
        dialect: str = "python",
        *,
        ignore_case: bool = False,
        multi_line: bool = False,
        dot_all: bool = False,
        ascii: bool = False,
        verbose: bool = False,
    ) -> Expression: ...
    @staticmethod
    def texts(texts: Sequence[bytes]) -> Expression: ...
    @property
    def groups(self) -> list[tuple[str | None, int, int]]: ...
    def union(self, other: Expression) -> Expression: ...
    def concatenate(self, other: Expression) -> Expression: ...
    def intersect(self, other: Expression) -> Expression: ...
    def subtract(self, other: Expression) -> Expression: ...
    def complement(self) -> Expression: ...
    def repeat(self, min: int = 0, max: int | None = None) -> Expression: ...
    def edits(
        self,
        budget: int,
        alphabet: Expression | None = None,
        *,
        insert: bool = True,
        delete: bool = True,
        substitute: bool = True,
        after: Expression | None = None,
        before: Expression | None = None,
        group: str | None = None,
    ) -> Expression: ...
    def edit_script(self, text: str) -> list[tuple[str | None, str | None]] | None:
        """Member and text side by side under the fewest edits; for what `edits` made."""
    def rewrite(
        self, rules: Sequence[tuple[str, Expression]], *, optional: bool = False
    ) -> Expression: ...
    def reverse(self) -> Expression: ...

@final
class IndentationLevels:
    """How indentation is told, by the names of terminals."""

    def __new__(
        cls,
        names: Sequence[str],
        brackets: Sequence[Sequence[str]],
        is_python: bool,
        numbers: Sequence[int],
    ) -> IndentationLevels: ...

@final
class GrammarText:
    """The text of a grammar with all that goes with it; not read yet."""

    @staticmethod
    def inlined(text: str) -> list[tuple[str, str, tuple[int, int]]]:
        """Languages within the rules of a text of Lark: ``(name, text, span)``."""
    def __new__(
        cls,
        text: str,
        syntax: str,
        lexing: str | None = None,
        start: str | None = None,
        languages: Sequence[tuple[str, Expression]] = ...,
        levels: IndentationLevels | None = None,
        embedded: Sequence[tuple[str, Automaton]] = ...,
    ) -> GrammarText: ...

@final
class Grammar:
    """A grammar that was read from a text; no machine yet."""

    def __new__(cls, text: GrammarText) -> Grammar: ...
    def expected(self, automaton: Automaton, text: bytes) -> list[tuple[str, bool, list[str]]]:
        """Terminals expected behind a viable text: ``(name, begun, names of rules)``."""
    def captures(self) -> list[tuple[str, str, int, tuple[int, int]]]:
        """``(name, rule or terminal, bytes left out at the end, span in the text)``."""
    def unusable(self) -> list[tuple[str, tuple[int, int] | None]]:
        """Notes ``(message, span)`` of alternatives that the longest lexemes make unusable."""
    def special_tokens(self) -> list[str]:
        """Names of the special tokens in the text."""
    @property
    def lexing(self) -> str: ...

@final
class Trees:
    """A grammar as trees show it."""

    def __new__(cls, text: GrammarText) -> Trees: ...
    def parse(
        self, automaton: Automaton, text: bytes, whole: bool, step_limit: int
    ) -> (
        tuple[
            int | None,
            list[tuple[str | None, str | None, int, tuple[int, int], bool, int | None]],
        ]
        | None
    ):
        """``(number of trees, one of them)``, or None if the text is not a member.

        The tree is a list of ``(name, rule, children, span, kept, ways)``, children first: lexemes
        have no rule, what is not there has no name.
        """
    def ambiguity(
        self,
    ) -> tuple[list[int], list[tuple[list[int], bool, list[int | None], list[int]]]]:
        """``(rules that derive something twice, conflicts)``.

        A conflict is ``(rules, goes_on, next, before)``: behind the terminals ``before``, the rules
        may end and, if ``goes_on``, something may go on, where one of the terminals ``next`` comes;
        None is the end of the text.
        """
    def counts(self, most: int, characters: bool, step_limit: int) -> list[int | None]:
        """Numbers of texts with a tree, by length; None is without end."""
    def terminals(self) -> list[str]: ...
    def terminal_texts(self) -> list[bytes | None]: ...
    def ignored(self) -> list[int]: ...
    def rules(
        self,
    ) -> list[tuple[str, str, tuple[int, int] | None, list[int] | None, bool | None, Any]]:
        """``(name, kind, span, terminals it begins with, may be empty, body)`` by number.

        The kind is ``rule``, or ``lexeme`` and ``nothing`` for what trees leave out. A body is
        nested tuples: ``("terminal", n)``, ``("rule", n)``, ``("sequence", list)``,
        ``("choice", list)``, ``("repeat", body, least, most)``, ``("empty",)``.
        """
    @property
    def start(self) -> int: ...

@final
class SchemaOptions:
    """How the members of a schema are written, and what of it is enforced."""

    def __new__(
        cls,
        *,
        order: str,
        blanks: int,
        layout: tuple[str | None, str, str, str] | None,
        numbers: str,
        escapes: str,
        formats: Sequence[str] | None,
        takes_more: bool,
        depth: int | None,
        approximate: bool,
    ) -> SchemaOptions: ...

@final
class JsonSchema:
    """The text of a schema and how its members are written; no machine yet."""

    def __new__(
        cls, text: str, resources: Sequence[tuple[str, str]], options: SchemaOptions
    ) -> JsonSchema: ...
    def difference(self, other: JsonSchema) -> tuple[Automaton | None, list[tuple[str, str, str]]]:
        """The machine of the instances that are none of another schema, None if there are none;
        and what is not exact about it: JSON pointers, messages and effects."""

@final
class Parser:
    """A parser in the state that its language begins with: a copy of the one given."""

    def __new__(
        cls,
        parser: object,
        *,
        failure: type[Exception],
        parser_class: type,
        reads_bytes: bool,
        compares: bool,
    ) -> Parser: ...

@final
class Automaton:
    """The lazy deterministic machine of a language; an empty one is a LanguageError."""

    def __new__(
        cls,
        language: Expression | Grammar | JsonSchema | Parser,
        *,
        state_limit: int | None = None,
        memory_limit_bytes: int | None = None,
    ) -> Automaton: ...
    @staticmethod
    def of(
        language: Expression | Grammar | JsonSchema | Parser, *, state_limit: int | None = None
    ) -> Automaton | None:
        """The machine; None for the empty language."""
    @staticmethod
    def composed(
        letters: list[tuple[Automaton, list[int], bool]],
        first: list[int],
        *,
        empty: bool,
        state_limit: int | None = None,
    ) -> Automaton:
        """The machine of an expression whose letters are machines: each with the numbers of those
        that may follow it, and whether it may be the last."""
    @staticmethod
    def divided(
        languages: list[Automaton | None],
        text: bytes,
        *,
        least: int,
        most: int | None,
        step_limit: int,
    ) -> list[int] | None:
        """Where the pieces of a text end that are members of languages in a row, those beyond the
        list of its last one; None if it cannot be divided so. Each takes as much as it can."""
    def filtered(self, regular: Automaton, *, state_limit: int | None = None) -> Automaton | None:
        """The members that a regular language has too; None if there is none."""
    def preceded_by(
        self, text: bytes, *, unless_empty: bool = False, refused: int | None = None
    ) -> Automaton:
        """The same with a text in front of every member, unless it is empty if that is asked for;
        members that begin with the byte ``refused`` are left out."""
    @staticmethod
    def difference(
        left: Automaton | None,
        right: Automaton | None,
        *,
        inclusion: bool,
        characters: bool,
        pair_limit: int,
    ) -> bytes | None:
        """The first text that is in one language and not in the other (or in the left one and not
        in the right); None is the empty language."""
    def is_text(self, pair_limit: int) -> bool:
        """Whether all members are UTF-8."""
    def matches(self, text: bytes) -> bool: ...
    def is_viable(self, text: bytes) -> bool: ...
    def viable_length(self, text: bytes) -> int:
        """Length of the longest viable prefix of ``text``, in bytes."""
    def shortest(self, prefix: bytes | None = None) -> bytes | None:
        """The shortest (then smallest) member that starts with ``prefix``."""
    def random_member(self, seed: int, random_bytes: int) -> bytes:
        """A member drawn with the numbers of a seed: so many bytes at random at most, then the
        shortest way to an end."""
    @property
    def notes(self) -> list[tuple[str, tuple[int, int] | None]]:
        """What to know of a grammar, and the place in its text."""
    @property
    def remarks(self) -> list[tuple[str, str, Literal["exact", "fewer", "more", "dead ends"]]]:
        """What to know of a schema: JSON pointers, messages and effects."""
    @property
    def places(self) -> list[str]:
        """JSON pointers of the subschemas of a schema that can be reached."""
    @property
    def is_exact(self) -> bool: ...
    @property
    def state_count(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...

@final
class Grouping:
    """A language prepared to tell what its groups capture in a member."""

    def __new__(cls, expression: Expression, automaton: Automaton) -> Grouping: ...
    def captured(
        self, text: bytes, step_limit: int
    ) -> tuple[list[tuple[int, int] | None], list[bool]] | None:
        """Spans in bytes, None for no part, and whether each group's pattern was matched at all."""

@final
class Vocabulary:
    @staticmethod
    def from_tokens(
        tokens: Sequence[bytes | None],
        end_token_ids: Sequence[int] = ...,
        names: Sequence[tuple[str, int]] = ...,
        notes: Sequence[str] = ...,
    ) -> Vocabulary:
        """``None`` marks a special token: an id without bytes; ``names`` are special tokens'."""
    @staticmethod
    def from_tokenizer_json(
        text: bytes, end_token_ids: Sequence[int] | None = None
    ) -> Vocabulary: ...
    @staticmethod
    def from_sentencepiece(model: bytes) -> tuple[Vocabulary, list[int]]:
        """Reads a SentencePiece model; returns it with the ids of its end piece."""
    @staticmethod
    def piece_bytes(pieces: Sequence[tuple[str, int]], place: str) -> list[bytes | None]:
        """Bytes of SentencePiece pieces with their types; errors begin with place and index."""
    @staticmethod
    def from_saved(data: bytes) -> Vocabulary: ...
    def save(self) -> bytes: ...
    def with_end_token_ids(self, end_token_ids: Sequence[int]) -> Vocabulary:
        """The same tokens with other ends of text."""
    def with_special(self, names: Sequence[str]) -> Vocabulary:
        """The same for languages that have special tokens in them, which get bytes."""
    @staticmethod
    def special_bytes(name: str) -> bytes:
        """The bytes that a special token gets."""
    def __len__(self) -> int: ...
    def token_bytes(self, token_id: int) -> bytes | None: ...
    def all_token_bytes(self) -> list[bytes | None]: ...
    @property
    def end_token_ids(self) -> list[int]: ...
    @property
    def special_token_ids(self) -> list[int]: ...
    @property
    def special_tokens(self) -> dict[str, int]:
        """Names of the special tokens, where the file gave them."""
    @property
    def notes(self) -> list[str]:
        """What a user should know about how the tokens were read."""
    @property
    def memory_bytes(self) -> int: ...
    @property
    def fingerprint(self) -> str:
        """Hex digest of token bytes and end tokens: equal fingerprint, equal masks."""

@final
class Encoder:
    """A tokenizer taken apart into what decides which tokens are canonical."""

    def __new__(
        cls, tokenizer_json: bytes, vocabulary: Vocabulary, answers: Sequence[str] | None = None
    ) -> Encoder:
        """``answers`` are the texts of :meth:`probes`, normalized by the library."""
    @staticmethod
    def probes(tokenizer_json: bytes) -> list[tuple[str, str]]:
        """The texts that the library has to normalize, each with the name of the normalizer."""
    def first_change(self, text: str) -> int | None:
        """The byte position of the first character because of which the normalizer changes a text;
        None if it does not."""
    def lost_text(self, text: str) -> tuple[str, int | None] | None:
        """The reason why a text has no canonical tokens, as a clause about several texts, and the
        byte position of the character that shows it; None if it has some."""
    @property
    def encodes_all(self) -> bool:
        """Whether every text that splitting and normalizing keep has canonical tokens."""
    @property
    def normalizer(self) -> str | None:
        """The steps of the normalizer that change texts; None if there are none."""
    @property
    def normalizer_digest(self) -> int | None:
        """Digest of the texts that the normalizer leaves unchanged; None if all are."""
    @staticmethod
    def from_saved(data: bytes, vocabulary: Vocabulary, tokenizer_checksum: bytes) -> Encoder:
        """What :meth:`save` wrote, for the same vocabulary and tokenizer."""
    def save(self, vocabulary: Vocabulary, tokenizer_json: bytes) -> bytes:
        """The encoder as bytes, for this tokenizer's file."""
    def prepare_types(self, vocabulary: Vocabulary) -> int:
        """Prepares the insides of common types for all constraints; the number of new positions."""
    @property
    def part_counts(self) -> tuple[int, int, int]:
        """Positions inside parts that are prepared, that constraints needed and were, and that
        constraints needed and were not."""
    @staticmethod
    def from_tiktoken(encoding: bytes, vocabulary: Vocabulary) -> Encoder:
        """From JSON with a pattern, ranks by tokens in base 64, and the offset of ids."""
    @staticmethod
    def from_sentencepiece(model: bytes, vocabulary: Vocabulary) -> Encoder: ...
    def encode(self, text: str) -> list[int] | None:
        """The tokens of a text, no space put in front of it; None if no tokens spell it."""
    def pieces(self, text: str) -> list[tuple[int, bool]]:
        """Where pieces begin, in bytes, and whether each is an added token."""
    def added_texts(self) -> list[str]: ...
    def borders(self) -> str:
        """Characters beside those that the pre-tokenizer tells apart from them."""
    def crossing(self, first: int, second: int) -> tuple[int, int] | None:
        """The tokens that merging would join across the border of two; None if they stay two."""
    def forbidden(self, token_id: int, after: bool) -> list[int]:
        """Tokens that may not follow, or precede, a token within a piece; ascending."""
    def kind(self, token_id: int) -> str:
        """``merged``, ``whole``, ``byte``, ``added`` or ``never``."""
    @property
    def early_count(self) -> int: ...
    @property
    def is_merging(self) -> bool:
        """Whether tokens are made by merging."""
    @property
    def marks_spaces(self) -> bool:
        """Spaces are written as U+2581, which texts then cannot have."""
    @property
    def prepends_space(self) -> bool: ...
    @property
    def memory_bytes(self) -> int: ...

@final
class Constraint:
    """An automaton lifted to a vocabulary. Shared freely between threads."""

    def __new__(
        cls,
        automaton: Automaton,
        vocabulary: Vocabulary,
        memory_limit_bytes: int | None = None,
        width: int | None = None,
        encoder: Encoder | None = None,
        begin: str = "anywhere",
        replace_every: int = 0,
    ) -> Constraint:
        """With an ``encoder``, canonical tokens only. Members begin ``"anywhere"``, after given
        tokens (``"after tokens"``) or at the beginning of a text (``"with inserted space"``).
        ``replace_every``, for tests: interned state is replaced each so many steps of a matcher."""
    def matcher(self) -> Matcher: ...
    def matcher_after(self, token_ids: Sequence[int]) -> tuple[Matcher | None, int]:
        """A matcher of what goes on after tokens, or None; how many of them any text may have."""
    @property
    def width(self) -> int:
        """Number of logits a mask covers; at least ``len(vocabulary)``."""
    @property
    def memory_bytes(self) -> int: ...
    def stats(self) -> tuple[dict[str, int], int, int]:
        """Bytes by part, number of pinned epochs, number of replacements."""
    def warm_up(self, seconds: float, encoder: Encoder | None = None) -> int:
        """Compute masks of typical texts for at most so long; the number of masks cached."""
    @property
    def mask_count(self) -> int: ...
    @property
    def is_exact(self) -> bool:
        """Whether all that is allowed is known to lead to a member."""
    @property
    def undecided_count(self) -> int:
        """Questions about canonical tokens that a bounded search left open, answered by yes."""
    @property
    def given_up_count(self) -> int:
        """States whose shortest completion was not found in time: tokens that lead there are left
        out of completion masks."""
    def completion_mask(self, matcher: Matcher, budget: int) -> npt.NDArray[np.bool_]:
        """The mask without tokens after which no member fits into ``budget`` tokens, that token
        among them and end tokens aside."""
    def excluded_members(self) -> tuple[bytes | None, tuple[int, int] | None, bool]:
        """A member without canonical tokens; the number of such members and of all members, if
        both are known; whether the search gave up."""
    def shortest_token_ids(self, matcher: Matcher, limit: int) -> list[int] | None:
        """Fewest tokens, end token excluded, that complete the text, if at most ``limit``."""

    def completes_within(self, matcher: Matcher, limit: int) -> bool:
        """Whether ``limit`` tokens complete the text; False too if none are found soon."""

@final
class Graph:
    """A minimal deterministic graph over bytes or tokens. Members are bytes, or lists of ids.

    Equal graphs, equal languages. Lengths count labels, or characters of bytes.
    """

    @staticmethod
    def of(automaton: Automaton | None, state_limit: int, max_bytes: int | None = None) -> Graph:
        """Of a machine over bytes, or its members of so many bytes; None is the empty language."""
    @staticmethod
    def of_tokens(constraint: Constraint, state_limit: int, edge_limit: int) -> Graph: ...
    @staticmethod
    def load(data: bytes, token_count: int | None = None) -> Graph: ...
    def save(self) -> bytes: ...
    @property
    def state_count(self) -> int: ...
    @property
    def range_count(self) -> int:
        """Number of edges; a range of labels is one."""
    @property
    def label_count(self) -> int:
        """Number of edges, each label for itself."""
    @property
    def is_empty(self) -> bool: ...
    @property
    def is_finite(self) -> bool: ...
    def accepting(self) -> list[int]: ...
    def ranges(self) -> npt.NDArray[np.uint32]:
        """Rows of source, first label, last label, target."""
    def edges(self) -> npt.NDArray[np.uint32]:
        """Rows of source, label, target."""
    def after(self, state: int, label: int) -> int | None: ...
    def accepts(self, sequence: bytes | Sequence[int]) -> bool: ...
    def shortest(self, characters: bool) -> Any | None: ...
    def total(self, limit_bytes: int) -> int | None:
        """Members of all lengths; None if they are infinitely many."""
    def counts(self, length: int, characters: bool, limit_bytes: int) -> list[int]:
        """Members by length up to ``length``; shorter if there are no longer ones."""
    def count(self, length: int, at_most: bool, characters: bool, limit_bytes: int) -> int: ...
    def span_total(self, kind: str, length: int, characters: bool, limit_bytes: int) -> int | None:
        """Members of ``"any"`` length, or of ``"exactly"`` or ``"at most"`` a length."""
    def unrank(
        self, numbers: Sequence[int], kind: str, length: int, characters: bool, limit_bytes: int
    ) -> list[Any]: ...
    def locate(self, number: int, characters: bool, limit_bytes: int) -> tuple[int, int] | None:
        """Length of the member with a number, and its number among those of that length."""
    def rank(
        self, sequence: bytes | Sequence[int], length: int, characters: bool, limit_bytes: int
    ) -> int | None: ...
    def members(
        self, first: int, last: int | None, characters: bool, limit_bytes: int
    ) -> Members: ...
    def difference(
        self, other: Graph, *, inclusion: bool, characters: bool, pair_limit: int
    ) -> bytes | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Members:
    """Members one after the other, by length and then from the smallest."""

    def __iter__(self) -> Members: ...
    def __next__(self) -> Any: ...

@final
class Deadline:
    """A deadline for what the thread does inside of a ``with`` statement: ``"compile"`` or
    ``"follow"``."""

    def __new__(cls, task: str, seconds: float) -> Deadline: ...
    def __enter__(self) -> None: ...
    def __exit__(self, _kind: object, _error: object, _trace: object) -> bool: ...
    @staticmethod
    def check() -> None:
        """Fails if the deadline of this thread has passed."""

@disjoint_base
class Frontier:
    """The sequences of a query: a search, a mass, or walks. Nodes are numbered, the roots first."""

    def __len__(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def cut_by_context(self) -> bool:
        """Whether sequences were omitted, or walks stopped, for the model's context."""
    def allowed(self, node: int) -> tuple[npt.NDArray[np.int64], bool]: ...
    def path(self, node: int) -> list[int]: ...
    def root(self, node: int) -> int: ...
    def parent_of(self, node: int) -> int: ...
    def token_of(self, node: int) -> int: ...
    def data(self, node: int) -> bytes: ...

@final
class TokenFrontier(Frontier):
    """A best-first search over token sequences: its tree, its queue, and the steps on them."""

    def __new__(
        cls,
        vocabulary: Vocabulary,
        contexts: Sequence[tuple[Matcher, float, int | None]],
        *,
        end_token_ids: Sequence[int],
        complete: bool,
        max_tokens: int | None,
        top_k: tuple[int, bool] | None,
        beams: int | None,
        cache_bytes: int,
    ) -> TokenFrontier: ...
    @property
    def queued(self) -> int: ...
    @property
    def cut_by_beam(self) -> bool: ...
    def top(self) -> tuple[float, bool] | None: ...
    def pop_hit(self) -> int | None: ...
    @property
    def best_bound(self) -> float | None:
        """Infinity while children have to be computed again, None at the end."""
    def add_context(self, matcher: Matcher, logprob: float, room: int | None) -> int:
        """Queues the root of a new context, and returns it."""
    def collect(self, room: int, floor: float | None = None) -> tuple[list[int], list[int]]:
        """The best nodes to evaluate, all above ``floor``, and those to evaluate again."""
    def put_back(self, nodes: Sequence[int], again: Sequence[int]) -> None: ...
    def expand(self, nodes: Sequence[int], rows: list[Any], again: int) -> None: ...
    def steps(self, node: int) -> list[float]: ...
    def logprob_of(self, node: int) -> float: ...
    def arrays(self) -> dict[str, npt.NDArray[Any]]: ...
    def restore(self, arrays: dict[str, npt.NDArray[Any]], cut: tuple[bool, bool]) -> None: ...

@final
class MassFrontier(Frontier):
    """The token sequences whose event is undecided, each with its probability as its mass.

    A decided mass is a node, its mass, and a bound on the relative error of that.
    """

    def __new__(
        cls,
        vocabulary: Vocabulary,
        contexts: Sequence[tuple[Matcher, float, int | None]],
        *,
        given_lengths: Sequence[int],
        end_token_ids: Sequence[int],
        complete: bool,
        max_tokens: int | None,
        is_unbounded: bool,
        row_error: float,
        cache_bytes: int,
    ) -> MassFrontier: ...
    @property
    def queued(self) -> int: ...
    @property
    def is_exhausted(self) -> bool: ...
    @property
    def best(self) -> float | None:
        """The log-probability of the best queued node."""
    @property
    def open_mass(self) -> float:
        """An upper bound on all undecided mass."""
    @property
    def parked_mass(self) -> float:
        """An upper bound on the mass that stays undecided."""
    @property
    def row_error(self) -> float: ...
    def collect(self, room: int) -> tuple[list[int], list[int], list[tuple[int, float, float]]]:
        """Nodes to evaluate, nodes to evaluate again, and decided masses."""
    def put_back(self, nodes: Sequence[int], again: Sequence[int]) -> None: ...
    def expand_rows(
        self,
        nodes: Sequence[int],
        rows: Sequence[npt.NDArray[Any]],
        is_normalized: Sequence[bool],
        again: int,
    ) -> tuple[list[tuple[float, int]], list[tuple[int, float, float]]]:
        """Results of `log_sums`, and decided masses; if a row is unsound, nothing changes."""
    def expand_kept(
        self,
        nodes: Sequence[int],
        kept: Sequence[tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]]],
        again: int,
    ) -> list[tuple[int, float, float]]: ...
    def park(self, node: int, share: float) -> None:
        """Keeps a share of a node's mass as undecided for good."""

@final
class WalkFrontier(Frontier):
    """The tree of several random walks, and the steps that can be taken from its nodes."""

    def __new__(
        cls,
        vocabulary: Vocabulary,
        contexts: Sequence[tuple[Matcher, float, int | None]],
        *,
        end_token_ids: Sequence[int],
        complete: bool,
        max_tokens: int | None,
        step_bytes: int,
    ) -> WalkFrontier: ...
    def child(self, node: int, token_id: int) -> int: ...
    def can_be_evaluated(self, nodes: Sequence[int]) -> list[bool]: ...
    def unevaluated(self, nodes: Sequence[int]) -> tuple[list[int], list[int]]:
        """The nodes that were not evaluated, each once, and then those that are decided."""
    def record_rows(
        self,
        nodes: Sequence[int],
        rows: Sequence[npt.NDArray[Any]],
        is_normalized: Sequence[bool],
        needs_factors: bool,
    ) -> list[tuple[float, int]]:
        """Results of `log_sums`; if a row is unsound, nothing is recorded. With `needs_factors`,
        each node must be settled.
        """
    def record_listed(
        self,
        node: int,
        ids: npt.NDArray[np.uint32],
        probabilities: npt.NDArray[np.float64],
        end: float,
    ) -> None: ...
    def end(self, node: int) -> float | None:
        """The probability of ending at a node; None if it was not evaluated."""
    def settle(self, node: int, factor: float) -> None:
        """Multiplies the probability of ending at a node that was just recorded."""
    def decide(self, node: int, kept: float) -> None: ...
    def forbid(self, nodes: Sequence[int]) -> None: ...
    def alive(self, node: int) -> float | None:
        """The live share of a node; None if it was not evaluated."""
    def draw(
        self, nodes: Sequence[int], uniforms: Sequence[float], is_learned: bool
    ) -> tuple[list[int], list[float]]:
        """The next node of each walk, -1 for an end or -2 outside the language, and the total that
        the draw was among. Stops before a node whose row was evicted.
        """
    def listed(self, node: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None: ...
    def step_logprobs(self, node: int) -> list[float]:
        """NaN where the log-probability of a token was not looked up."""
    def token_logprob(self, node: int, token_id: int) -> float | None: ...
    def begin_round(self) -> None: ...
    def to_learn(self) -> list[int]: ...
    def learn(self, nodes: Sequence[int]) -> int:
        """Returns the number of nodes done before one whose row was evicted."""

@final
class StringFrontier(Frontier):
    """A best-first search over strings, each with the sum of its tokenizations."""

    def __new__(
        cls,
        vocabulary: Vocabulary,
        contexts: Sequence[tuple[Matcher, float, int | None]],
        *,
        end_token_ids: Sequence[int],
        complete: bool,
        max_tokens: int | None,
        top_k: tuple[int, bool] | None,
        tolerance: float,
        cache_bytes: int,
    ) -> StringFrontier: ...
    @property
    def queued(self) -> int: ...
    @property
    def best_bound(self) -> float | None: ...
    @property
    def is_exhausted(self) -> bool: ...
    def add_context(self, matcher: Matcher, logprob: float, room: int | None) -> int:
        """Queues the empty string after the root of a new context, and returns the root."""
    def begin_batch(self) -> None: ...
    def step(
        self, batch: int, floor: float | None = None
    ) -> tuple[tuple[bytes, list[int], float, int, int, list[float]] | None, list[int], bool]:
        """The next string, or the nodes to evaluate and whether they were evaluated before.

        The nodes may be none, for example where no bound exceeds ``floor``.
        """
    def requeue(self) -> None: ...
    def record_rows(
        self,
        nodes: Sequence[int],
        rows: Sequence[npt.NDArray[Any]],
        is_normalized: Sequence[bool],
    ) -> list[tuple[float, int]]: ...
    def record(self, nodes: Sequence[int], rows: list[Any]) -> None: ...
    def arrays(self) -> dict[str, npt.NDArray[Any]]: ...
    def restore(self, arrays: dict[str, npt.NDArray[Any]], cut: bool) -> None: ...

@final
class Matcher:
    """One sequence's position. Every method is a ConcurrencyError when two threads meet."""

    def mask(self) -> npt.NDArray[np.bool_]: ...
    def bitmask(self) -> npt.NDArray[np.int32]:
        """Read-only, and shared by positions with the same mask."""
    def fill_bitmask(self, out: Any, row: int | None = None) -> None: ...
    def allowed_token_ids(self) -> npt.NDArray[np.uint32]: ...
    def allows(self, token_id: int) -> bool: ...
    def advance(self, token_id: int) -> None: ...
    def advance_many(self, token_ids: Sequence[int]) -> int: ...
    def validate_tokens(self, token_ids: Sequence[int]) -> int:
        """How many tokens would be read; ids outside the vocabulary are not."""
    def with_end_token_ids(self, end_token_ids: Sequence[int]) -> Matcher:
        """A matcher at the same position that these tokens end, not the vocabulary's."""
    def advance_bytes(self, text: bytes) -> None: ...
    def advance_inside(self, text: bytes) -> None:
        """The same with bytes that may end inside a character."""
    def rollback(self, count: int | None = None) -> None: ...
    def reset(self) -> None: ...
    def fork(self) -> Matcher: ...
    def forced_bytes(self) -> bytes: ...
    def forced_token_ids(self) -> list[int]: ...
    def explain(self, token_id: int) -> tuple[str | None, int, bytes | None, bytes, bool]:
        """``(refusal, good, token bytes, live bytes, accepting)``.

        ``refusal`` is ``None``, ``"special"``, ``"not a member"``, ``"ended"`` or
        ``"not viable"``; the first ``good`` bytes of the token are viable, ``live bytes`` may
        follow them, and ``accepting`` tells whether the text with them is a member.
        """
    def __copy__(self) -> Matcher: ...
    @property
    def is_accepting(self) -> bool: ...
    @property
    def is_finished(self) -> bool: ...
    @property
    def is_terminated(self) -> bool:
        """Whether an end token was read."""
    @property
    def end_token_ids(self) -> list[int] | None:
        """End tokens that replace the vocabulary's."""
    @property
    def text(self) -> bytes:
        """Bytes read so far."""
    @property
    def token_ids(self) -> list[int]: ...
    @property
    def timeout_seconds(self) -> float | None:
        """Most time for a mask."""
    @timeout_seconds.setter
    def timeout_seconds(self, seconds: float | None) -> None: ...
    @property
    def state_key(self) -> int:
        """Equal keys of one constraint have equal futures; keys of two epochs are never equal."""
    def history(self) -> tuple[list[int], list[tuple[int | None, bytes, bool]]]:
        """Tokens that the text goes on from; then each step: its token, its bytes, and whether
        bytes without a token may end inside a character."""
    def pin(self, other: Matcher | None = None) -> None:
        """Keeps the matcher and its forks in one numbering of states: ``other``'s, if given."""

def checksum(data: bytes) -> bytes:
    """A checksum that detects damage and mix-ups, of 16 bytes."""

def fill_bitmasks(
    matchers: Sequence[Matcher | None],
    out: npt.NDArray[np.int32],
    rows: Sequence[int] | None = None,
) -> None:
    """The row of None allows everything."""

def fill_drafts(
    matchers: Sequence[Matcher | None],
    drafts: Sequence[tuple[Sequence[int], Sequence[int] | None]],
    out: npt.NDArray[np.int32],
    rows: Sequence[int] | None = None,
) -> list[int]:
    """Rows of chains, or of trees given by parents; how many tokens of each are allowed."""

def apply_bitmask(logits: npt.NDArray[Any], bitmask: npt.NDArray[np.int32]) -> None:
    """Sets disallowed logits (float16/32/64, one row or a batch) to minus infinity in place."""

def masked_scores(
    matchers: Sequence[Matcher | None], scores: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32], list[float]]:
    """Scores with minus infinity where a row's matcher does not allow the token, and each row's
    greatest; NaN if there is one among those allowed. None allows nothing."""

def log_sums(rows: Sequence[npt.NDArray[Any]], is_normalized: bool) -> list[tuple[float, int]]:
    """Log-sum-exp of each row and the code of its soundness.

    0 sound, 1 NaN, 2 infinity, 3 all minus infinity, 4 a sum other than 1 although normalized.
    A row of uint16 has the bits of bfloat16.
    """

def masked_log_sums(
    row: npt.NDArray[Any], words: npt.NDArray[np.int32] | None, size: int, is_normalized: bool
) -> tuple[float, float, int]:
    """Log-sum-exp of a row, of its allowed tokens, and the code of `log_sums`."""

def best_tokens(
    row: npt.NDArray[Any],
    words: npt.NDArray[np.int32] | None,
    size: int,
    count: int,
    after: tuple[int, float] | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The best allowed tokens and their values; those after a token and its value, if given."""

def row_error(row: npt.NDArray[Any], log_sum: float) -> float:
    """An upper bound on the error of a row's log-sum-exp."""

def generation_step(
    rows: Sequence[npt.NDArray[Any]],
    is_normalized: bool,
    size: int,
    matchers: Sequence[Matcher | None],
    byte_matchers: Sequence[Matcher | None] | None,
    masks: Sequence[npt.NDArray[np.int32] | None] | None,
    ends: Sequence[int],
    rules: tuple[float, int | None, float | None, float | None],
    uniforms: Sequence[float],
) -> list[tuple[int, float, float, float, float, int, bool]]:
    """Chooses the next token of each sequence and advances its matcher.

    For each row: token (-1 if none has probability), its value, log-sum-exp of the row, of the
    allowed tokens and of those of the byte matcher, code of `log_sums`, and whether only an end may
    follow. Nothing advances if a row is unsound.
    """
