"""A program of a user with types, which mypy --strict and basedpyright check (`make types`).

Nothing here is run: what `assert_type` says is what the checkers have to find out by themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypedDict

from typing_extensions import assert_type

from formalm import (
    Constraint,
    Limits,
    Query,
    Regex,
    generate,
    mass,
    sample,
    score,
    search,
    stream,
)
from formalm.cost import Progress
from formalm.generation import Generation, Stream
from formalm.models import (
    CTranslate2Model,
    EncoderDecoderModel,
    IncrementalModel,
    LanguageModel,
    LlamaCppModel,
    MlxModel,
    OnnxGenaiModel,
    RunModel,
    TableModel,
)
from formalm.models.canary import CanaryModel, canary
from formalm.models.canary.network import State
from formalm.models.http import HttpModel
from formalm.models.local_engines import PrefixState
from formalm.models.transformers import TransformersModel
from formalm.probability import Interval, Score, conditional_mass, distortion, mass_table
from formalm.searching import Hit


@dataclass
class User:
    name: str
    age: int


class Row(TypedDict):
    city: str
    days: int


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


def models(
    embedded: CanaryModel,
    table: TableModel,
    loaded: TransformersModel,
    served: HttpModel,
    engines: tuple[LlamaCppModel, MlxModel, OnnxGenaiModel, CTranslate2Model, EncoderDecoderModel],
) -> list[LanguageModel]:
    """Every model is one to the checkers."""
    incremental: IncrementalModel[State] = embedded
    several: RunModel[State] = embedded
    runs: list[RunModel[PrefixState]] = [*engines[:3]]
    return [canary(), embedded, table, loaded, served, incremental, several, *engines, *runs]


def values(model: LanguageModel) -> None:
    """The value of a generation has the type that was asked for."""
    answer = generate(model, "Who?", User, max_tokens=50, finish=True)
    assert_type(answer, Generation[User])
    assert_type(answer.value, User)
    assert_type(answer.value.name, str)
    assert_type(generate(model, None, int).value, int)
    assert_type(generate(model, None, Row).value, Row)
    assert_type(generate(model, None, Row).value["days"], int)
    assert_type(generate(model, None, Mood).value, Mood)
    assert_type(generate(model, None, Literal["tea", "coffee"]).value, Literal["tea", "coffee"])
    assert_type(generate(model, None, User | Row).value, User | Row)
    assert_type(generate(model, None, int | None).value, int | None)
    assert_type(generate(model, None, list[User]).value, list[User])
    assert_type(generate(model, None, dict[str, int]).value, dict[str, int])


def checked_values(model: LanguageModel) -> list[User]:
    """A text that was cut short has no value, which is asked of it and not of the value's type."""
    answers = generate(model, ["Who?", "Why?"], User, max_tokens=20)
    return [answer.value for answer in answers if answer.is_accepting]


def shapes(model: LanguageModel) -> None:
    """One generation, a list with `n` or for a batch, a list of lists with both."""
    assert_type(generate(model, "Who?").value, str)
    assert_type(generate(model, "Who?", ["I", "you"]).value, str)
    assert_type(generate(model, [1, 2], Regex("[0-9]+")), Generation[Any])
    assert_type(generate(model, "Who?", User, n=3), list[Generation[User]])
    assert_type(generate(model, ["Who?", "Why?"], User), list[Generation[User]])
    assert_type(generate(model, ["Who?", "Why?"], User, n=3), list[list[Generation[User]]])
    languages: list[Regex | list[str] | None] = [Regex("[0-9]+"), ["I", "you"], None]
    assert_type(generate(model, ["a", "b", "c"], languages), list[Generation[Any]])
    assert_type(generate(model, ["a", "b", "c"], languages, n=2), list[list[Generation[Any]]])
    assert_type(generate(model, [{"role": "user", "content": "Who?"}], Mood).value, Mood)
    constraint = Constraint(Regex("[0-9]+"), model.vocabulary, tokenization="canonical")
    assert_type(generate(model, "Who?", constraint, tokenization="canonical").value, Any)
    pieces = stream(model, "Who?", User, temperature=0)
    assert_type(pieces, Stream[User])
    assert_type(list(pieces), list[str])
    assert_type(pieces.generation.value, User)


def kept(row: Generation) -> str:
    """Without a parameter the value is anything."""
    return row.text


def queries(model: LanguageModel, progress: Callable[[Progress], None], path: Path) -> None:
    """The functions that query a model, and what they return."""
    phone = Regex("(?P<area>[0-9]{3}) [0-9]{4}")
    limits = Limits(hits=3, forwards=100, seconds=2.5)
    found = search(
        model, phone, prompt="Call", given="555", unique="tokens", limits=limits, progress=progress
    )
    for hit in found:
        assert_type(hit, Hit)
        assert_type(hit.logprob, float)
    assert_type(found.event, Literal["complete", "token_prefix"])
    assert_type(found.cost.tokens_computed, int)
    found.save(path)
    asked = Query(phone, event="complete", tokenization="canonical", unique="strings")
    bound = mass(model, asked, tolerance=1e-3)
    assert_type(bound.low, float)
    if bound.status == "exact":
        assert_type(bound.width, float)
    assert_type(bound.event, Literal["complete", "token_prefix", "prefix", "contains", "never"])
    assert_type(conditional_mass(model, asked, of=["555 1234"]), Interval)
    assert_type(mass_table(model, asked, ["area"]).mass(area="555"), Interval)
    drawn = sample(model, phone, event="complete", n=10, target="local", seed=1)
    assert_type(drawn[0].text, str)
    assert_type(score(model, ["555 1234"], event="token_prefix"), list[Score])
    assert_type(distortion(model, ["a", "b"], event="complete").exact, bool)


def refused(model: LanguageModel, phone: Regex) -> None:
    """What checkers refuse; an `ignore` that nothing needs is an error itself."""
    search(model, phone, event="prefix")  # type: ignore[arg-type]
    search(model, phone, unique="texts")  # type: ignore[arg-type]
    search(model, phone, tokenization="any")  # type: ignore[arg-type]
    sample(model, phone, 3)  # type: ignore[arg-type, call-arg]
    sample(model, phone, target="uniformly")  # type: ignore[arg-type]
    score(model, ["a"], event="contains")  # type: ignore[arg-type]
    mass(model, phone, event="ended")  # type: ignore[arg-type]
    Query(phone, boundary="healed")  # type: ignore[arg-type]
    generate(model, None, User, tokenization="some")  # type: ignore[call-overload]
    _ = generate(model, None, User).value.surname  # type: ignore[attr-defined]
