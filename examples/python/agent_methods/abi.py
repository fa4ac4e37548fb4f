"""Calls of Solidity functions: signatures, calldata, and arguments as models write them.

docs/agent-methods.md section 7 has the rules. Types are string, bool, address, uint8 to uint256,
int8 to int256, bytes, and arrays of one of these.
"""

import re

from .faults import NUMBER, FieldError, array, short, text
from .keccak import keccak256

SIGNATURE_BYTES_MAX = 1024
DESCRIPTION_BYTES_MAX = 4096
FUNCTIONS_MAX = 64
PARAMETERS_MAX = 32
FIXED_ELEMENTS_MAX = 1024
CALLDATA_BYTES_MAX = 65536
WORD = 32

SHAPE = "name(type name, …) and nothing else, the name 1 to 64 of [A-Za-z0-9_]"
TYPES = "string, bool, address, uint8 to uint256, int8 to int256, bytes, T[] or T[1] to T[1024]"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
PARAMETER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
TYPE = re.compile(r"(string|bool|address|bytes|u?int[0-9]*)(\[([0-9]*)\])?\Z")


class Function:
    """One declared function."""

    def __init__(self, signature, field="signature"):
        short(field, signature, SIGNATURE_BYTES_MAX)
        self.name, opened, rest = signature.partition("(")
        shape = FieldError(field, signature, SHAPE)
        if not opened or not rest.endswith(")") or not NAME.match(self.name):
            raise shape
        listed = rest[:-1]
        if "(" in listed or ")" in listed:
            raise shape
        given = listed.split(",") if listed.strip() else []
        if len(given) > PARAMETERS_MAX:
            raise FieldError(field, f"{len(given)} parameters", f"at most {PARAMETERS_MAX}")
        self.parameters = []
        for index, words in enumerate(parameter.split() for parameter in given):
            if not words:
                raise shape
            kind, names = type_of(field, words[0]), words[1:]
            if names and names[0] in ("memory", "calldata"):
                names = names[1:]
            if len(names) > 1 or (names and not PARAMETER.match(names[0])):
                raise shape
            name = names[0] if names else f"arg{index}"
            if any(name == other for other, _ in self.parameters):
                raise FieldError(field, f"parameter {name} twice", "parameters with own names")
            self.parameters.append((name, kind))
        types = ",".join(kind.name for _, kind in self.parameters)
        self.signature = f"{self.name}({types})"
        self.selector = keccak256(self.signature.encode())[:4]

    def encode(self, arguments):
        """The calldata of a call with these arguments, by name."""
        if not isinstance(arguments, dict):
            raise FieldError("arguments", type(arguments).__name__, "an object")
        for name in arguments:
            if name not in [known for known, _ in self.parameters]:
                raise FieldError(name, "an unknown argument", f"those of {self.signature}")
        parts = []
        for name, kind in self.parameters:
            if name not in arguments:
                raise FieldError(name, "nothing", kind.name)
            parts.append((kind, kind.encode(name, arguments[name])))
        calldata = self.selector + join(parts)
        if len(calldata) > CALLDATA_BYTES_MAX:
            raise FieldError("calldata", f"{len(calldata)} bytes", f"at most {CALLDATA_BYTES_MAX}")
        return calldata

    def decode(self, calldata):
        """The arguments by name; what is taken is exactly what `encode` writes."""
        wrong = FieldError("calldata", calldata[:40].hex(), f"a call of {self.signature}")
        try:
            data, at, arguments = calldata[4:], 0, {}
            for name, kind in self.parameters:
                place = number(data, at) if kind.is_dynamic else at
                arguments[name] = kind.decode(data, place)
                at += WORD if kind.is_dynamic else kind.words * WORD
            if calldata[:4] == self.selector and self.encode(arguments) == calldata:
                return arguments
        except (IndexError, UnicodeDecodeError, FieldError):
            pass
        raise wrong


