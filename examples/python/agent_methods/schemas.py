"""JSON schemas of functions and of answers, for inferMessages: whether a miner takes them.

docs/agent-methods.md section 13.
"""

import json
import re

from .faults import FieldError, array, boolean, short, text

LIMITS = {"parts": 512, "values": 1024, "bytes": 131072}
SCHEMA_BYTES_MAX = 32768
DEPTH_MAX = 32
BRANCHES_MAX = 32
COUNT_MAX = 4096
OPTIONAL_MAX = 256
TEXT_BYTES_MAX = 256
# The largest whole number among values.
WHOLE_MAX = 2**53
WORDS_BYTES = 32

NUMBERS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
# The keywords that only mean something for a type.
KEYWORDS = {
    "object": ["properties", "required", "additionalProperties"],
    "array": ["items", "prefixItems", "minItems", "maxItems"],
    "string": ["minLength", "maxLength"],
    "number": NUMBERS,
    "integer": NUMBERS,
    "boolean": [],
    "null": [],
}
ANNOTATIONS = [
    "title", "description", "default", "examples", "example", "format", "deprecated", "readOnly",
    "writeOnly", "discriminator", "$comment", "$schema",
]  # fmt: skip
CHOICES = ["anyOf", "oneOf", "allOf"]
DEFINITIONS = ["$defs", "definitions"]
# Digits behind the point of a bound, and a bound in units of the last of them.
FRACTION = 8
UNIT = 10**FRACTION
BOUND = re.compile(rf"(-?)([0-9]{{1,16}})(?:\.([0-9]{{1,{FRACTION}}}))?\Z")


def budget():
    """What is left of the limits for all schemas of a request."""
    return dict(LIMITS)


def check_schema(field, schema, left):
    """Refuses a schema that a miner would refuse; `left` is the budget of the whole request."""
    members(field, schema)
    definitions = {}
    for place in DEFINITIONS:
        for name, defined in members(f"{field}.{place}", schema.get(place, {})).items():
            definitions[f"#/{place}/{name}"] = defined
    form = Walk(definitions, left).node(field, schema, 1, True)
    if form.get("type") != "object":
        raise FieldError(f"{field}.type", form.get("type", "no type"), '"object"')
    size = len(json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode())
    if size > SCHEMA_BYTES_MAX:
        raise FieldError(field, f"{size} bytes", f"at most {SCHEMA_BYTES_MAX} bytes")


