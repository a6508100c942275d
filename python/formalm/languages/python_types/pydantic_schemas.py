"""JSON Schemas of Python types, made stricter than Pydantic's own where its validation is.

This module subclasses a class of Pydantic, so it imports Pydantic at the top.
"""

from __future__ import annotations

import enum
import inspect
import sys
import typing
import warnings
from collections.abc import Hashable
from typing import Any

import pydantic
import pydantic_core
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic.types import Base64Encoder, Base64UrlEncoder
from pydantic_core import PydanticOmit
from typing_extensions import NotRequired, TypedDict

from formalm.errors import ArgumentError, LimitError
from formalm.languages.json_schema.schema_notes import Effect, SchemaNote
from formalm.languages.python_types import numbers, times
from formalm.languages.python_types import string_formats as texts
from formalm.languages.python_types.integer_spelling import with_whole_numbers
from formalm.languages.python_types.pydantic_objects import lookups, object_of

__all__ = ["described"]

Schema = dict[str, Any]

#: Formats without effect, or whose effect a pattern in the same schema expresses.
SILENT_FORMATS = {"binary", "path", "password", *(f"uuid{version}" for version in range(1, 9))}

#: Base64 by the class that decodes it.
BASE64 = {
    Base64Encoder: texts.BASE64,
    Base64UrlEncoder: texts.BASE64URL,
}

#: Patterns for types whose schema has a format that JSON Schema does not define.
_ANY = [texts.network(4), texts.network(6)]
FORMATS = {
    "ipv4": f"^(?:{texts.address(4)})$",
    "ipv6": f"^(?:{texts.address(6)})$",
    "ipv4network": f"^(?:{_ANY[0]})$",
    "ipv6network": f"^(?:{_ANY[1]})$",
    "ipv4interface": f"^(?:{texts.interface(4)})$",
    "ipv6interface": f"^(?:{texts.interface(6)})$",
    "ipvanyaddress": f"^(?:{texts.address(4)}|{texts.address(6)})$",
    "ipvanynetwork": f"^(?:{_ANY[0]}|{_ANY[1]})$",
    "ipvanyinterface": f"^(?:{texts.interface(4)}|{texts.interface(6)})$",
    "fraction": numbers.FRACTION,
}

#: Formats that Pydantic validates by code.
CODE = {
    "ipv6network": "the host bits of a network must be zero, which the schema does not express",
    "ipvanynetwork": "the host bits of a network must be zero, which the schema does not express",
    "zoneinfo": "the set of time zones is not in the schema",
    "color": "the set of color strings is not in the schema",
    "regex": "the syntax of Python patterns is not in the schema",
    "email": "the code that validates e-mail addresses is not in the schema",
    "name-email": "the code that validates e-mail addresses is not in the schema",
    "json-string": "the requirement that the string is JSON text is not in the schema",
}

#: Validators of Pydantic that the schema expresses; all other functions are noted by name.
KNOWN_CODE = ("pydantic._internal", "pydantic.networks", "pydantic_core")

#: Keywords that are annotations.
DESCRIBING = {
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "discriminator",
    "contentEncoding",
    "contentMediaType",
}

#: Maximum number of flags of which all combinations are listed.
FLAGS = 8


