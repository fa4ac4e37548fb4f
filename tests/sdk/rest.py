"""Every REST method of the public SDK against a node, and what it is refused.

usage: rest.py URL

The node must be a new `ombra dev`. Prints one line of JSON.
"""

import json
import sys

import ombrachain
from chain import NOBODY, NOWHERE, Account, answers, connect, included, refused, same

ZEROS = {
    "address": NOBODY,
    "balance": "0",
    "balanceOmbra": "0.000000",
    "pendingBalance": "0",
    "nonce": 0,
    "committedNonce": 0,
    "pendingCount": 0,
    "escrowed": "0",
    "isMiner": False,
    "miner": None,
    "recentTxs": [],
}


def an_unknown_account_has_zeros(client):
    same(ZEROS, client.chain.get_account(NOBODY))
    same(
        {"balance": "0", "balanceOmbra": "0.000000", "nonce": 0}, client.wallet.get_balance(NOBODY)
    )
    same(NOBODY, client.chain.get_account("ox" + NOBODY)["address"])


def accounts_and_transactions(client, alice, bob):
    paid = alice.pay(bob.address, 1_500_000, fee=40)
    account = client.chain.get_account(alice.address)
    same((1, 1, 0), tuple(account[key] for key in ("nonce", "committedNonce", "pendingCount")))
    same("998499960", account["balance"])
    same("998.499960", account["balanceOmbra"])
    recent = account["recentTxs"][0]
    same((paid["hash"], "TRANSFER", "out"), (recent["hash"], recent["type"], recent["direction"]))
    same("1001500000", client.wallet.get_balance(bob.address)["balance"])

    same(("included", "included"), (paid["status"], paid["txStatus"]))
    block = client.chain.get_block(paid["blockIndex"])
    same(paid["blockHash"], block["hash"])
    same(paid["blockTimestamp"], block["timestamp"])
    same(paid["hash"], block["transactions"][paid["position"]]["hash"])
    # What the node tells of a transaction still carries the signature that the SDK verifies.
    same({"ok": True}, ombrachain.verify_tx(block["transactions"][paid["position"]]))
    same({"low": "40", "medium": "40", "high": "40", "sample": 1}, client.chain.get_fee_estimate())
    return paid


def blocks(client, paid):
    height = client.chain.get_height()
    same(height["height"], height["latestBlock"]["index"])
    for index in range(1, 4):
        block = client.chain.get_block(index) if index <= height["height"] else None
        if block:
            same(block, client.chain.get_block(block["hash"]))
    genesis = client.chain.get_block(0)
    same(
        (0, "0" * 64, []), tuple(genesis[key] for key in ("index", "previousHash", "transactions"))
    )
    same(genesis["hash"], client.chain.get_block(1)["previousHash"])

    page = client.chain.get_blocks(limit=1, offset=0)
    newest = page["blocks"][0]
    same(page["total"], newest["index"])
    needed = {"index", "hash", "prevHash", "proposer", "txCount", "timestamp"}
    assert needed <= newest.keys(), newest
    offset = client.chain.get_height()["height"] - paid["blockIndex"]
    around = client.chain.get_blocks(limit=3, offset=offset)["blocks"]
    assert paid["blockHash"] in [block["hash"] for block in around], around
    same([], client.chain.get_blocks(offset=1_000_000)["blocks"])

    stats = client.chain.get_stats()
    same((0, 1, 0), tuple(stats[key] for key in ("totalMiners", "activeProposers", "p2pPeers")))
    assert stats["recentTxCount"] >= 1 and stats["recentRewards"] == "0", stats


def miners(client, bob):
    same([], client.miners.list())
    refused(404, "NOT_FOUND", client.miners.get_by_address, bob.address)
    builder = ombrachain.build_miner_register_tx
    tx = builder(bob.address, "țară 😀", ["chat"], "a model", bob.nonce, bob.wallet.private_key)
    bob.nonce += 1
    client.chain.submit_tx(tx)
    included(client, tx["hash"])
    [entry] = client.miners.list()
    same(
        ("țară 😀", bob.address, ["chat"]), (entry["name"], entry["address"], entry["capabilities"])
    )
    same(entry, client.miners.get_by_address(bob.address))
    same(entry, client.miners.get(entry["minerId"]))
    account = client.chain.get_account(bob.address)
    same((True, entry), (account["isMiner"], account["miner"]))
    refused(404, "NOT_FOUND", client.miners.get, NOWHERE)
    refused(400, "INVALID_PARAMS", client.miners.get, "7")
    return entry


def money(client, alice):
    supply = client.tokenomics.get_supply()
    same({"genesis", "minted", "burned", "escrowed", "circulating"}, set(supply))
    same(("10000000000", "0", "0"), tuple(supply[key] for key in ("genesis", "burned", "escrowed")))
    top = client.tokenomics.get_holders(limit=3)
    same([1, 2, 3], [holder["rank"] for holder in top["holders"]])
    balances = [int(holder["balance"]) for holder in client.tokenomics.get_holders()["holders"]]
    same(sorted(balances, reverse=True), balances)
    same(10_000_000_000, sum(balances))
    parts = client.tokenomics.get_distribution()
    same(parts["total"], str(sum(int(part["amount"]) for part in parts["kinds"])))
    same(["validators", "miners", "accounts", "escrow"], [part["kind"] for part in parts["kinds"]])