class Walk:
    """The way through one schema with all that it refers to."""

    def __init__(self, definitions, left):
        self.definitions, self.left, self.open = definitions, left, []
        self.optional = OPTIONAL_MAX

    def node(self, field, schema, depth, is_root=False):
        """The one form of a schema."""
        if depth > DEPTH_MAX:
            raise FieldError(field, "one more level", f"at most {DEPTH_MAX} levels")
        members(field, schema)
        self.spend("parts", 1, field)
        described = description(field, schema)
        self.spend("bytes", WORDS_BYTES + len((described or "").encode()), field)
        kind, types = kind_of(field, schema, is_root)
        if kind == "$ref":
            form = self.reference(field, schema, depth)
        elif kind in CHOICES:
            form = self.choice(field, schema, kind, depth)
        elif kind == "values":
            form = self.values(field, schema)
        else:
            form = self.typed(field, schema, types, depth)
        return form if described is None else {**form, "description": described}

    def spend(self, what, count, field):
        self.left[what] -= count
        if self.left[what] < 0:
            raise FieldError(field, "more", f"at most {LIMITS[what]} {what} together")

    def reference(self, field, schema, depth):
        path, name = f"{field}.$ref", text(f"{field}.$ref", schema["$ref"])
        if name not in self.definitions:
            raise FieldError(path, name, "a definition of this schema, as #/$defs/name")
        if name in self.open:
            raise FieldError(path, name, "no schema that contains itself")
        self.open.append(name)
        form = self.node(f"{path}({name})", self.definitions[name], depth + 1)
        self.open.pop()
        return form

    def choice(self, field, schema, key, depth):
        path = f"{field}.{key}"
        branches = array(path, schema[key], 1 if key == "allOf" else BRANCHES_MAX)
        if not branches:
            raise FieldError(path, "no schemas", "at least one")
        forms = [
            self.node(f"{path}[{index}]", branch, depth + 1) for index, branch in enumerate(branches)
        ]
        return forms[0] if len(forms) == 1 else {"anyOf": forms}

    def values(self, field, schema):
        types = types_of(field, schema)
        key = "const" if "const" in schema else "enum"
        path = f"{field}.{key}"
        given = [schema["const"]] if key == "const" else array(path, schema["enum"], 2**32)
        if not given:
            raise FieldError(path, "no values", "at least one")
        self.spend("values", len(given), path)
        seen = []
        for index, value in enumerate(given):
            at = f"{path}[{index}]" if key == "enum" else path
            if isinstance(value, (list, dict)):
                raise FieldError(at, type(value).__name__, "a plain value")
            if isinstance(value, str):
                short(at, value, TEXT_BYTES_MAX)
            if isinstance(value, int) and abs(value) > WHOLE_MAX:
                raise FieldError(at, value, "a whole number from -2^53 to 2^53")
            fits = types is None or any(is_of(name, value) for name in types)
            # 1 and True are equal, and two values.
            if not fits or (type(value), value) in seen:
                raise FieldError(at, value, "each value once, and of the type")
            self.spend("bytes", len(value.encode()) if isinstance(value, str) else WORDS_BYTES, at)
            seen.append((type(value), value))
        values = [value for _, value in seen]
        if is_nullable(field, schema) and None not in values:
            values.append(None)
        return {"enum": values}

    def typed(self, field, schema, types, depth):
        form = {"type": types[0] if len(types) == 1 else types} if types else {}
        bounds(field, schema, types, form)
        counts(field, schema, form)
        if "object" in types:
            self.members(field, schema, depth, form)
        if "items" in schema:
            form["items"] = self.node(f"{field}.items", schema["items"], depth + 1)
        if "prefixItems" in schema:
            path = f"{field}.prefixItems"
            items = enumerate(array(path, schema["prefixItems"], BRANCHES_MAX))
            form["prefixItems"] = [self.node(f"{path}[{at}]", item, depth + 1) for at, item in items]
        return form

    def members(self, field, schema, depth, form):
        properties = {}
        path = f"{field}.properties"
        for name, member in members(path, schema.get("properties", {})).items():
            short(f"{path}.{name}", name, TEXT_BYTES_MAX)
            self.spend("bytes", 2 * len(name.encode()), f"{path}.{name}")
            properties[name] = self.node(f"{path}.{name}", member, depth + 1)
        required = array(f"{field}.required", schema.get("required", []), 2**32)
        for index, name in enumerate(required):
            if not isinstance(name, str) or name not in properties or name in required[:index]:
                place = f"{field}.required[{index}]"
                raise FieldError(place, name, "a name of properties, each once")
        self.optional -= len(properties) - len(required)
        if self.optional < 0:
            expected = f"at most {OPTIONAL_MAX} in a schema that are not in required"
            raise FieldError(path, "more members that may be left out", expected)
        if "properties" in schema:
            form.update(properties=properties, required=required)
        if "additionalProperties" in schema:
            others = schema["additionalProperties"]
            if not isinstance(others, bool):
                others = self.node(f"{field}.additionalProperties", others, depth + 1)
            form["additionalProperties"] = others
        elif "properties" in schema:
            form["additionalProperties"] = False


def description(field, schema):
    """What a schema says to the model, its format included."""
    said, form = (
        text(f"{field}.{key}", schema[key]) if key in schema else None
        for key in ("description", "format")
    )
    if form is None:
        return said
    return f"format: {form}" if said is None else f"{said} (format: {form})"