def described(type_: Any) -> tuple[Any, Schema, tuple[SchemaNote, ...]]:
    """Returns the validator of a type, its schema, and notes where the schema is inexact.

    Raises
    ------
    ArgumentError
        For types that have no JSON.
    LimitError
        For types that are nested too deeply.
    """
    remarks: dict[SchemaNote, None] = {}

    class Exact(ExactSchema):
        def remark(self, message: str, effect: Effect = "more") -> None:
            remarks[SchemaNote("#", message, effect)] = None

    is_function = inspect.isroutine(type_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            adapter = pydantic.TypeAdapter(_arguments(type_) if is_function else type_)
            schema = adapter.json_schema(schema_generator=Exact)
            schema = with_whole_numbers(_finished(schema, schema.get("$defs", {})))
        except ImportError as error:
            first = str(error).partition(",")[0]
            raise ArgumentError(
                f"{type_!r:.80} needs a package: {first}", hint="install it with pip"
            ) from error
        except RecursionError:
            # Printing the type would fail in the same way.
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
    """Returns the arguments of a function as a typed dictionary."""
    hints = typing.get_type_hints(function, include_extras=True)
    members: dict[str, Any] = {}
    name = function.__name__
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ArgumentError(f"every argument of {name} must have a name, got {parameter}")
        if parameter.name not in hints:
            raise ArgumentError(
                f"the argument {parameter.name!r} of {name} must have an annotation"
            )
        hint = hints[parameter.name]
        needed = parameter.default is parameter.empty
        members[parameter.name] = hint if needed else NotRequired[hint]
    return TypedDict(name, members)  # type: ignore[operator]


#: Hosts on which releases of Pydantic differ, and whether ours accepts them: with a character of
#: Unicode 15.1, with one of Unicode 16, and without characters beyond ASCII.
HOSTS = {"xn--8g0n": True, "xn--d4f": False, "xn--ab-": False}


def _takes_host(host: str) -> bool:
    try:
        return pydantic_core.Url(f"http://{host}/").host == host
    except ValueError:
        return False


class ExactSchema(GenerateJsonSchema):  # type: ignore[misc]
    """Generates schemas whose instances are exactly the values, as far as possible."""

    def remark(self, message: str, effect: Effect = "more") -> None:
        """Records that the schema is inexact, and in which direction."""
        raise NotImplementedError

    def generate_inner(self, schema: Any) -> Schema:
        """Generates the schema of a part, with notes on hand-written code."""
        self._remark_code_of(schema)
        if schema.get("type") == "function-plain":
            self._remark_code(schema, "fewer")
        if schema.get("type") == "custom-error" and _is_hashable(schema):
            return {"type": ["null", "boolean", "number", "string"]}
        found: Schema = super().generate_inner(schema)
        if schema.get("type") == "function-plain" or "format" in found:
            found = self._told(found)
        return found

    def _told(self, found: Schema) -> Schema:
        """Returns a schema whose format becomes a pattern or a note."""
        name = found.get("format")
        if name in CODE:
            self.remark(CODE[name])
        if name in FORMATS:
            found = {key: value for key, value in found.items() if key != "format"}
            found["pattern"] = FORMATS[name]
        elif name in CODE:
            found = {key: value for key, value in found.items() if key != "format"}
        return found

    def _remark_code_of(self, schema: Any) -> None:
        """Records hand-written schemas and serializers."""
        metadata = schema.get("metadata") or {}
        written = [metadata.get("pydantic_js_updates"), metadata.get("pydantic_js_extra")]
        for one in written:
            if callable(one) or (one and set(one) - DESCRIBING - {"const"} and _asserts(one)):
                self.remark("a schema of a field is changed by hand, which values are not", "more")
                self.remark("a schema of a field is changed by hand, which values are not", "fewer")
        serialization = schema.get("serialization") or {}
        function = serialization.get("function")
        name = getattr(function, "__qualname__", None) or repr(function)
        is_decoding = name.startswith(("EncodedStr.", "EncodedBytes."))
        if function is not None and not is_decoding and not _is_known(function):
            self.remark(f"{name} writes values, perhaps as no member", "fewer")
        if schema.get("computed_fields"):
            self.remark("computed fields are written, and not read", "fewer")

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Refuses what Pydantic would drop: an option of a union without JSON."""
        if kind == "skipped-choice":
            raise PydanticInvalidForJsonSchema(detail)

    def model_schema(self, schema: Any) -> Schema:
        """Objects without additional properties."""
        if schema.get("custom_init") or schema.get("post_init") == "model_post_init":
            self.remark(f"{schema['cls'].__name__} has code that runs when it is made")
        return closed(super().model_schema(schema))

    def dataclass_schema(self, schema: Any) -> Schema:
        """Data classes, without additional properties."""
        if schema.get("post_init"):
            self.remark(f"{schema['cls'].__name__} has code that runs when it is made")
        return closed(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: Any) -> Schema:
        """Typed dictionaries, without additional properties."""
        return closed(super().typed_dict_schema(schema))

    def date_schema(self, schema: Any) -> Schema:
        """Dates in the range of Python."""
        self._remark_now(schema)
        self._remark_temporal()
        return times.date(schema)

    def time_schema(self, schema: Any) -> Schema:
        """Times of day, to the microsecond."""
        return self._point(schema, has_date=False)

    def datetime_schema(self, schema: Any) -> Schema:
        """Dates with times, to the microsecond."""
        self._remark_now(schema)
        return self._point(schema, has_date=True)

    def _point(self, schema: Any, *, has_date: bool) -> Schema:
        self._remark_temporal()
        return times.point(schema, has_date=has_date)

    def _remark_now(self, schema: Any) -> None:
        if schema.get("now_op") is not None:
            self.remark("bounds of dates that depend on the present time are not in the schema")

    def _remark_temporal(self) -> None:
        if self._config.ser_json_temporal not in (None, "iso8601"):
            self.remark("dates and times are written as numbers, and are texts here", "fewer")

    def timedelta_schema(self, schema: Any) -> Schema:
        """Durations in the range of Python."""
        temporal = self._config.ser_json_temporal
        is_number = temporal in ("seconds", "milliseconds")
        if not is_number and self._config.ser_json_timedelta != "float":
            return times.timedelta(schema)
        if self._config.ser_json_temporal == "milliseconds":
            self.remark("durations are written in milliseconds, and read in seconds", "fewer")
        return times.seconds(schema)

    def uuid_schema(self, schema: Any) -> Schema:
        """UUIDs of one version, or of any."""
        version = schema.get("version")
        if version is None:
            return {"type": "string", "format": "uuid"}
        return {"type": "string", "pattern": texts.UUID.replace("V", str(version))}

    def decimal_schema(self, schema: Any) -> Schema:
        """Numbers, and strings, which keep all digits."""
        found, remark = numbers.decimal(schema)
        if remark is not None:
            self.remark(remark, "fewer")
        if schema.get("allow_inf_nan"):
            found = {"anyOf": [found, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
        return found

    def fraction_schema(self, schema: Any) -> Schema:
        """Fractions as numbers, or as strings that keep them exactly."""
        return {"anyOf": [{"type": "number", **numbers.FINITE}, _text(numbers.FRACTION)]}

    def float_schema(self, schema: Any) -> Schema:
        """Numbers; finite ones stay within the range of doubles."""
        found: Schema = numbers.float_bounds(super().float_schema(schema))
        if "multipleOf" in found:
            self.remark("multiples are checked in doubles, which round", "fewer")
        is_finite = schema.get("allow_inf_nan", self._config.allow_inf_nan) is False
        if is_finite or "multipleOf" in found:
            kept = numbers.finite(found)
            if kept:
                found["allOf"] = kept
        if not is_finite and self._config.ser_json_inf_nan == "strings":
            named = ["NaN", "Infinity", "-Infinity"]
            if not any(name in found for name in (*numbers.BOUNDS.values(), "multipleOf")):
                found = {"anyOf": [found, {"enum": named}]}
        return found

    def str_schema(self, schema: Any) -> Schema:
        """Strings; if Pydantic strips them, they do not begin or end with whitespace."""
        config = self._config
        found: Schema = {"type": "string"}
        for name, keyword in (("min_length", "minLength"), ("max_length", "maxLength")):
            count = schema.get(name, getattr(config, f"str_{name}"))
            if count:
                found[keyword] = count
        parts: list[Schema] = []
        if schema.get("pattern") is not None:
            engine = schema.get("regex_engine", config.regex_engine)
            made = texts.searched(schema["pattern"], engine)
            if "pattern" in made:
                found.update(made)
            else:
                parts.append(made)
        if schema.get("strip_whitespace", config.str_strip_whitespace):
            parts.append({"pattern": texts.STRIPPED})
        if schema.get("ascii_only"):
            parts.append({"pattern": texts.ASCII})
        if parts:
            found["allOf"] = parts
        return found

    def literal_schema(self, schema: Any) -> Schema:
        """Literal values; refused if Pydantic would not read their JSON as the value."""
        _check_read_back(schema, schema["expected"])
        return typing.cast(Schema, super().literal_schema(schema))

    def enum_schema(self, schema: Any) -> Schema:
        """Enumeration values; for flags, all combinations."""
        values = [member.value for member in schema["members"]]
        _check_read_back(schema, values)
        found = typing.cast(Schema, super().enum_schema(schema))
        class_ = schema["cls"]
        if issubclass(class_, enum.Flag):
            single = [value for value in values if value and not value & (value - 1)]
            if len(single) > FLAGS:
                self.remark("combinations of many flags are omitted", "fewer")
            else:
                combined = {0}
                for value in single:
                    combined |= {one | value for one in combined}
                found.pop("const", None)
                found["enum"] = sorted({*values, *(one for one in combined if _takes(class_, one))})
        return found

    def bytes_schema(self, schema: Any) -> Schema:
        """Bytes as strings with a byte count, or in an encoding."""
        counts = [schema.get("min_length") or 0, schema.get("max_length")]
        mode = self._config.val_json_bytes or "utf8"
        written = self._config.ser_json_bytes or "utf8"
        if mode != written:
            self.remark(f"bytes are written as {written}, and read as {mode}", "fewer")
        if mode == "utf8":
            found: Schema = {"type": "string"}
            if counts != [0, None]:
                part = {"bytes": [one for one in counts if one is not None]}
                found[texts.PARTS] = [part]
            return found
        if mode == "hex":
            found = {"type": "string", "pattern": texts.HEX, "minLength": 2 * counts[0]}
            if counts[1] is not None:
                found["maxLength"] = 2 * counts[1]
            return found
        found = {"type": "string", "pattern": texts.BASE64_ZERO}
        if counts != [0, None]:
            self.remark("the number of bytes that Base64 stands for is not in the schema")
        return found

    def complex_schema(self, schema: Any) -> Schema:
        """Complex numbers as strings."""
        return _text(texts.COMPLEX)

    def url_schema(self, schema: Any) -> Schema:
        """URLs as Pydantic writes them."""
        self._remark_version(schema)
        return texts.url(schema, is_multiple=False)

    def multi_host_url_schema(self, schema: Any) -> Schema:
        """URLs with several hosts as Pydantic writes them."""
        self._remark_version(schema)
        return texts.url(schema, is_multiple=True)

    def _remark_version(self, schema: Any) -> None:
        """Notes if the installed Pydantic has other Unicode tables for encoded hosts."""
        allowed = schema.get("allowed_schemes")
        has_domains = allowed is None or any(one in (*texts.SPECIAL, "file") for one in allowed)
        if has_domains and any(_takes_host(host) != takes for host, takes in HOSTS.items()):
            message = (
                "encoded hosts (xn--) are those of Unicode 15.1, unlike this release of Pydantic"
            )
            self.remark(message, "more")
            self.remark(message, "fewer")

    def chain_schema(self, schema: Any) -> Schema:
        """The first step of a chain; the requirements of the others are not in the schema."""
        if len(schema["steps"]) > 1:
            self.remark("what later steps of a chain ask for is not in the schema")
        return typing.cast(Schema, super().chain_schema(schema))

    def tagged_union_schema(self, schema: Any) -> Schema:
        """Tagged unions; the tag is required, whatever its default."""
        discriminator = schema["discriminator"]
        if callable(discriminator):
            name = getattr(discriminator, "__qualname__", None) or repr(discriminator)
            message = f"{name} chooses a type of the union, which the schema does not have"
            self.remark(message)
            self.remark(message, "fewer")
        found = typing.cast(Schema, super().tagged_union_schema(schema))
        paths = [discriminator] if isinstance(discriminator, str) else discriminator
        tags = []
        for path in paths if isinstance(paths, list) else []:
            name = path[0] if isinstance(path, list) else path
            if isinstance(name, str):
                tags.append({"required": [name]})
        if tags:
            found["allOf"] = [{"anyOf": tags}] if len(tags) > 1 else tags
        # Tags make the options exclusive, so oneOf need not check that again.
        found["anyOf"] = found.pop("oneOf")
        found.pop("discriminator", None)
        return found

    def set_schema(self, schema: Any) -> Schema:
        """Sets of distinct, hashable items."""
        return self._set_of(schema, super().set_schema(schema))

    def frozenset_schema(self, schema: Any) -> Schema:
        """Frozen sets of distinct, hashable items."""
        return self._set_of(schema, super().frozenset_schema(schema))

    def _set_of(self, schema: Any, found: Schema) -> Schema:
        items = schema.get("items_schema") or {"type": "any"}
        kind = items["type"]
        if kind in ("any", "float", "union", "decimal", "nullable"):
            self.remark("numbers of a set are written without exponents", "fewer")
        if kind == "any":
            found["items"] = {"type": ["null", "boolean", "number", "string"]}
        elif kind in UNHASHABLE:
            self.remark("items of a set have to be hashable, which is not in the schema")
        if (schema.get("min_length") or 0) > 1 and kind not in PLAIN_ITEMS:
            self.remark("texts that stand for one value count as one item of a set")
        return found

    def _named_required_fields_schema(self, named_required_fields: Any) -> Schema:
        """Objects with their fields at the places where validation looks for them."""
        config = self._config
        by_alias = config.validate_by_alias is not False
        by_name = bool(config.validate_by_name or config.populate_by_name)
        fields = []
        for name, required, field in named_required_fields:
            paths = lookups(field, name, by_alias=by_alias, by_name=by_name)
            if field.get("init") is False:
                if config.extra == "forbid":
                    self.remark(f"the field {name} is written, and not read", "fewer")
                    continue
                # It is ignored, whatever its name.
                written = dict.fromkeys((name, field.get("serialization_alias", name)))
                paths = [[one] for one in written]

            def make(field: Any = field) -> Schema | None:
                try:
                    return dict(self.handle_ref_overrides(self.generate_inner(field).copy()))
                except PydanticOmit:
                    return None

            fields.append((paths, required and field.get("init") is not False, make))
        return object_of(fields, is_closed=True)

    def is_subclass_schema(self, schema: Any) -> Schema:
        """Refused: the schema would accept everything."""
        raise PydanticInvalidForJsonSchema("classes have no JSON")

    def json_schema(self, schema: Any) -> Schema:
        """JSON inside a string."""
        inner = schema.get("schema")
        found = {} if inner is None else self.generate_inner(inner)
        return {"type": "string", texts.PARTS: [{"json": found}]}

    def dict_schema(self, schema: Any) -> Schema:
        """Dictionaries; JSON keys are strings, whatever they become."""
        found: Schema = {"type": "object", "additionalProperties": True}
        if "values_schema" in schema:
            found["additionalProperties"] = self.generate_inner(schema["values_schema"])
        names = self._keys(schema.get("keys_schema"))
        if names:
            found["propertyNames"] = names
        for bound, keyword in (("min_length", "minProperties"), ("max_length", "maxProperties")):
            if schema.get(bound) is not None:
                found[keyword] = schema[bound]
        return found

    ordered_dict_schema = counter_schema = frozendict_schema = dict_schema

    def _keys(self, schema: Any) -> Schema:
        """Returns the schema of the strings that become dictionary keys; empty for any."""
        if schema is None or schema["type"] == "any":
            return {}
        if schema["type"] == "int":
            if schema.get("multiple_of") is not None:
                raise ArgumentError("multiples as keys are not supported")
            return numbers.whole_text(schema)
        if schema["type"] == "bool":
            return {"enum": ["true", "false"]}
        found = self.generate_inner(schema)
        plain = {name: value for name, value in found.items() if name != "title"}
        if plain == {"type": "string"}:
            return {}
        values = plain.get("enum", [plain["const"]] if "const" in plain else None)
        is_text = values is not None and all(isinstance(value, str) for value in values)
        if "$ref" in plain or plain.get("type") == "string" or is_text:
            return plain
        raise ArgumentError(f"keys of type {schema['type']} are not supported")

    def function_before_schema(self, schema: Any) -> Schema:
        """Validators that run before the check."""
        self._remark_code(schema, "fewer")
        return typing.cast(Schema, super().function_before_schema(schema))

    def function_after_schema(self, schema: Any) -> Schema:
        """Validators that run after the check; Base64 decoding becomes a pattern."""
        found = typing.cast(Schema, super().function_after_schema(schema))
        encoded = getattr(schema["function"]["function"], "__self__", None)
        pattern = BASE64.get(getattr(encoded, "encoder", None))
        if pattern is None or isinstance(encoded, pydantic.EncodedStr):
            self._remark_code(schema)
        return found if pattern is None else {**found, "pattern": pattern}

    def function_wrap_schema(self, schema: Any) -> Schema:
        """Validators around the check."""
        self._remark_code(schema, "fewer")
        return typing.cast(Schema, super().function_wrap_schema(schema))

    def function_plain_schema(self, schema: Any) -> Schema:
        """Validators instead of a check."""
        self._remark_code(schema, "fewer")
        return typing.cast(Schema, super().function_plain_schema(schema))

    def _remark_code(self, schema: Any, *effects: Effect) -> None:
        function = schema["function"]["function"]
        function = getattr(function, "func", function)
        if _is_known(function):
            return
        name = getattr(function, "__qualname__", None) or repr(function)
        reported: tuple[Effect, ...] = ("more", *effects)
        for effect in reported:
            self.remark(f"the validator {name} is code, which the schema does not have", effect)


#: Types of items of which none, or not all, are hashable.
UNHASHABLE = {"list", "set", "dict", "model", "dataclass", "typed-dict", "definition-ref", "deque"}
#: Types of items whose JSON texts are in one-to-one correspondence with values.
PLAIN_ITEMS = {"str", "int", "bool", "none", "literal", "enum", "date", "any"}


def _text(pattern: str) -> Schema:
    return {"type": "string", "pattern": pattern}


def _is_known(function: Any) -> bool:
    """Returns whether a function is Pydantic's own and already handled by the schema or a note."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", "") or ""
    if name.startswith(("import_string", "ImportString")):
        return False
    if module in ("builtins", "operator", "_operator"):
        return True
    if module.startswith(KNOWN_CODE):
        return "Email" not in name
    if module == "pydantic.types":
        return name.startswith(("Secret", "_Secret", "_serialize_secret", "EncodedBytes"))
    return module.startswith("pydantic.color")


def _is_hashable(schema: Any) -> bool:
    inner = schema["schema"].get("json_schema", {})
    return any(step.get("cls") is Hashable for step in inner.get("steps", []))


def _asserts(written: Any) -> bool:
    """Returns whether a hand-written addition to a schema asserts something."""
    return any(name not in DESCRIBING and not name.startswith("x-") for name in written)


def _takes(class_: Any, value: Any) -> bool:
    try:
        class_(value)
    except ValueError:
        return False
    return True


def _check_read_back(schema: Any, values: list[Any]) -> None:
    """Refuses values whose own JSON Pydantic does not read back, such as bytes."""
    validator = pydantic_core.SchemaValidator(schema)
    for value in values:
        try:
            validator.validate_json(pydantic_core.to_json(value))
        except ValueError:
            raise PydanticInvalidForJsonSchema(
                f"no JSON is read as {value!r:.60}, one of its values"
            ) from None


def closed(schema: Schema) -> Schema:
    """Forbids additional properties, unless the object allows some."""
    if schema.get("type") == "object" and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def _finished(schema: Any, definitions: Schema) -> Any:
    """Removes formats without effect, and completes documents inside strings."""
    if isinstance(schema, list):
        return [_finished(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _finished(value, definitions) for name, value in schema.items()}
    silent = schema.get("format") in SILENT_FORMATS
    if schema.get("type") == "string" and (silent or schema.get("pattern") in BASE64.values()):
        made.pop("format", None)
    if isinstance(made.get(texts.PARTS), list):
        made[texts.PARTS] = [_document(part, definitions) for part in made[texts.PARTS]]
    return made


def _document(part: Schema, definitions: Schema) -> Schema:
    """Returns a part of a document, with the definitions it refers to if it is a whole one."""
    if "json" not in part:
        return part
    found = dict(part["json"])
    needed: Schema = {}
    rest = [found]
    while rest:
        one = rest.pop()
        if isinstance(one, list):
            rest += one
        elif isinstance(one, dict):
            rest += one.values()
            name = str(one.get("$ref", "")).removeprefix("#/$defs/")
            if name in definitions and name not in needed:
                if _mentions(definitions[name]):
                    raise PydanticInvalidForJsonSchema(
                        "JSON within a text that refers to a type with JSON within a text"
                    )
                needed[name] = _finished(definitions[name], definitions)
                rest.append(needed[name])
    if needed:
        found["$defs"] = {**needed, **found.get("$defs", {})}
    return {"json": with_whole_numbers(found)}


def _mentions(schema: Any) -> bool:
    """Returns whether a schema contains a document inside a string."""
    rest = [schema]
    while rest:
        one = rest.pop()
        if isinstance(one, list):
            rest += one
        elif isinstance(one, dict):
            if set(one) == {"json"}:
                return True
            rest += one.values()
    return False