def pending(client, alice, bob):
    """A transaction that waits for an earlier one is known, but in no block."""
    late = {"to": bob.address, "amount": "5", "fee": "0"}
    alice.nonce += 1
    later = alice.hand_in("TRANSFER", **late)
    alice.nonce -= 2
    waiting = client.chain.get_tx(later["hash"])
    same(
        (None, "pending", "pending"),
        tuple(waiting[key] for key in ("blockIndex", "status", "txStatus")),
    )
    same(later, {key: waiting[key] for key in later})
    same({"ok": True, "hash": later["hash"]}, client.chain.submit_tx(later))
    same("tx", client.chain.search(later["hash"])["type"])
    account = client.chain.get_account(alice.address)
    same((1, alice.nonce), (account["pendingCount"], account["committedNonce"]))
    same(alice.nonce, account["nonce"])
    same(1, client.mempool.get()["total"])

    alice.nonce += 1
    refused(
        409,
        "NONCE_TAKEN",
        client.chain.submit_tx,
        alice.draft("TRANSFER", **{**late, "amount": "6"}),
    )
    alice.nonce -= 1
    # The gap is filled, so both are included.
    client.chain.submit_tx(alice.sign("TRANSFER", **late))
    alice.nonce += 1
    now = included(client, later["hash"])
    same({"ok": True, "hash": later["hash"]}, client.chain.submit_tx(later))
    same(now, client.chain.get_tx(later["hash"]))
    same({"total": 0, "pending": []}, client.mempool.get())


def refusals(client, alice, bob):
    """Errors of three statuses, which are final for the SDK; tests/it/rejections has the rejections themselves."""
    submit = client.chain.submit_tx
    to_bob = {"to": bob.address, "amount": "5", "fee": "0"}
    seen = answers(client)
    body = refused(409, "NONCE_STALE", submit, alice.draft("TRANSFER", **to_bob, nonce=0))
    same("nonce", body["field"])
    rich = {**to_bob, "amount": str(10**18)}
    body = refused(422, "INSUFFICIENT_BALANCE", submit, alice.draft("TRANSFER", **rich))
    assert body["got"] and body["expected"], body
    good = alice.draft("TRANSFER", **to_bob)
    refused(400, "HASH_MISMATCH", submit, {**good, "amount": "6"})
    key = alice.wallet.private_key
    refused(
        400,
        "UNSUPPORTED_TYPE",
        submit,
        ombrachain.build_nft_setname_tx(alice.address, "1", "a", alice.nonce, key),
    )
    refused(
        400,
        "UNSUPPORTED_TYPE",
        submit,
        ombrachain.build_burn_tx(alice.address, 1, 1, 1, alice.nonce, key),
    )
    # An answer below 500 is final for the SDK: each was handed in once.
    same([409, 422, 400, 400, 400], [answer.status_code for answer in seen])
    ask = {"prompt": "hello", "task_type": "chat", "fee": 10_000}
    refused(400, "UNSUPPORTED_TYPE", lambda: client.submit_task(alice.wallet, **ask))
    refused(404, "NOT_FOUND", client.chain.get_tx, NOWHERE)
    refused(400, "INVALID_PARAMS", client.chain.get_account, "nobody")


def what_this_chain_does_not_have(client):
    unknown = [
        (client.tasks.get, ["1"]),
        (client.tasks.get_detailed, ["1"]),
        (client.tasks.active, []),
        (client.tasks.list, []),
        (client.analytics.overview, []),
        (client.analytics.heatmap, []),
    ]
    for call, arguments in unknown:
        refused(404, "NOT_SUPPORTED", call, *arguments)


def search(client, alice, bob, paid, entry):
    found = client.chain.search
    by_index = found(str(paid["blockIndex"]))
    same(("block", paid["blockHash"]), (by_index["type"], by_index["result"]["hash"]))
    same(by_index, found(paid["blockHash"]))
    same(("tx", paid), (found(paid["hash"])["type"], found(paid["hash"])["result"]))
    for name in (bob.address, "ox" + bob.address, entry["minerId"], bob.address.upper()):
        hit = found(name)
        same(("account", bob.address), (hit["type"], hit["result"]["address"]))
    run = alice.request("What?", 1_000, conversation="cd" * 32)
    alice.send("AGENT_REQUEST", **run)
    hit = found(run["agentRunId"])
    same(("agentRun", run["agentRunId"]), (hit["type"], hit["result"]["agentRunId"]))
    hit = found("cd" * 32)
    same(("conversation", "cd" * 32), (hit["type"], hit["result"]["conversationId"]))
    same("1000", client.chain.get_account(alice.address)["escrowed"])
    same("1000", client.tokenomics.get_supply()["escrowed"])
    for nothing in (NOWHERE, "9" * 30, "what?", "a%2Fb", "a b", "țară", "%25", "%2F%2F", "..%2F"):
        same({"type": "none", "result": None}, found(nothing))


def main(url):
    client = connect(url, api_key="any")
    alice, bob = Account(client, 0), Account(client, 1)
    an_unknown_account_has_zeros(client)
    paid = accounts_and_transactions(client, alice, bob)
    blocks(client, paid)
    entry = miners(client, bob)
    money(client, alice)
    pending(client, alice, bob)
    refusals(client, alice, bob)
    what_this_chain_does_not_have(client)
    search(client, alice, bob, paid, entry)
    print(json.dumps({"nonces": [alice.nonce, bob.nonce]}))


main(sys.argv[1])
