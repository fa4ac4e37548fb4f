"""What a run has unless something else is asked for: its protection and its tools.

Both are members of its AGENT_REQUEST (docs/protocol.md section 5.2), the former from fork v7 on.
"""

import json
import os
import urllib.request

CLAIM_BOND_MIN, CLAIM_BOND_MORE, REFUSE_MS = 100_000, 10_000, 600_000

# For a question in free text: a calculator and two tools for dates. A miner that does not have them
# answers without. None if the environment has OMBRA_NO_TOOLS.
NO_TOOLS = os.environ.get("OMBRA_NO_TOOLS")
DEFAULT_TOOLS = [] if NO_TOOLS else ["date_diff", "date_parse", "math_eval"]


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
