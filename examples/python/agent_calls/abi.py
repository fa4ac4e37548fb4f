"""Payloads and results of agents, as their metadata declares the methods.

docs/market.md sections 3 and 4 have the rules. What is read is exactly what is written: each part
stands where the encoder puts it, so reading takes a time that is linear in the bytes.
"""

import json
import re

from agent_methods.faults import NUMBER, FieldError, array, text
from agent_methods.keccak import keccak256

BYTES_MAX = 16_384
PARAMETERS_MAX = 32
ELEMENTS_MAX = 1_024
TUPLES_MAX = 8
WORD = 32
TYPES = (
    "string, bytes, bool, address, uint8 to uint256, int8 to int256, bytes1 to bytes32, tuple, "
    "or arrays of these"
)
TYPE = re.compile(r"([a-z]+)([0-9]*)((?:\[[0-9]*\]){0,4})\Z")
ADDRESS = re.compile(r"(?:ox|0x)?([0-9a-fA-F]{40})\Z")
HEX = re.compile(r"0x((?:[0-9a-fA-F]{2})*)\Z")


class Method:
    """A method of an agent: an entry of the array `abi` of its metadata."""

    def __init__(self, entry, field="abi"):
        if not isinstance(entry, dict) or entry.get("type") != "function":
            raise FieldError(field, entry, "a function")
        self.name = text(f"{field}.name", entry.get("name"))
        self.inputs = _Tuple(entry.get("inputs"), f"{field}.inputs", 0)
        self.outputs = _Tuple(entry.get("outputs"), f"{field}.outputs", 0)
        self.signature = f"{self.name}{self.inputs.name}"
        self.selector = "0x" + keccak256(self.signature.encode())[:4].hex()

    def encode(self, arguments):
        """The payload of a call with arguments in their order or by name."""
        return _bounded("payload", self.selector + self.inputs.encode("args", arguments).hex())

    def decode(self, payload):
        """The arguments of a payload: a dict, or a list where an input has no name."""
        if not isinstance(payload, str) or payload[:10].lower() != self.selector:
            raise FieldError("payload", payload, f"a call of {self.signature}")
        return _read(self.inputs, "payload", "0x" + payload[10:])

    def encode_result(self, values):
        """A result, as a member of a call writes it."""
        return _bounded("result", "0x" + self.outputs.encode("result", values).hex())

    def decode_result(self, result):
        """The values of a result: a dict, or a list where an output has no name."""
        return _read(self.outputs, "result", result)


def methods(metadata):
    """The methods of an agent by the JSON text of its metadata."""
    listed = json.loads(metadata)["abi"]
    return [Method(entry, f"abi[{index}]") for index, entry in enumerate(listed)]


def _bounded(field, coded):
    size = len(coded) // 2 - 1
    if size > BYTES_MAX:
        raise FieldError(field, f"{size} bytes", f"at most {BYTES_MAX} bytes")
    return coded


def _read(kind, field, coded):
    """The values that are encoded exactly so."""
    wrong = FieldError(field, coded, f"values of {kind.name}")
    try:
        data = _bytes(coded)
        values, end = kind.decode(data, 0)
        again = kind.encode(field, values)
    except (ValueError, IndexError) as error:
        raise wrong from error
    if end != len(data) or again != data:
        raise wrong
    return values


def _bytes(value):
    found = HEX.match(value) if isinstance(value, str) else None
    if not found:
        raise ValueError("no hex with 0x")
    return bytes.fromhex(found.group(1))


def _word(number):
    return number.to_bytes(WORD, "big")


def _number(data, place):
    if place + WORD > len(data):
        raise IndexError("beyond the end")
    return int.from_bytes(data[place : place + WORD], "big")


def _count(data, place):
    number = _number(data, place)
    if number > len(data):
        raise IndexError("beyond the end")
    return number


def _counted(data):
    return _word(len(data)) + data + bytes(-len(data) % WORD)


def _join(parts):
    """Values one after the other, those of no fixed size behind the others."""
    place = sum(WORD if kind.is_dynamic else len(own) for kind, own in parts)
    heads, tails = [], []
    for kind, own in parts:
        heads.append(_word(place) if kind.is_dynamic else own)
        if kind.is_dynamic:
            tails.append(own)
            place += len(own)
    return b"".join(heads + tails)


def _parts(kinds, data, start):
    """The values that `_join` has put together, and where they end."""
    head, tail = start, start + WORD * sum(1 if kind.is_dynamic else kind.words for kind in kinds)
    values = []
    for kind in kinds:
        if kind.is_dynamic:
            if _number(data, head) != tail - start:
                raise IndexError("a part at another place")
            head += WORD
            value, tail = kind.decode(data, tail)
        else:
            value, head = kind.decode(data, head)
        values.append(value)
    return values, tail


class _Plain:
    """string, bytes, bool or address."""

    words = 1

    def __init__(self, name):
        self.name = name
        self.is_dynamic = name in ("string", "bytes")

    def encode(self, path, value):
        wrong = FieldError(path, value, f"a value of {self.name}")
        if self.name == "string":
            return _counted(text(path, value).encode())
        if self.name == "bool":
            if not isinstance(value, bool):
                raise wrong
            return _word(int(value))
        if self.name == "address":
            found = ADDRESS.match(value) if isinstance(value, str) else None
            if not found:
                raise wrong
            return bytes(12) + bytes.fromhex(found.group(1))
        try:
            return _counted(_bytes(value))
        except ValueError:
            raise wrong from None

    def decode(self, data, place):
        if not self.is_dynamic:
            number = _number(data, place)
            return (number == 1 if self.name == "bool" else f"{number:040x}"), place + WORD
        size, start = _count(data, place), place + WORD
        if start + size > len(data):
            raise IndexError("beyond the end")
        own, end = data[start : start + size], start + size + -size % WORD
        return (own.decode() if self.name == "string" else "0x" + own.hex()), end


