"""Shows what an account holds, and its last transactions.

usage: balance.py [ADDRESS]      without ADDRESS: the account of OMBRA_MNEMONIC

OMBRA_URL is the node (http://127.0.0.1:8777).
"""

import os
import sys

from ombrachain import OmbraClient, Wallet


def main(address):
    client = OmbraClient(os.environ.get("OMBRA_URL", "http://127.0.0.1:8777"))
    account = client.chain.get_account(address)
    print(f"{account['address']} has {account['balanceOmbra']} OMBRA")
    if account["escrowed"] != "0":
        print(f"{account['escrowed']} micro-OMBRA more are in escrow for open runs")
    print(f"next nonce {account['nonce']}, {account['pendingCount']} transactions wait for a block")
    for tx in account["recentTxs"]:
        amount = f" {tx['amount']} micro" if "amount" in tx else ""
        print(f"block {tx['blockIndex']}: {tx['direction']} {tx['type']}{amount} {tx['hash']}")


if len(sys.argv) > 1:
    main(sys.argv[1])
else:
    main(Wallet.from_mnemonic(os.environ["OMBRA_MNEMONIC"]).address)
