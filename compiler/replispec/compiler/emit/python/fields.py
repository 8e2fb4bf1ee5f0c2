"""Python codecs of messages with keys: header fields of remoting commands, and JSON bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.model.message import Field, Message

_BOUNDS = {"int32": "INT32", "int64": "INT64", "uint32": "UINT32"}


def is_map(field: Field) -> bool:
    """True for a field that is a map."""
    return field.type == "map"


def header_attribute(field: Field) -> tuple[str, str]:
    """Type and default of the attribute of a header field: every one may be absent."""
    base = {"string": "str", "bool": "bool"}.get(field.type, "int")
    return f"{base} | None", "None"


def json_attribute(field: Field) -> tuple[str, str]:
    """Type and default of the attribute of a JSON field; None means the key is absent."""
    if is_map(field):
        key = "str" if field.map_key == "string" else "int"
        return f"dict[{key}, {_python_type(field.map_value)}] | None", "None"
    base = _python_type(field.type)
    return (f"list[{base}] | None", "None") if field.repeated else (f"{base} | None", "None")


def _python_type(kind: str) -> str:
    return {"string": "str", "bool": "bool", "int32": "int", "int64": "int", "uint32": "int"}.get(kind, kind)


def keys_line(message: Message) -> str:
    """The class attribute with all keys of the message."""
    keys = ", ".join(f'"{key}"' for key in sorted({field.key for field in message.fields}))
    return f"KEYS: ClassVar[frozenset[str]] = frozenset(({keys}{',' if keys else ''}))"


# ---- header fields -------------------------------------------------------------------------------


def header_members(message: Message) -> Iterator[str]:
    """Lines of the class body that read and write the ext fields of a remoting header."""
    yield "@classmethod"
    yield "def from_ext_fields(cls, ext_fields: Mapping[str, str | None]) -> Self:"
    yield f'    """The {message.name} in a header\'s ext fields; unknown keys are kept.'
    yield ""
    yield "    Raises RemoteProtocolError when a number is none or out of bounds."
    yield '    """'
    if message.fields:
        yield "    get = ext_fields.get"
    # By position, in the order of the attributes: that costs less than by name.
    arguments = [_from_text(message, field) for field in message.fields]
    arguments.append("{} if ext_fields.keys() <= cls.KEYS else unknown_keys(ext_fields, cls.KEYS)")
    yield f"    return cls({', '.join(arguments)})"
    declared = message.binary_order == "DECLARED"
    yield "def to_ext_fields(self, *, binary: bool = False) -> dict[str, str | None]:"
    yield '    """The ext fields in the order in which Java writes them, in a JSON or a binary header.'
    yield ""
    yield "    Absent fields are left out."
    yield '    """'
    yield "    fields: dict[str, str | None] = {}"
    for field in message.fields:
        yield f"    if self.{field.name} is not None:"
        yield f'        fields["{field.key}"] = {_to_text(field)}'
    yield "    fields.update(self.unknown)"
    capacity = {"HASH_16": 16, "HASH_256": 256}.get(message.order)
    ordered = f"hash_ordered(fields, {capacity})" if capacity else "fields"
    yield f"    return fields if binary else {ordered}" if declared else f"    return {ordered}"


def _from_text(message: Message, field: Field) -> str:
    if field.type == "string":
        return f'get("{field.key}")'
    if field.type == "bool":
        return f'optional_bool(get("{field.key}"))'
    return f'optional_integer(get("{field.key}"), {_BOUNDS[field.type]}, "{message.name}.{field.key}")'


def _to_text(field: Field) -> str:
    if field.type == "string":
        return f"self.{field.name}"
    return f"bool_text(self.{field.name})" if field.type == "bool" else f"str(self.{field.name})"


# ---- JSON ----------------------------------------------------------------------------------------


def json_members(message: Message) -> Iterator[str]:
    """Lines of the class body that read and write the JSON form."""
    what = message.name
    yield "@classmethod"
    yield "def decode(cls, data: bytes | memoryview) -> Self:"
    yield f'    """The {what} that the bytes are, bare numeric keys allowed. Raises RemoteProtocolError."""'
    yield "    return cls.from_json(loads(data))"
    yield "def encode(self, *, bare_keys: bool = False) -> bytes:"
    yield '    """Compact JSON; `bare_keys` leaves the quotes off numeric keys, as Java does."""'
    yield "    return dumps(self.to_json(bare_keys=bare_keys))"
    yield from _from_json(message)
    yield from _to_json(message)


def _from_json(message: Message) -> Iterator[str]:
    yield "@classmethod"
    yield "def from_json(cls, value: object) -> Self:"
    yield '    """Likewise from a parsed value; unknown keys are kept. Raises RemoteProtocolError."""'
    if message.bare:
        yield f"    return cls({_take(message.fields[0], 'value', message.name)})"
        return
    yield f'    fields = take_object(value, "{message.name}")'
    if message.fields:
        yield "    get = fields.get"
    arguments = []
    for field in message.fields:
        where = f"{message.name}.{field.key}"
        rival = _rival(message, field)
        if rival is not None:
            yield f'    {field.name}_value = get("{field.key}")'
            text = f"holds_text({field.name}_value)"
            condition = text if field.type == "string" else f"not {text}"
            taken = _take(field, f"{field.name}_value", where)
            arguments.append(f"{field.name}=({taken}) if {condition} else None")
        else:
            arguments.append(f"{field.name}={_take(field, _got(field), where)}")
    arguments.append("unknown=unknown_keys(fields, cls.KEYS)")
    yield f"    return cls({', '.join(arguments)})"


def _got(field: Field) -> str:
    return f'get("{field.key}")'