class Plain:
    """string, bool, address, bytes, or a number."""

    words = 1

    def __init__(self, name):
        self.name = name
        self.is_dynamic = name in ("string", "bytes")
        self.bits = int(name.lstrip("uint") or 0) if "int" in name else 0

    def encode(self, path, value):
        if self.name == "bool" and isinstance(value, bool):
            return word(int(value))
        if self.name == "string" and isinstance(value, str):
            return counted(text(path, value).encode())
        if self.name in ("address", "bytes") and isinstance(value, str):
            size = "{40}" if self.name == "address" else "*"
            if re.match(rf"0x([0-9a-fA-F]{size})\Z", value) and len(value) % 2 == 0:
                given = bytes.fromhex(value[2:])
                return given.rjust(WORD, b"\0") if self.name == "address" else counted(given)
        if self.bits:
            given = self.number(value)
            if given is not None:
                return word(given)
        raise FieldError(path, repr(value), f"a value of {self.name}")

    def number(self, value):
        """The number that is meant, if it fits."""
        if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**64:
            value = str(value)
        if not isinstance(value, str) or not NUMBER.match(value) or len(value) > 1024:
            return None
        low, high = (0, 2**self.bits) if self.name[0] == "u" else halves(self.bits)
        return int(value) if low <= int(value) < high else None

    def decode(self, data, at):
        if self.is_dynamic:
            size = number(data, at)
            given = data[at + WORD : at + WORD + size]
            return given.decode() if self.name == "string" else f"0x{given.hex()}"
        value = number(data, at)
        if self.name == "bool":
            return value == 1
        if self.name == "address":
            return f"0x{value:040x}"
        return str(value - 2**256 if self.name[0] == "i" and value >> 255 else value)


class Array:
    """An array of plain values, of any number or of a fixed one."""

    def __init__(self, item, count):
        self.item, self.count = item, count
        self.name = f"{item.name}[{count or ''}]"
        self.is_dynamic = item.is_dynamic or not count
        self.words = count or 1

    def encode(self, path, value):
        items = array(path, value, CALLDATA_BYTES_MAX)
        if self.count and len(items) != self.count:
            raise FieldError(path, f"{len(items)} elements", f"{self.count} elements")
        parts = [
            (self.item, self.item.encode(f"{path}[{index}]", item))
            for index, item in enumerate(items)
        ]
        return (b"" if self.count else word(len(items))) + join(parts)

    def decode(self, data, at):
        count = self.count
        if not count:
            count, at = number(data, at), at + WORD
        if count > len(data) // WORD:
            raise IndexError("more elements than bytes")
        places = [at + WORD * index for index in range(count)]
        if self.item.is_dynamic:
            places = [at + number(data, place) for place in places]
        return [self.item.decode(data, place) for place in places]


def type_of(field, name):
    found = TYPE.match(name)
    wrong = FieldError(field, f"type {name}", TYPES)
    if not found:
        raise wrong
    plain, is_array, count = found.groups()
    if "int" in plain:
        bits = plain.lstrip("uint")
        plain = plain if bits else f"{plain}256"
        if bits and (bits[0] == "0" or int(bits) % 8 or not 8 <= int(bits) <= 256):
            raise wrong
    if not is_array:
        return Plain(plain)
    if count and (count[0] == "0" or not 1 <= int(count) <= FIXED_ELEMENTS_MAX):
        raise wrong
    return Array(Plain(plain), int(count or 0))


def declare(declarations, field="args.onchainTools"):
    """Functions by their names; each name and each selector once."""
    functions = {}
    for index, declaration in enumerate(array(field, declarations, FUNCTIONS_MAX)):
        path = f"{field}[{index}].signature"
        function = Function(declaration["signature"], path)
        short(f"{field}[{index}].description", declaration["description"], DESCRIPTION_BYTES_MAX)
        for other in functions.values():
            if other.name == function.name or other.selector == function.selector:
                expected = f"another name and another selector than {other.signature}"
                raise FieldError(path, function.signature, expected)
        functions[function.name] = function
    return functions


def decode_call(functions, calldata):
    """Name and arguments of the call that calldata is, of the functions of `declare`."""
    for function in functions.values():
        if calldata[:4] == function.selector:
            return function.name, function.decode(calldata)
    raise FieldError("calldata", calldata[:40].hex(), "the selector of a declared function")


def join(parts):
    """Values one after the other, those of no fixed size behind the others."""
    head_bytes = sum(WORD if kind.is_dynamic else len(encoded) for kind, encoded in parts)
    head, tail = b"", b""
    for kind, encoded in parts:
        head += word(head_bytes + len(tail)) if kind.is_dynamic else encoded
        tail += encoded if kind.is_dynamic else b""
    return head + tail


def halves(bits):
    return -(2 ** (bits - 1)), 2 ** (bits - 1)


def word(value):
    return (value % 2**256).to_bytes(WORD, "big")


def counted(given):
    return word(len(given)) + given + bytes(-len(given) % WORD)


def number(data, at):
    if at + WORD > len(data):
        raise IndexError("beyond the end")
    return int.from_bytes(data[at : at + WORD], "big")
