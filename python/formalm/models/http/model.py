"""``HttpModel``: a language model on an OpenAI-compatible completions server."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from formalm.errors import ArgumentError, ModelError
from formalm.models.http.bounded_json import Bound, shown
from formalm.models.http.completions_replies import TokenNames, next_tokens, sequence_logprobs
from formalm.models.http.transport import Transport
from formalm.models.model_protocols import LogProbs, check_model_arguments
from formalm.vocabulary import Vocabulary

__all__ = ["HttpModel"]

WHOLE_ERROR = 1e-3
"""Maximum probability that rounding may remove from a complete answer."""


class HttpModel:
    """A model on a server: vLLM, SGLang, llama.cpp, or another with the same completions API.

    Prompts are sent as token ids with a request for one token, and the most probable tokens come
    back with their log-probabilities. If those are not all tokens, the model is *partial*: only the
    total of the tokens not shown is known. :func:`~formalm.mass` and :func:`~formalm.search`
    account for it separately. Drivers that need the rest raise an error.

    Parameters
    ----------
    url
        The URL of the completions API, such as ``http://localhost:8000/v1/completions``.
    vocabulary
        The vocabulary of the served model.
    model
        The model name to send, if the server expects one.
    top_logprobs
        Number of tokens to request. Servers have limits of their own (vLLM: ``--max-logprobs``).
        With the size of the vocabulary, the model is not partial.
    bos_token_id, context_length
        As in :class:`~formalm.models.LanguageModel`. A server cannot start from nothing, so there
        should be a first token.
    api_key
        Sent as a bearer token.
    headers, options
        Additional headers, and additional fields of every request; a field given here replaces the
        default one.
    names
        How the server names tokens. ``"ids"``: by id or by bytes; other names are refused.
        ``"text"``: by string too, if you know that a token's string is its bytes; a string that
        belongs to several tokens or none counts as not shown.
    batch_size
        Maximum number of prompts in one request; 1 for servers that take only one.
    timeout_seconds, retries, pause_seconds
        Time limit of one attempt, from the host lookup to the last byte of the reply; how often a
        request that failed for another reason than the timeout is sent again; and the first pause.

    Raises
    ------
    ArgumentError
        For a value out of range. Nothing is sent before the model is asked.

    Examples
    --------
    >>> from formalm import Vocabulary
    >>> from formalm.models.http import HttpModel
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = HttpModel("http://localhost:8000/v1/completions", vocabulary, top_logprobs=2)
    >>> model.shown_tokens
    2
    """

    def __init__(
        self,
        url: str,
        vocabulary: Vocabulary,
        *,
        model: str | None = None,
        top_logprobs: int = 20,
        bos_token_id: int | None = None,
        context_length: int | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        names: str = "ids",
        batch_size: int = 32,
        timeout_seconds: float = 60.0,
        retries: int = 4,
        pause_seconds: float = 0.5,
    ) -> None:
        check_model_arguments(vocabulary, bos_token_id, context_length)
        if not isinstance(url, str):
            raise ArgumentError(f"url must be a str, got {type(url).__name__}")
        for name, value, least in (
            ("top_logprobs", top_logprobs, 1),
            ("batch_size", batch_size, 1),
            ("retries", retries, 0),
        ):
            if type(value) is not int or value < least:
                raise ArgumentError(f"{name} must be an integer of at least {least}, got {value!r}")
        if names not in ("ids", "text"):
            raise ArgumentError(f"names must be 'ids' or 'text', got {names!r}")
        try:
            json.dumps(options)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"options cannot be sent: {error}") from None
        _check_seconds(timeout_seconds=timeout_seconds, pause_seconds=pause_seconds)
        self.vocabulary = vocabulary
        self.bos_token_id = bos_token_id
        self.context_length = context_length
        self.batch_size = batch_size
        if headers is not None and not isinstance(headers, Mapping):
            raise ArgumentError(f"headers must be a mapping, got {type(headers).__name__}")
        if api_key is not None and not isinstance(api_key, str):
            raise ArgumentError(f"api_key must be a str, got {type(api_key).__name__}")
        sent = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self.transport = Transport(
            url, {**sent, **(headers or {})}, timeout_seconds, retries, pause_seconds
        )
        self._shown = top_logprobs
        self._shown_at_most = min(top_logprobs, len(vocabulary))
        self._by_text = names == "text"
        self._names = TokenNames(vocabulary, by_text=self._by_text)
        # Sampled tokens are not used; neutral settings keep servers from reporting changed numbers.
        self._fields: dict[str, Any] = {
            "max_tokens": 1,
            "temperature": 1.0,
            "top_p": 1.0,
            "logprobs": self._shown_at_most,
            "return_tokens_as_token_ids": True,
            **({} if model is None else {"model": model}),
            **(options or {}),
        }

    @property
    def shown_tokens(self) -> int | None:
        """Number of tokens shown, the most probable ones; None if all are."""
        return None if self._shown >= len(self.vocabulary) else self._shown

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """See :meth:`formalm.models.LanguageModel.next_logprobs`.

        Tokens that were not shown have minus infinity, so a row may sum to less than one.

        Raises
        ------
        ModelError
            If the server cannot be reached, refuses the request (``status`` then has the HTTP
            status), does not answer in time, or sends an invalid reply.
        """
        rows = np.full((len(prefixes), len(self.vocabulary)), -np.inf)
        for start in range(0, len(prefixes), self.batch_size):
            chunk = prefixes[start : start + self.batch_size]
            for place, choice in enumerate(self._choices(chunk, {})):
                shown, lost = next_tokens(choice, self._names)
                # A server adds the token that it drew, which may be any. If a name was lost or
                # ambiguous, fewer than all are kept: the row then makes no claim about order.
                most = self._shown - (lost or self._by_text)
                kept = sorted(shown.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
                if not kept:
                    raise ModelError(
                        "the server returned only token names that are not in the vocabulary",
                        hint="configure it to return ids: return_tokens_as_token_ids, or entries"
                        " with id",
                    )
                if self.shown_tokens is None:
                    self._check_all(kept)
                ids, values = zip(*kept, strict=True)
                rows[start + place, list(ids)] = values
        return rows

    def _check_all(self, shown: list[tuple[int, float]]) -> None:
        """Refuses an answer that lacks tokens although all were requested."""
        total = math.fsum(math.exp(logprob) for _, logprob in shown)
        if len(shown) < len(self.vocabulary) and total < 1 - WHOLE_ERROR:
            raise ModelError(
                f"the server returned {len(shown):,} of {len(self.vocabulary):,} tokens, with"
                f" {total:.6g} of the probability, although top_logprobs requests all",
                hint="raise the server's limit (vLLM: --max-logprobs), or pass a top_logprobs"
                " that it allows",
            )

    def sequence_logprobs(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """Returns the log-probability of each token of some sequences; NaN for the first token.

        Raises
        ------
        ModelError
            If the server does not return log-probabilities of a prompt (``echo``).
        """
        found: list[list[float]] = []
        for start in range(0, len(sequences), self.batch_size):
            chunk = sequences[start : start + self.batch_size]
            choices = self._choices(chunk, {"echo": True, "logprobs": 1})
            for sequence, choice in zip(chunk, choices, strict=True):
                values = sequence_logprobs(choice, len(sequence))
                if values is None:
                    raise ModelError(
                        "the server does not return log-probabilities of prompt tokens (echo), and"
                        f" the token is not among the {self._shown} next tokens that it returns",
                        hint="raise top_logprobs, or use a server that supports echo",
                    )
                found.append(values)
        return found

    def _choices(self, prompts: Sequence[Sequence[int]], fields: dict[str, Any]) -> list[Any]:
        """Returns one choice for each prompt, in order."""
        if any(len(prompt) == 0 for prompt in prompts):
            raise ModelError(
                "the prompt must have at least one token for a server",
                hint="pass bos_token_id or a nonempty prompt",
            )
        listed = [[int(token_id) for token_id in prompt] for prompt in prompts]
        prompt: Any = listed[0] if len(listed) == 1 else listed
        body = {"prompt": prompt, **self._fields, **fields}
        # One token of each prompt is shown with others, and the prompt's own if it is echoed.
        positions = sum(map(len, listed)) if body.get("echo") else 0
        tokens = len(listed) * (self._shown_at_most + 2) + 3 * positions + sum(map(len, listed))
        reply = self.transport.post(body, Bound(tokens))
        if not isinstance(reply, Mapping) or not isinstance(reply.get("choices"), list):
            raise ModelError(
                f"the reply must have choices, got {self.transport.cleaned(shown(reply))}"
            )
        choices = reply["choices"]
        if len(choices) != len(prompts):
            raise ModelError(
                f"the server must return one choice per prompt ({len(prompts)}), got"
                f" {len(choices)}",
                hint="pass batch_size=1" if len(prompts) > 1 else None,
            )
        placed: dict[int, Any] = {}
        for place, choice in enumerate(choices):
            index = choice.get("index", place) if isinstance(choice, Mapping) else None
            if type(index) is not int or not 0 <= index < len(choices) or index in placed:
                raise ModelError(
                    f"the choices must have distinct indices from 0 to {len(choices) - 1}, got"
                    f" {shown(index)}"
                )
            placed[index] = choice
        return [placed[place] for place in range(len(choices))]


def _check_seconds(**values: object) -> None:
    for name, value in values.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 < float(value) < float("inf"):  # type: ignore[arg-type]
            raise ArgumentError(f"{name} must be a number above 0, got {value!r}")
