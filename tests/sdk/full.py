"""A full pool, as the public SDK meets it: it asks again by itself, and succeeds as soon as a block
has made room.

usage: full.py URL

The node's pool takes 3 transactions, and there are 3 s between blocks. Prints one line of JSON.
"""

import json
import sys

from chain import NOBODY, Account, answers, connect, included, refused, same, wait_for
from ombrachain import OmbraApiError

ROOM = 3
# The SDK's own: three requests within 0.75 s.
RETRIES = 2


def fill(client, filler):
    """Takes all room. A block has just been made, so the next one is seconds away."""
    filler.pay(NOBODY, 1)
    for _ in range(ROOM):
        filler.hand_in("TRANSFER", to=NOBODY, amount="1", fee="0")


def while_full(client, filler, sender):
    """Hands a payment in until the pool was full for all of its requests; answers the payment and
    the error. On a slow machine a block may come in between."""

    def attempt():
        fill(client, filler)
        tx = sender.draft("TRANSFER", to=NOBODY, amount="1", fee="0")
        try:
            client.chain.submit_tx(tx)
        except OmbraApiError as error:
            return tx, error
        sender.nonce += 1
        included(client, tx["hash"])

    return wait_for("a refusal", attempt)


def gives_up(client, filler, alice):
    """What the SDK tells its user when the pool stays full for longer than it tries."""
    seen = answers(client)
    tx, error = while_full(client, filler, alice)
    same((503, "POOL_FULL"), (error.status, error.body["code"]))
    last = seen[-RETRIES - 1 :]
    same([503] * (RETRIES + 1), [answer.status_code for answer in last])
    same(200, seen[-RETRIES - 2].status_code)
    seconds = -(-error.body["retryAfterMs"] // 1_000)
    same({str(seconds)}, {answer.headers["retry-after"] for answer in last})
    # Nobody shall take it for pending, nor for dropped.
    refused(404, "NOT_FOUND", client.chain.get_tx, tx["hash"])
    same((0, alice.nonce), pending_and_nonce(client, alice))
    # The same signed dictionary is good later.
    wait_for("room", lambda: client.mempool.get()["total"] < ROOM)
    same({"ok": True, "hash": tx["hash"]}, client.chain.submit_tx(tx))
    return included(client, tx["hash"])["txStatus"]


def pending_and_nonce(client, sender):
    account = client.chain.get_account(sender.address)
    return account["pendingCount"], account["nonce"]


def gets_in(url, client, filler, bob):
    """With more retries the SDK alone waits for room."""
    patient = connect(url, retries=RETRIES + 4)
    seen = answers(patient)
    bob.client = patient

    def attempt():
        fill(client, filler)
        seen.clear()
        tx = bob.hand_in("TRANSFER", to=NOBODY, amount="1", fee="0")
        return tx if len(seen) > 1 else None

    tx = wait_for("a refusal", attempt)
    same({503}, {answer.status_code for answer in seen[:-1]})
    same({"ok": True, "hash": tx["hash"]}, seen[-1].json())
    return included(client, tx["hash"])["txStatus"]


def main(url):
    client = connect(url, retries=RETRIES)
    filler, alice, bob = (Account(client, index) for index in range(3))
    statuses = [gives_up(client, filler, alice), gets_in(url, client, filler, bob)]
    print(json.dumps({"statuses": statuses}))


main(sys.argv[1])
