"""Submissions through the public SDK while the node is killed or stopped, and started again.

usage: restart.py URL

The node must be a new `ombra dev`. Prints `kill`, `stop` and `start`, reads `done` when the node
was killed, stopped or started again at the same address, and at last prints one line of JSON.
"""

import json
import sys
import threading
import time

from chain import PATIENCE_SECONDS, Account, ask_harness, connect, included, same, wait_for
from ombrachain import OmbraApiError, OmbraNetworkError

ENDS = ("kill", "stop", "kill")
AMOUNT = 11


class Sender(threading.Thread):
    """Submits payments one after the other until it is told to stop."""

    def __init__(self, url, index, receiver, retries):
        super().__init__()
        self.client = connect(url, retries=retries)
        self.account = Account(self.client, index)
        self.receiver, self.sent, self.resubmitted = receiver, [], 0
        self.stopped, self.fault = threading.Event(), None

    def run(self):
        try:
            while not self.stopped.is_set():
                tx = self.account.sign("TRANSFER", to=self.receiver, amount=str(AMOUNT), fee="0")
                self.sent.append(tx["hash"])
                self.submit(tx)
        except Exception as fault:
            self.fault = fault

    def submit(self, tx):
        """The same bytes again and again: the node must not count them twice."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                same({"ok": True, "hash": tx["hash"]}, self.client.chain.submit_tx(tx))
                return
            except OmbraNetworkError:
                self.resubmitted += 1
            except OmbraApiError as error:
                # A node that is stopping says so.
                same((503, "SHUTTING_DOWN"), (error.status, error.body["code"]))
                self.resubmitted += 1
            assert time.monotonic() < deadline, "the node did not come back"

    def wait_for_more(self):
        enough = len(self.sent) + 5
        wait_for("more payments", lambda: self.fault or len(self.sent) >= enough)

    def wait_for_failure(self):
        before = self.resubmitted
        wait_for("the SDK to give up", lambda: self.fault or self.resubmitted > before)


def in_blocks(client):
    """The hashes of all included transactions, in chain order."""
    hashes, start, total = [], 1, client.chain.get_height()["height"]
    while start <= total:
        part = client._request("GET", "/api/chain/blocks-full", params={"from": start})
        hashes += [tx["hash"] for block in part["blocks"] for tx in block["transactions"]]
        start = part["blocks"][-1]["index"] + 1
    return hashes


def main(url):
    client = connect(url)
    receiver = "cd" * 20
    # The first has the SDK's own 2 retries within 0.75 s; the second has so many that the SDK
    # alone gets over a restart.
    senders = [Sender(url, 0, receiver, retries=2), Sender(url, 1, receiver, retries=7)]
    for sender in senders:
        sender.start()
    for end in ENDS:
        for sender in senders:
            sender.wait_for_more()
        ask_harness(end)
        senders[0].wait_for_failure()
        ask_harness("start")
    for sender in senders:
        sender.wait_for_more()
        sender.stopped.set()
    for sender in senders:
        sender.join()
        if sender.fault:
            raise sender.fault

    total = sum(len(sender.sent) for sender in senders)
    for sender in senders:
        last = included(client, sender.sent[-1])
        same(len(sender.sent) - 1, last["nonce"])
    same(str(AMOUNT * total), client.chain.get_account(receiver)["balance"])
    same(sorted(in_blocks(client)), sorted(tx for sender in senders for tx in sender.sent))
    for sender in senders:
        account = client.chain.get_account(sender.account.address)
        same((len(sender.sent), 0), (account["nonce"], account["pendingCount"]))
    same(0, senders[1].resubmitted)
    print(json.dumps({"ends": ENDS}))


main(sys.argv[1])
