"""What protects a run: members of its AGENT_REQUEST, from fork v7 on (docs/protocol.md section 5.2)."""

import json
import os
import urllib.request

CLAIM_BOND_MIN, CLAIM_BOND_MORE, REFUSE_MS = 100_000, 10_000, 600_000


def protection(url, max_fee):
    """The members for a run with this escrow on the chain of a node.

    There are none before v7, and none if the environment has OMBRA_UNPROTECTED.
    """
    if os.environ.get("OMBRA_UNPROTECTED") or not _has_v7(url):
        return {}
    bond = max(CLAIM_BOND_MIN, int(max_fee) + CLAIM_BOND_MORE)
    return {"claimBond": str(bond), "refuseMs": REFUSE_MS}


def _has_v7(url):
    """The schedule of fees has a base fee from v7 on only."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "ombra_feeSchedule", "params": []}
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(call).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return "baseFee" in json.load(answer)["result"]