def _rival(message: Message, field: Field) -> Field | None:
    """Another field with the same key (of other releases), told apart by the type of its elements."""
    return next((other for other in message.fields if other.key == field.key and other is not field), None)


def _take(field: Field, source: str, where: str) -> str:
    """An expression that reads a possibly absent field."""
    if is_map(field):
        take = "take_map" if field.map_key == "string" else "take_integer_map"
        element = _element(field.map_value, where)
        return f'take_optional({source}, lambda item: {take}(item, {element}, "{where}"))'
    element = _element(field.type, where)
    if not field.repeated:
        return f"take_optional({source}, {element})"
    return f'take_optional({source}, lambda items: take_list(items, {element}, "{where}"))'


def _element(kind: str, where: str) -> str:
    """A function of one value that reads one element."""
    if kind in _BOUNDS:
        return f'lambda value: take_integer(value, {_BOUNDS[kind]}, "{where}")'
    if kind in ("string", "bool"):
        return f'lambda value: take_{kind}(value, "{where}")'
    return f"{kind}.from_json"


def _to_json(message: Message) -> Iterator[str]:
    result = "object" if message.bare else "dict[str, object]"
    yield f"def to_json(self, *, bare_keys: bool = False) -> {result}:"
    yield '    """The value that encode writes; absent fields are left out."""'
    if message.bare:
        yield f"    return {_optional_value(message.fields[0])}"
        return
    fields = list(message.fields)
    if message.order == "ALPHABETICAL":
        fields.sort(key=lambda field: field.key)
    pairs = ", ".join(f'("{field.key}", {_optional_value(field)})' for field in fields)
    yield f"    return present(({pairs}{',' if pairs else ''}), self.unknown)"


def _optional_value(field: Field) -> str:
    source = f"self.{field.name}"
    value = _value(field, source)
    return source if value == source else f"None if {source} is None else {value}"


def _value(field: Field, source: str) -> str:
    kind = field.map_value if is_map(field) else field.type
    plain = kind in _BOUNDS or kind in ("string", "bool")
    if is_map(field):
        key = "key"
        if field.map_key != "string":
            key = "bare_key(key) if bare_keys else str(key)" if field.unquoted_keys else "str(key)"
        if plain and key == "key":
            return f"dict({source})"
        element = "item" if plain else "item.to_json(bare_keys=bare_keys)"
        return f"{{{key}: {element} for key, item in {source}.items()}}"
    if plain:
        return source
    if field.repeated:
        return f"[item.to_json(bare_keys=bare_keys) for item in {source}]"
    return f"{source}.to_json(bare_keys=bare_keys)"


# ---- the JSON form of a message that also has a binary one ----------------------------------------


def second_json_members(message: Message) -> Iterator[str]:
    """Lines of the class body for the JSON form of a message whose first form is binary."""
    what = message.name
    yield "@classmethod"
    yield "def decode_json(cls, data: bytes | memoryview) -> Self:"
    yield f'    """The {what} in its JSON form; unknown keys are kept. Raises RemoteProtocolError."""'
    yield "    try:"
    yield f"        plain = {plain_name(message)}(data)"
    yield "    except NOT_PLAIN:"
    yield "        return cls._decode_any_json(data)"
    # By position, in the order of the attributes: that costs less than by name.
    yield f"    return cls({', '.join([*(f'plain.{field.name}' for field in message.fields), '{}'])})"
    yield "@classmethod"
    yield "def _decode_any_json(cls, data: bytes | memoryview) -> Self:"
    yield f'    fields = take_object(loads(data), "{what}")'
    yield "    get = fields.get"
    arguments = [f"{field.name}={_second_take(message, field)}" for field in message.fields]
    arguments.append("unknown={} if fields.keys() <= cls.KEYS else unknown_keys(fields, cls.KEYS)")
    yield f"    return cls({', '.join(arguments)})"
    yield "def encode_json(self) -> bytes:"
    yield '    """The JSON form: compact, absent fields left out. Raises LocalProtocolError."""'
    fields = sorted(message.fields, key=lambda field: field.key)
    pairs = ", ".join(f'("{field.key}", {_second_value(field)})' for field in fields)
    yield f"    return dumps(present(({pairs}), self.unknown))"


def plain_name(message: Message) -> str:
    """Name of the module's reader of the plain JSON form."""
    words = "".join("_" + c if c.isupper() else c for c in message.name).strip("_").upper()
    return f"_PLAIN_{words}"


def plain_readers(message: Message, named: Mapping[str, str]) -> Iterator[str]:
    """Module-level lines that define the reader of the plain form; `named`: enum -> name of its value 0."""
    yield f"{plain_name(message)} = plain_reader("
    yield f'    "{message.name}",'
    for field in message.fields:
        if is_map(field):
            kind, default = "OPTIONAL_TEXTS", "None"
        elif field.name_in_json:
            kind, default = "str", f'"{named[field.enum]}"'
        elif field.type == "string":
            kind, default = "OPTIONAL_TEXT", "None"
        else:
            kind, default = f"integer_within({_BOUNDS[field.type]})", "0"
        yield f'    ("{field.name}", "{field.key}", {kind}, {default}),'
    yield ")"


def _second_take(message: Message, field: Field) -> str:
    where = f"{message.name}.{field.key}"
    if is_map(field):
        return f'take_optional({_got(field)}, lambda item: take_ext_fields(item, "{where}"))'
    if field.name_in_json:
        return f'take_named({_got(field)}, {field.enum}, "{where}")'
    if field.type == "string":
        return f'take_optional({_got(field)}, lambda item: take_string(item, "{where}"))'
    return f'take_integer(get("{field.key}", 0), {_BOUNDS[field.type]}, "{where}")'


def _second_value(field: Field) -> str:
    return f"self.{field.name}"
