"""Schemas of Python types. It subclasses a class of Pydantic, so it imports that at its top.

Where Pydantic's own schema has texts that its validation refuses, the schema here says more.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
import warnings
from typing import Any

import pydantic
import pydantic_core
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic.types import Base64Encoder, Base64UrlEncoder
from typing_extensions import NotRequired, TypedDict

from formalm.errors import ArgumentError, LimitError
from formalm.languages import python_formats as formats
from formalm.languages.whole_numbers import with_whole_numbers

__all__ = ["described"]

Schema = dict[str, Any]

#: Formats that say nothing of a text, or nothing that a pattern beside them does not say.
SILENT_FORMATS = {"binary", "path", "password", *(f"uuid{version}" for version in range(1, 9))}

#: Base64 by the class that decodes it.
BASE64 = {
    Base64Encoder: formats.BASE64,
    Base64UrlEncoder: formats.BASE64URL,
}


def described(type_: Any) -> tuple[Any, Schema, tuple[str, ...]]:
    """What validates values of a type, its schema, and what that does not say.

    Raises
    ------
    ArgumentError
        For types that have no JSON.
    LimitError
        For types that are nested too deeply.
    """
    remarks: dict[str, None] = {}

    class Exact(ExactSchema):
        def remark(self, message: str) -> None:
            remarks[message] = None

    is_function = inspect.isroutine(type_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            adapter = pydantic.TypeAdapter(_arguments(type_) if is_function else type_)
            schema = with_whole_numbers(
                _without_silent_formats(adapter.json_schema(schema_generator=Exact))
            )
        except ImportError as error:
            first = str(error).partition(",")[0]
            raise ArgumentError(
                f"{type_!r:.80} needs a package: {first}", hint="install it with pip"
            ) from error
        except RecursionError:
            # Showing the type would end the same way.
            calls = sys.getrecursionlimit()
            hint = "types are nested too deeply: let a class refer to itself, or nest less"
            raise LimitError("calls", calls + 1, calls, hint) from None
        except (PydanticUserError, NameError, TypeError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ArgumentError(
                f"{type_!r:.80} has no JSON: {first}",
                hint="use types with JSON values, or write a JsonSchema",
            ) from error
    if is_function and inspect.getdoc(type_):
        schema["description"] = inspect.getdoc(type_)
    return adapter, schema, tuple(remarks)


def _arguments(function: Any) -> Any:
    """The arguments of a function as a typed dictionary."""
    hints = typing.get_type_hints(function, include_extras=True)
    members: dict[str, Any] = {}
    name = function.__name__
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ArgumentError(f"{name} has an argument that has no name: {parameter}")
        if parameter.name not in hints:
            raise ArgumentError(f"the argument {parameter.name!r} of {name} has no annotation")
        hint = hints[parameter.name]
        needed = parameter.default is parameter.empty
        members[parameter.name] = hint if needed else NotRequired[hint]
    return TypedDict(name, members)  # type: ignore[operator]


class ExactSchema(GenerateJsonSchema):  # type: ignore[misc]
    """Schemas all of whose instances are values, as far as a schema can say it."""

    def remark(self, message: str) -> None:
        """Keep what the schema does not say."""
        raise NotImplementedError

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Refuse what would be left out: an option of a union without JSON."""
        if kind == "skipped-choice":
            raise PydanticInvalidForJsonSchema(detail)

    def model_schema(self, schema: Any) -> Schema:
        """Objects without other members."""
        if schema.get("custom_init") or schema.get("post_init") == "model_post_init":
            self.remark(f"{schema['cls'].__name__} has code that runs when it is made")
        return closed(super().model_schema(schema))

    def dataclass_schema(self, schema: Any) -> Schema:
        """The same for data classes."""
        if schema.get("post_init"):
            self.remark(f"{schema['cls'].__name__} has code that runs when it is made")
        return closed(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: Any) -> Schema:
        """The same for typed dictionaries."""
        return closed(super().typed_dict_schema(schema))

    def date_schema(self, schema: Any) -> Schema:
        """Days that Python has."""
        self._remark_bounds(schema, "dates")
        return {"type": "string", "format": "date", "pattern": formats.DATE}

    def time_schema(self, schema: Any) -> Schema:
        """Times of day, to the microsecond."""
        self._remark_bounds(schema, "times")
        if schema.get("tz_constraint") == "naive":
            return {"type": "string", "pattern": formats.NAIVE_TIME}
        return {"type": "string", "format": "time", "pattern": formats.TIME}

    def datetime_schema(self, schema: Any) -> Schema:
        """Points in time, to the microsecond."""
        self._remark_bounds(schema, "times")
        if schema.get("tz_constraint") == "naive":
            return {"type": "string", "pattern": formats.NAIVE_DATETIME}
        return {"type": "string", "format": "date-time", "pattern": formats.DATETIME}

    def timedelta_schema(self, schema: Any) -> Schema:
        """Durations that Python can hold."""
        self._remark_bounds(schema, "durations")
        found: Schema = super().timedelta_schema(schema)
        if found.get("type") == "string":
            found["pattern"] = formats.DURATION
        return found

    def uuid_schema(self, schema: Any) -> Schema:
        """UUIDs of one version, or of any."""
        version = schema.get("version")
        if version is None:
            return {"type": "string", "format": "uuid"}
        return {"type": "string", "pattern": formats.UUID.replace("V", str(version))}

    def decimal_schema(self, schema: Any) -> Schema:
        """Numbers where there are bounds; else texts too, which keep all digits."""
        return formats.decimal(schema, self.remark)

    def float_schema(self, schema: Any) -> Schema:
        """Numbers; what has to be finite stays within the range of doubles."""
        found: Schema = super().float_schema(schema)
        if float(found.get("multipleOf", 1)) % 1:
            self.remark("multiples of fractions are told in doubles, which round")
        if schema.get("allow_inf_nan", self._config.allow_inf_nan) is False:
            kept = formats.finite(found)
            if kept:
                found["allOf"] = kept
        return found

    def str_schema(self, schema: Any) -> Schema:
        """Texts; those that would be stripped begin and end with something else."""
        found: Schema = super().str_schema(schema)
        if re.search(r"\\[sSDWbB]", str(found.get("pattern", ""))):
            self.remark(f"classes of the pattern {found['pattern']} are those of ECMAScript")
        parts = [formats.STRIPPED] if schema.get("strip_whitespace") else []
        if schema.get("ascii_only"):
            parts.append(formats.ASCII)
        if parts:
            found["allOf"] = [{"pattern": part} for part in parts]
        return found

    def literal_schema(self, schema: Any) -> Schema:
        """Values; refused where one has no JSON that would be read as it."""
        _check_read_back(schema, schema["expected"])
        return typing.cast(Schema, super().literal_schema(schema))

    def enum_schema(self, schema: Any) -> Schema:
        """The same for enumerations."""
        _check_read_back(schema, [member.value for member in schema["members"]])
        return typing.cast(Schema, super().enum_schema(schema))

    def bytes_schema(self, schema: Any) -> Schema:
        """Bytes are texts; those that are counted are of ASCII, a byte each."""
        if self._config.ser_json_bytes == "base64" or self._config.val_json_bytes != "utf8":
            self.remark("how bytes are written is not in the schema")
        found: Schema = super().bytes_schema(schema)
        return {**found, "pattern": formats.ASCII} if "maxLength" in found else found

    def complex_schema(self, schema: Any) -> Schema:
        """Refused: the schema would have every text."""
        raise PydanticInvalidForJsonSchema("complex numbers have no JSON")

    def is_subclass_schema(self, schema: Any) -> Schema:
        """Refused: the schema would have everything."""
        raise PydanticInvalidForJsonSchema("classes have no JSON")

    def json_schema(self, schema: Any) -> Schema:
        """Refused: what is in the text would not be enforced."""
        raise PydanticInvalidForJsonSchema("JSON within a text is not supported")

    def dict_schema(self, schema: Any) -> Schema:
        """Dictionaries: keys are texts, whatever they become."""
        found: Schema = {"type": "object", "additionalProperties": True}
        if "values_schema" in schema:
            found["additionalProperties"] = self.generate_inner(schema["values_schema"])
        names = formats.keys(schema.get("keys_schema"), self.generate_inner)
        if names:
            found["propertyNames"] = names
        for bound, keyword in (("min_length", "minProperties"), ("max_length", "maxProperties")):
            if schema.get(bound) is not None:
                found[keyword] = schema[bound]
        return found

    ordered_dict_schema = counter_schema = frozendict_schema = dict_schema

    def function_before_schema(self, schema: Any) -> Schema:
        """Code that runs before the check."""
        self._remark_code(schema)
        return typing.cast(Schema, super().function_before_schema(schema))

    def function_after_schema(self, schema: Any) -> Schema:
        """Code that runs after the check; what decodes Base64 is a pattern."""
        found = typing.cast(Schema, super().function_after_schema(schema))
        encoded = getattr(schema["function"]["function"], "__self__", None)
        pattern = BASE64.get(getattr(encoded, "encoder", None))
        if pattern is None or isinstance(encoded, pydantic.EncodedStr):
            self._remark_code(schema)
        return found if pattern is None else {**found, "pattern": pattern}

    def function_wrap_schema(self, schema: Any) -> Schema:
        """Code around the check."""
        self._remark_code(schema)
        return typing.cast(Schema, super().function_wrap_schema(schema))

    def function_plain_schema(self, schema: Any) -> Schema:
        """Code in place of a check."""
        self._remark_code(schema)
        return typing.cast(Schema, super().function_plain_schema(schema))

    def _remark_code(self, schema: Any) -> None:
        function = schema["function"]["function"]
        function = getattr(function, "func", function)
        module = getattr(function, "__module__", None) or ""
        # What Pydantic's own internals check is in the schema.
        if not module.startswith("pydantic._internal"):
            name = getattr(function, "__qualname__", None) or repr(function)
            self.remark(f"the validator {name} is code, which the schema does not have")

    def _remark_bounds(self, schema: Any, what: str) -> None:
        if any(schema.get(bound) is not None for bound in ("gt", "ge", "lt", "le", "now_op")):
            self.remark(f"bounds of {what} are not in the schema")


def _check_read_back(schema: Any, values: list[Any]) -> None:
    """Refuse values that their own JSON is not read as, such as bytes."""
    validator = pydantic_core.SchemaValidator(schema)
    for value in values:
        try:
            validator.validate_json(pydantic_core.to_json(value))
        except ValueError:
            raise PydanticInvalidForJsonSchema(
                f"no JSON is read as {value!r:.60}, one of its values"
            ) from None


def closed(schema: Schema) -> Schema:
    """An object without other members, unless it says what others it has."""
    if schema.get("type") == "object" and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def _without_silent_formats(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_silent_formats(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _without_silent_formats(value) for name, value in schema.items()}
    silent = schema.get("format") in SILENT_FORMATS
    if schema.get("type") == "string" and (silent or schema.get("pattern") in BASE64.values()):
        made.pop("format", None)
    return made
