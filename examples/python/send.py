"""Sends OMBRA and waits until the payment is in a block.

usage: send.py ADDRESS OMBRA [FEE]     for example: send.py 94bf…da3 1.5

FEE is in micro-OMBRA, for the block's proposer; 0 if not given. get_fee_estimate() tells what others
paid lately, but whoever pays a high fee can raise that, so no program should pay it unasked.

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


def main(to, ombra, fee="0"):
    micro = Decimal(ombra) * MICRO_OMBRA
    if micro != int(micro) or micro < 0:
        sys.exit(f"{ombra} OMBRA: at most six decimals, and not negative")
    if not (fee.isascii() and fee.isdigit()):
        sys.exit(f"fee {fee}: expected a whole number of micro-OMBRA")
    fee = int(fee)
    nonce = client.chain.get_account(wallet.address)["nonce"]
    tx = build_transfer_tx(wallet.address, to, int(micro), fee, nonce, wallet.private_key)
    print(f"{wallet.address} pays {int(micro)} micro to {to}, fee {fee}: {tx['hash']}", flush=True)
    submit(tx)
    while (sent := client.chain.get_tx(tx["hash"]))["txStatus"] == "pending":
        time.sleep(0.1)
    if sent["txStatus"] == "dropped":
        sys.exit(f"dropped: {sent['dropped']['message']}")
    print(f"in block {sent['blockIndex']}")


if len(sys.argv) not in (3, 4):
    sys.exit(__doc__)
main(*sys.argv[1:])
