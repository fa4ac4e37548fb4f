"""Sends OMBRA and waits until the payment is in a block.

usage: send.py ADDRESS OMBRA     for example: send.py 94bf…da3 1.5

OMBRA_MNEMONIC has the words of the wallet that pays, OMBRA_URL is the node.
"""

import os
import sys
import time
from decimal import Decimal

from ombrachain import MICRO_OMBRA, OmbraClient, OmbraNetworkError, Wallet, build_transfer_tx

client = OmbraClient(os.environ.get("OMBRA_URL", "http://127.0.0.1:8777"))
wallet = Wallet.from_mnemonic(os.environ["OMBRA_MNEMONIC"])


def submit(tx):
    """The node counts the same bytes once, so they are sent again after a lost answer."""
    for _ in range(20):
        try:
            return client.chain.submit_tx(tx)
        except OmbraNetworkError as error:
            print(f"{error}; trying again", file=sys.stderr)
    sys.exit(f"it is not known whether {tx['hash']} was taken")


def main(to, ombra):
    micro = Decimal(ombra) * MICRO_OMBRA
    if micro != int(micro) or micro < 0:
        sys.exit(f"{ombra} OMBRA: at most six decimals, and not negative")
    nonce = client.chain.get_account(wallet.address)["nonce"]
    fee = int(client.chain.get_fee_estimate()["medium"])
    tx = build_transfer_tx(wallet.address, to, int(micro), fee, nonce, wallet.private_key)
    print(f"{wallet.address} pays {int(micro)} micro to {to}, fee {fee}: {tx['hash']}", flush=True)
    submit(tx)
    while (sent := client.chain.get_tx(tx["hash"]))["txStatus"] == "pending":
        time.sleep(0.1)
    if sent["txStatus"] == "dropped":
        sys.exit(f"dropped: {sent['dropped']['message']}")
    print(f"in block {sent['blockIndex']}")


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
