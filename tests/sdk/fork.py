"""Types whose fork is not active yet, through the public SDK: what it is told, and that it does not
ask again.

usage: fork.py URL

Fork v6 of the node's chain begins far above its tip. Prints one line of JSON.
"""

import json
import sys

from chain import NOBODY, NOWHERE, Account, answers, connect, refused, same


def drafts(alice):
    """One of each type of the fork."""
    run = {"agentRunId": NOWHERE}
    amounts = {"minerReward": "0", "userRefund": "300", "networkFee": "0"}
    step = {"stepIndex": 0, "outputTokens": 1, "outputHash": NOWHERE}
    return [
        alice.draft("CHAT_TURN", conversationId=NOWHERE, role="user", content="hello"),
        alice.draft("AGENT_REQUEST", **alice.request("What?", 300)),
        alice.draft("AGENT_CLAIM", **alice.claim(NOWHERE)),
        alice.draft("AGENT_STEP", **run, **step),
        alice.draft("AGENT_FINISH", **run, totalTokensOut=0, status="completed", **amounts),
        alice.draft("AGENT_CANCEL", **run),
    ]


def main(url):
    client = connect(url)
    alice = Account(client, 0)
    before = client.chain.get_account(alice.address)
    seen = answers(client)
    for tx in drafts(alice):
        body = refused(403, "FORK_NOT_ACTIVE", client.chain.submit_tx, tx)
        same("type", body["field"])
        assert body["got"].startswith(f"{tx['type']} in block "), body
        assert body["expected"].endswith(" or later"), body
        assert "retryAfterMs" not in body, body
        refused(404, "NOT_FOUND", client.chain.get_tx, tx["hash"])
    statuses = [answer.status_code for answer in seen]
    # A 403 is final for the SDK: each was handed in once.
    same([403, 404] * len(drafts(alice)), statuses)
    same(before, client.chain.get_account(alice.address))
    # What is older than the fork is taken with the same nonce.
    paid = alice.pay(NOBODY, 1)
    print(json.dumps({"refused": statuses.count(403), "nonce": paid["nonce"]}))


main(sys.argv[1])
