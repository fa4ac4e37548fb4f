"""Signs a TRANSFER and a MINER_REGISTER with the public SDK and sends them through JSON-RPC.

usage: check.py URL

The node's chain must fund development account 0. Prints one line of JSON.
"""

import json
import sys
import urllib.request

from ombrachain import Wallet
from ombrachain.tx import build_miner_register_tx, build_transfer_tx

GOLDEN = "abandon " * 11 + "about"
DEVELOPMENT = "test " * 11 + "junk"


def call(url, method, *params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    request = urllib.request.Request(url, body.encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        answer = json.load(response)
    if "error" in answer:
        raise SystemExit(f"{method}: {answer['error']}")
    return answer["result"]


def main(url):
    golden = Wallet.from_mnemonic(GOLDEN)
    wallet = Wallet.from_mnemonic(DEVELOPMENT)
    transfer = build_transfer_tx(
        from_addr=wallet.address,
        to=golden.address,
        amount=1500000,
        fee=10,
        nonce=0,
        private_key=wallet.private_key,
    )
    register = build_miner_register_tx(
        from_addr=wallet.address,
        name="minerul meu țară 😀",
        capabilities=["chat"],
        model_info="ollama:llama3.3:70b",
        nonce=1,
        private_key=wallet.private_key,
    )
    statuses = []
    for tx in (transfer, register):
        sent = call(url, "ombra_sendTransaction", tx)
        assert sent["hash"] == tx["hash"], sent
        statuses.append(call(url, "ombra_waitForTransaction", tx["hash"])["status"])
    print(
        json.dumps(
            {
                "golden": golden.address,
                "sender": wallet.address,
                "statuses": statuses,
                "balance": call(url, "ombra_getAccount", golden.address)["balance"],
                "miner": call(url, "ombra_getMiner", wallet.address)["name"],
            }
        )
    )


main(sys.argv[1])
