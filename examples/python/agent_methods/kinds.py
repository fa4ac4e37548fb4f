"""The kinds of transactions as the node declares them: `kinds.json` beside this file."""

import json
from pathlib import Path

_DECLARED = json.loads((Path(__file__).parent / "kinds.json").read_text(encoding="utf-8"))
KINDS = {kind["type"]: kind for kind in _DECLARED["kinds"]}
# What every kind may have beside its own fields: `maxBaseFee` and `tip`.
EVERY_KIND = [field["name"] for field in _DECLARED["everyKind"]["optional"]]


def members(kind, fields, nonce, timestamp):
    """The fields of a transaction in the order in which the node writes them.

    Of any kind they may be `maxBaseFee` and `tip`, too: what is offered for a place in a block
    (docs/protocol.md section 15).

    Raises ValueError for a kind or field that does not exist, for a required one that is missing, and
    for the tip of a TRANSFER, which is its fee.
    """
    if kind not in KINDS:
        raise ValueError(f"type is {kind!r}, expected one of {', '.join(KINDS)}")
    required = [field["name"] for field in KINDS[kind]["required"]]
    optional = [field["name"] for field in KINDS[kind]["optional"]] + EVERY_KIND
    if kind == "TRANSFER":
        optional.remove("tip")
    for name in fields:
        if name not in required + optional:
            raise ValueError(f"{kind} has no field {name!r}, but {', '.join(required + optional)}")
    for name in required:
        if fields.get(name) is None:
            raise ValueError(f"{kind} needs the field {name!r}")
    first = {name: fields[name] for name in required}
    last = {name: fields[name] for name in optional if fields.get(name) is not None}
    return {**first, "nonce": nonce, "timestamp": timestamp, **last}