class _FixedBytes:
    """bytes1 to bytes32."""

    words, is_dynamic = 1, False

    def __init__(self, size):
        self.name, self.size = f"bytes{size}", size

    def encode(self, path, value):
        try:
            own = _bytes(value)
        except ValueError:
            own = b""
        if len(own) != self.size:
            raise FieldError(path, value, f"0x and {self.size} bytes of hex")
        return own + bytes(WORD - self.size)

    def decode(self, data, place):
        return "0x" + _word(_number(data, place))[: self.size].hex(), place + WORD


class _Integer:
    """uint8 to uint256, int8 to int256."""

    words, is_dynamic = 1, False

    def __init__(self, kind, bits):
        self.name, self.is_signed = f"{kind}{bits}", kind == "int"
        self.low = -(1 << (bits - 1)) if self.is_signed else 0
        self.high = (1 << (bits - 1 if self.is_signed else bits)) - 1

    def encode(self, path, value):
        is_text = isinstance(value, str) and len(value) <= 80 and NUMBER.match(value)
        if not is_text and (not isinstance(value, int) or isinstance(value, bool)):
            raise FieldError(path, value, f"an integer, a value of {self.name}")
        number = int(value)
        if not self.low <= number <= self.high:
            raise FieldError(path, value, f"a value of {self.name}")
        return _word(number % (1 << 256))

    def decode(self, data, place):
        number = _number(data, place)
        is_negative = self.is_signed and number >> 255
        return str(number - (1 << 256) if is_negative else number), place + WORD


class _Array:
    """An array, of any number of elements or of a fixed one."""

    def __init__(self, item, count):
        self.name = f"{item.name}[{'' if count is None else count}]"
        self.item, self.count = item, count
        self.is_dynamic = item.is_dynamic or count is None
        self.words = (count or 1) * item.words

    def encode(self, path, value):
        items = array(path, value, BYTES_MAX)
        if self.count is not None and len(items) != self.count:
            raise FieldError(path, f"{len(items)} elements", f"{self.count} elements")
        coded = _join(
            [(self.item, self.item.encode(f"{path}[{at}]", it)) for at, it in enumerate(items)]
        )
        return coded if self.count is not None else _word(len(items)) + coded

    def decode(self, data, place):
        count, start = self.count, place
        if count is None:
            count, start = _count(data, place), place + WORD
        if count > len(data) // WORD:
            raise IndexError("more elements than bytes")
        return _parts([self.item] * count, data, start)


class _Tuple:
    """A tuple, or the parameters of a method: a dict by names, a list where one has none."""

    def __init__(self, components, field, depth):
        listed = array(field, components, PARAMETERS_MAX)
        self.names = [
            text(f"{field}[{at}].name", _member(it, "name")) for at, it in enumerate(listed)
        ]
        self.kinds = [_kind(it, f"{field}[{at}]", depth) for at, it in enumerate(listed)]
        self.name = f"({','.join(kind.name for kind in self.kinds)})"
        self.is_dynamic = any(kind.is_dynamic for kind in self.kinds)
        self.words = sum(kind.words for kind in self.kinds)

    def encode(self, path, value):
        values = self._listed(path, value)
        named = zip(self.names, self.kinds, values)
        return _join(
            [
                (kind, kind.encode(f"{path}.{name or at}", it))
                for at, (name, kind, it) in enumerate(named)
            ]
        )

    def _listed(self, path, value):
        if not isinstance(value, dict):
            values = array(path, value, PARAMETERS_MAX)
            if len(values) != len(self.names):
                raise FieldError(path, f"{len(values)} values", f"{len(self.names)} values")
            return values
        for name in value:
            if name == "" or name not in self.names:
                raise FieldError(f"{path}.{name}", "a value", f"one of {', '.join(self.names)}")
        for name in self.names:
            if name not in value:
                raise FieldError(f"{path}.{name}", "nothing", "a value")
        return [value[name] for name in self.names]

    def decode(self, data, place):
        values, end = _parts(self.kinds, data, place)
        return (values if "" in self.names else dict(zip(self.names, values))), end


def _member(parameter, name):
    return parameter.get(name) if isinstance(parameter, dict) else None


def _kind(parameter, field, depth):
    """The type of a parameter with its dimensions, the innermost first."""
    given = _member(parameter, "type")
    found = TYPE.match(given) if isinstance(given, str) else None
    wrong = FieldError(f"{field}.type", given, TYPES)
    if not found:
        raise wrong
    base, digits, dimensions = found.groups()
    kind = _base(parameter, (base, digits), field, depth)
    if kind is None:
        raise wrong
    for count in re.findall(r"\[([0-9]*)\]", dimensions):
        if count.startswith("0") or (count and int(count) > ELEMENTS_MAX):
            raise wrong
        kind = _Array(kind, int(count) if count else None)
    return kind


def _base(parameter, base_and_digits, field, depth):
    base, digits = base_and_digits
    if digits.startswith("0") or len(digits) > 3:
        return None
    if base in ("uint", "int"):
        bits = int(digits or 256)
        return _Integer(base, bits) if bits % 8 == 0 and bits <= 256 else None
    if base == "bytes" and digits:
        return _FixedBytes(int(digits)) if int(digits) <= WORD else None
    if digits:
        return None
    if base == "tuple" and depth < TUPLES_MAX and _member(parameter, "components"):
        return _Tuple(parameter["components"], f"{field}.components", depth + 1)
    return _Plain(base) if base in ("string", "bytes", "bool", "address") else None
