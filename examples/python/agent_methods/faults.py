"""What a request or an answer can have wrong, and the checks that many fields share."""

import json
import math
import re

NUMBER = re.compile(r"-?[0-9]+\Z")
SHOWN_MAX = 80
DIGITS_MAX = 1024


class FieldError(ValueError):
    """A value that breaks a rule: `field` is a path such as `args.allowedValues[2]`."""

    def __init__(self, field, got, expected):
        shown = "".join("\ufffd" if ord(letter) < 32 else letter for letter in str(got))
        shown = shown if len(shown) <= SHOWN_MAX else shown[:SHOWN_MAX] + "…"
        super().__init__(f"{field}: expected {expected}, got {shown}")
        self.field = field
        self.expected = expected


def parse(whole):
    """JSON as the standard has it: json.loads also takes NaN, and makes a large number infinite.

    Raises ValueError for anything else, also for JSON that is nested too deeply to be read.
    """
    try:
        return json.loads(whole, parse_constant=no_number, parse_float=finite, parse_int=whole_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def no_number(name):
    raise ValueError(f"{name} is no number")


def finite(digits):
    number = float(digits)
    return number if math.isfinite(number) else no_number(digits)


def whole_number(digits):
    return int(digits) if len(digits) <= DIGITS_MAX else no_number(digits)


def text(field, value):
    """A string that can be written as UTF-8."""
    if not isinstance(value, str):
        raise FieldError(field, type(value).__name__, "a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FieldError(field, "half of a surrogate pair", "a text of whole characters") from None
    return value


def boolean(field, value):
    if not isinstance(value, bool):
        raise FieldError(field, type(value).__name__, "true or false")
    return value


def array(field, value, most):
    if not isinstance(value, (list, tuple)):
        raise FieldError(field, type(value).__name__, "an array")
    if len(value) > most:
        raise FieldError(field, f"{len(value)} entries", f"at most {most} entries")
    return list(value)


def fields(path, value, names):
    """An object with exactly these members; `path` is empty for the outermost."""
    if not isinstance(value, dict):
        raise FieldError(path, type(value).__name__, "an object")
    prefix = f"{path}." if path else ""
    for name in value:
        if name not in names:
            raise FieldError(f"{prefix}{name}", "an unknown key", f"one of {', '.join(names)}")
    for name in names:
        if name not in value:
            raise FieldError(f"{prefix}{name}", "nothing", "a value")
    return value


def short(field, value, most):
    """A text of at most so many bytes."""
    count = len(text(field, value).encode())
    if count > most:
        raise FieldError(field, f"{count} bytes", f"at most {most} bytes")
    return value
