"""Calls an agent and shows the answer, who gave it, and the bill.

usage: agent_call.py AGENT METHOD [ARGUMENTS [MEMBERS]]

AGENT is its id, ARGUMENTS are JSON: an array, or an object by names. OMBRA_MNEMONIC has the words
of the wallet that pays, OMBRA_URL is the node, OMBRA_CHAIN_ID the only chain that is signed for.
"""

import json
import os
import sys

from agent_calls.ask import Caller
from ombrachain import Wallet

caller = Caller(
    Wallet.from_mnemonic(os.environ["OMBRA_MNEMONIC"]),
    os.environ.get("OMBRA_URL", "http://127.0.0.1:8777"),
    chain_id=os.environ.get("OMBRA_CHAIN_ID"),
)


def main(agent, method, arguments="[]", members="3"):
    asked = {"committeeSize": int(members), "until": "settled"}
    status, values, call = caller.call_agent(agent, method, json.loads(arguments), **asked)
    print("call", call["callId"])
    print(status, json.dumps(values, ensure_ascii=False))
    for member in (it for record in call["rounds"] for it in record["members"]):
        agrees = {True: "agrees", False: "differs", None: "no group"}[member.get("agreed")]
        print(member["address"], agrees, member["paid"], "paid", member["penalty"], "lost")
    print(call["wages"], "for the members,", call["royaltyPaid"], "for the owner,", end=" ")
    print(call["burned"], "burned,", call["refund"], "back")


if len(sys.argv) < 3:
    sys.exit(__doc__)
main(*sys.argv[1:5])