def kind_of(field, schema, is_root):
    """What a schema is. Every keyword must be known for that, or say nothing."""
    kind, types = "typed", []
    choice = next((key for key in CHOICES if key in schema), None)
    if "$ref" in schema:
        kind, known = "$ref", ["$ref"]
    elif choice:
        kind, known = choice, [choice]
    elif "enum" in schema or "const" in schema:
        kind, known = "values", ["enum", "const", "type", "nullable"]
    else:
        types = types_of(field, schema)
        types = implied(schema, is_root) if types is None else types
        if is_nullable(field, schema) and types and "null" not in types:
            types = [*types, "null"]
        known = ["type", "nullable"] + [key for name in types for key in KEYWORDS[name]]
    known = known + (DEFINITIONS if is_root else [])
    for key in schema:
        is_idle = key == "uniqueItems" and schema[key] is False
        if key not in known + ANNOTATIONS and not key.startswith("x-") and not is_idle:
            expected = f"beside what says nothing only {', '.join(known)}"
            raise FieldError(f"{field}.{key}", "a keyword that cannot be honoured here", expected)
    return kind, types


def implied(schema, is_root):
    for name in ("object", "array", "string", "number"):
        if any(key in schema for key in KEYWORDS[name]):
            return [name]
    return ["object"] if is_root else []


def types_of(field, schema):
    if "type" not in schema:
        return None
    given = schema["type"]
    types = given if isinstance(given, list) else [given]
    is_known = all(isinstance(name, str) and name in KEYWORDS for name in types)
    if not types or not is_known or len(set(types)) != len(types):
        raise FieldError(f"{field}.type", given, f"of {', '.join(KEYWORDS)}, each once")
    return types


def is_nullable(field, schema):
    return boolean(f"{field}.nullable", schema.get("nullable", False))


def is_of(name, value):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "integer": number and isinstance(value, int),
        "number": number,
        "string": isinstance(value, str),
    }.get(name, False)


def counts(field, schema, form):
    for low, high in (("minItems", "maxItems"), ("minLength", "maxLength")):
        for key in (low, high):
            if key in schema:
                if type(schema[key]) is not int or not 0 <= schema[key] <= COUNT_MAX:
                    expected = f"a whole number from 0 to {COUNT_MAX}"
                    raise FieldError(f"{field}.{key}", schema[key], expected)
                form[key] = schema[key]
        if low in form and high in form and form[low] > form[high]:
            raise FieldError(f"{field}.{low}", form[low], f"at most {high}, {form[high]}")


def bounds(field, schema, types, form):
    """The bounds of numbers; some number must lie within them."""
    scaled = {}
    for key in NUMBERS:
        if key in schema:
            is_number = type(schema[key]) in (int, float)
            found = BOUND.match(repr(schema[key])) if is_number else None
            if not found:
                expected = "a number of at most 16 digits before and 8 behind the point"
                raise FieldError(f"{field}.{key}", schema[key], expected)
            sign, whole, fraction = found.groups(default="")
            scaled[key] = int(sign + whole + fraction.ljust(FRACTION, "0"))
            form[key] = schema[key]
    step = UNIT if "integer" in types and "number" not in types else 1

    def up(bound):
        return -(-bound // step)

    least = [up(scaled[key]) for key in ("minimum",) if key in scaled]
    least += [scaled[key] // step + 1 for key in ("exclusiveMinimum",) if key in scaled]
    most = [scaled[key] // step for key in ("maximum",) if key in scaled]
    most += [up(scaled[key]) - 1 for key in ("exclusiveMaximum",) if key in scaled]
    if least and most and max(least) > min(most):
        key = "minimum" if "minimum" in scaled else "exclusiveMinimum"
        raise FieldError(f"{field}.{key}", schema[key], "bounds with a number between them")


def members(field, value):
    if not isinstance(value, dict):
        raise FieldError(field, type(value).__name__, "an object")
    return value
