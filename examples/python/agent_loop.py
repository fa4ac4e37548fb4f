"""An agent whose tools are functions of this program: a model on the chain says which to call.

usage: agent_loop.py PROMPT [SPEND [ROUNDS]]     SPEND in micro-OMBRA for all rounds, 100000

OMBRA_MNEMONIC has the words of the wallet that pays, OMBRA_URL is the node.
"""

import os
import sys

from agent_methods import infer_tools_chat, read_answer, resume, write_request
from agent_methods.chain import Runs
from ombrachain import OmbraClient, Wallet

MAX_FEE, MAX_STEPS = 20000, 8
STOCK = {"apples": 12, "pears": 0}


def stock_of(item):
    return str(STOCK.get(item, f"there is no {item}"))


def reserve(item, count):
    if STOCK.get(item, 0) < int(count):
        return f"error: not so many {item}"
    STOCK[item] -= int(count)
    return f"{count} {item} put aside, {STOCK[item]} left"


FUNCTIONS = {"stock_of": stock_of, "reserve": reserve}
TOOLS = [
    ("stock_of(string item)", "How many of an item are in the shop."),
    ("reserve(string item, uint256 count)", "Puts so many of an item aside for the customer."),
]


def main(prompt, spend="100000", rounds="5"):
    url, spent = os.environ.get("OMBRA_URL", "http://127.0.0.1:8777"), 0
    runs = Runs(OmbraClient(url), Wallet.from_mnemonic(os.environ["OMBRA_MNEMONIC"]), url)
    conversation, asked = runs.new_conversation(), infer_tools_chat([("user", prompt)], TOOLS)
    for number in range(1, int(rounds) + 1):
        if spent + MAX_FEE > int(spend):
            sys.exit(f"{spent} micro are spent; another round could cost more than {spend}")
        ended = runs.ask(write_request(asked), conversation, MAX_FEE, MAX_STEPS)
        spent += int(ended["maxFee"]) - int(ended["userRefund"])
        answer = read_answer(runs.answer(ended), asked)
        print(f"round {number}: {answer.finish_reason}, {spent} micro so far", flush=True)
        if answer.finish_reason == "error":
            sys.exit(answer.response)
        if answer.finish_reason != "tool_calls":
            return print(answer.response)
        results = {call.id: FUNCTIONS[call.name](**call.arguments) for call in answer.calls}
        for call in answer.calls:
            print(f"  {call.name}({call.arguments}): {results[call.id]}", flush=True)
        asked = resume(asked, answer, results)
    sys.exit(f"no answer after {rounds} rounds; {spent} micro are spent")


main(*sys.argv[1:4])
