"""The public SDK's `send`, many times in a row without waiting.

usage: send.py URL

The node must be a new `ombra dev`. Prints one line of JSON.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

from chain import Account, connect, included, refused, same

IN_A_ROW = 10


def in_a_row(client, sender, receiver):
    """Each `send` asks for the nonce anew, so the node must count what is pending."""
    first = client.chain.get_account(sender.address)["nonce"]
    before = int(client.wallet.get_balance(receiver.address)["balance"])
    sent = [
        client.send(sender.wallet, to=receiver.address, amount=7, fee=3) for _ in range(IN_A_ROW)
    ]
    txs = [included(client, answer["hash"]) for answer in sent]
    same(list(range(first, first + IN_A_ROW)), [tx["nonce"] for tx in txs])
    after = int(client.wallet.get_balance(receiver.address)["balance"])
    same(7 * IN_A_ROW, after - before)


def main(url):
    client = connect(url)
    accounts = [Account(client, index) for index in range(4)]
    in_a_row(client, accounts[0], accounts[1])
    # Several wallets at once do not take each other's nonces.
    with ThreadPoolExecutor() as pool:
        pairs = [pool.submit(in_a_row, client, accounts[at], accounts[at - 2]) for at in (2, 3)]
        for pair in pairs:
            pair.result()
    poor = {"to": accounts[1].address, "amount": 10**12, "fee": 0}
    refused(422, "INSUFFICIENT_BALANCE", lambda: client.send(accounts[0].wallet, **poor))
    known = {"to": accounts[1].address, "amount": 1, "fee": 0, "nonce": 0}
    refused(409, "NONCE_STALE", lambda: client.send(accounts[0].wallet, **known))
    nonces = [client.chain.get_account(account.address)["nonce"] for account in accounts]
    print(json.dumps({"nonces": nonces}))


main(sys.argv[1])
