"""Transactions of types that the public SDK has no builders for, made with its own functions, and
every endpoint that tells of them.

usage: agent.py URL

The node must be a new `ombra dev`. Prints one line of JSON.
"""

import base64
import json
import sys

import httpx
from chain import NOBODY, NOWHERE, Account, connect, refused, same
from ombrachain.crypto import sha256_hex

AGENT = "/api/agent/v6"
# The id is made of the first 256 UTF-16 code units; one emoji is cut in the middle here.
PROMPT = "x" * 255 + "😀 și restul\u2028"
ANSWER = "Răspuns \u2028\u2029\u0085 😀"
TOOL = {
    "name": "calc",
    "argsHash": "ab" * 32,
    "resultHash": "cd" * 32,
    "durationMs": 12,
    "ok": True,
}


def run_id(address, nonce, prompt):
    """ECMAScript's `slice(0, 256)`: a cut surrogate pair becomes U+FFFD."""
    units = prompt.encode("utf-16-le")[:512]
    return sha256_hex((address + str(nonce) + units.decode("utf-16-le", "replace")).encode())


def get(client, path, **params):
    return client._request("GET", path, params=params or None)


def upload(owner, name, content, kind):
    """A blob from its first announcement to its end; answers what it cost in chunks."""
    chunks = [content[at : at + 400_000] for at in range(0, len(content), 400_000)]
    sizes = {"totalBytes": len(content), "totalChunks": len(chunks)}
    hashed = {"contentHash": sha256_hex(content)}
    owner.send("SOCIAL_BLOB_INIT", blobId=name, contentType=kind, **sizes, **hashed)
    refused(404, "NOT_FOUND", get, owner.client, f"/api/blob/{name}")
    for index, chunk in enumerate(chunks):
        data = base64.b64encode(chunk).decode()
        owner.hand_in("SOCIAL_BLOB_CHUNK", blobId=name, chunkIndex=index, chunkDataBase64=data)
    owner.send("SOCIAL_BLOB_FINALIZE", blobId=name)
    return len(chunks)


def blobs(url, owner):
    """Bytes of two chunks come back as they were."""
    content = bytes(range(256)) * 1_600 + "țară 😀".encode()
    spent = 100 * upload(owner, "page_1", content, "text/html")
    answer = httpx.get(f"{url}/api/blob/page_1")
    same((200, content), (answer.status_code, answer.content))
    spent += 100 * upload(owner, "thought", "gând".encode(), "text/plain")
    return spent


def conversation(client, alice, bob, topic):
    """Turns in chain order, with what hangs on them."""
    say = {"conversationId": topic, "role": "user"}
    first = alice.send("CHAT_TURN", **say, content="Cât e 6 * 7?\u2028😀")
    attached = {"attachments": [{"type": "file", "blobId": "page_1"}]}
    second = bob.send(
        "CHAT_TURN",
        **{**say, "role": "tool"},
        content="",
        contentBlobId="thought",
        parentTurnHash=first["hash"],
        **attached,
    )
    told = get(client, f"{AGENT}/conversation/{topic}")
    same((topic, 2, None), (told["conversationId"], told["count"], told["nextCursor"]))
    same([first["hash"], second["hash"]], [turn["hash"] for turn in told["turns"]])
    same([first["content"], ""], [turn["content"] for turn in told["turns"]])
    same(
        ["thought", first["hash"]],
        [told["turns"][1][key] for key in ("contentBlobId", "parentTurnHash")],
    )
    same(attached["attachments"], told["turns"][1]["attachments"])

    page = get(client, f"{AGENT}/conversation/{topic}", limit=1)
    rest = get(client, f"{AGENT}/conversation/{topic}", limit=1, cursor=page["nextCursor"])
    same(told["turns"], page["turns"] + rest["turns"])
    same([], get(client, f"{AGENT}/conversation/{NOWHERE}")["turns"])
    return 100


def runs_of(client, where):
    return [run["agentRunId"] for run in get(client, f"{AGENT}/{where}")["runs"]]


def whole_run(client, alice, bob, topic):
    """Request, claim, two steps, end: each stage as the endpoints tell it."""
    run = run_id(alice.address, alice.nonce, PROMPT)
    request = {**alice.request(PROMPT, 1_000_000, topic), "agentRunId": run}
    request |= {"toolsWhitelist": ["calc", "web"], "modelHint": "any"}
    asked = alice.send("AGENT_REQUEST", **request)
    same([run], runs_of(client, "by-status/pending"))
    same("1000000", client.chain.get_account(alice.address)["escrowed"])

    bob.send("MINER_REGISTER", name="bob", capabilities=["chat"], modelInfo="a person")
    claimed = bob.send("AGENT_CLAIM", **bob.claim(run))
    same(([run], []), (runs_of(client, "by-status/claimed"), runs_of(client, "by-status/pending")))

    step = {"agentRunId": run, "outputTokens": 2_000, "outputHash": sha256_hex(b"one")}
    steps = [bob.send("AGENT_STEP", stepIndex=0, **step, toolCalls=[TOOL])]
    steps.append(bob.send("AGENT_STEP", stepIndex=2, **step, thoughtBlobId="thought"))
    told = get(client, f"{AGENT}/run/{run}/steps")
    same((run, 2), (told["agentRunId"], told["count"]))
    same([(0, 2_000), (2, 2_000)], [(it["stepIndex"], it["outputTokens"]) for it in told["steps"]])
    same([TOOL], told["steps"][0]["toolCalls"])
    same("thought", told["steps"][1]["thoughtBlobId"])
    same([tx["hash"] for tx in steps], [it["tx"] for it in told["steps"]])
    same([run], runs_of(client, "by-status/running"))

    amounts = {"minerReward": "4000", "userRefund": "995800", "networkFee": "200"}
    end = {"agentRunId": run, "totalTokensOut": 4_000, "status": "completed", **amounts}
    greedy = bob.draft("AGENT_FINISH", **{**end, "minerReward": "4001", "userRefund": "995799"})
    body = refused(422, "SETTLEMENT_MISMATCH", client.chain.submit_tx, greedy)
    same("4000", body["minerReward"])
    finished = bob.send("AGENT_FINISH", **end, finalAnswerInline=ANSWER)
    # The signed object has a status of its own.
    same(("completed", "included"), (finished["status"], finished["txStatus"]))

    record = get(client, f"{AGENT}/run/{run}")
    same(amounts, {key: record[key] for key in amounts})
    same((PROMPT, ANSWER), (record["prompt"], record["finalAnswerInline"]))
    same(
        ("completed", 2, 4_000),
        tuple(record[key] for key in ("status", "stepCount", "totalTokensOut")),
    )
    same(
        [tx["hash"] for tx in (asked, claimed, finished)],
        [record[key] for key in ("requestTx", "claimTx", "finishTx")],
    )
    whose = (f"by-submitter/{alice.address}", f"by-miner/{bob.address}", "by-status/completed")
    for where in whose:
        same([run], runs_of(client, where))
    for where in (f"by-submitter/{NOBODY}", f"by-miner/{NOBODY}", "by-status/failed"):
        same([], runs_of(client, where))
    same("0", client.chain.get_account(alice.address)["escrowed"])
    same("4000", client.chain.get_stats()["recentRewards"])
    entry = client.miners.get_by_address(bob.address)
    same((1, 1, "4000"), tuple(entry[key] for key in ("runsClaimed", "runsCompleted", "earnings")))
    turn = {"conversationId": topic, "role": "assistant", "content": ANSWER, "agentRunId": run}
    bob.send("CHAT_TURN", **turn)
    same("miner", get(client, f"{AGENT}/conversation/{topic}")["turns"][-1]["relation"])
    return run


def taken_back(client, alice, done):
    """AGENT_CANCEL gives the escrow back."""
    request = alice.request("Another?", 500)
    run = request["agentRunId"]
    alice.send("AGENT_REQUEST", **request)
    before = int(client.wallet.get_balance(alice.address)["balance"])
    alice.send("AGENT_CANCEL", agentRunId=run)
    same(before + 500, int(client.wallet.get_balance(alice.address)["balance"]))
    same([run], runs_of(client, "by-status/cancelled"))
    same([run, done], runs_of(client, f"by-submitter/{alice.address}"))
    page = get(client, f"{AGENT}/by-submitter/{alice.address}", limit=1)
    older = {"limit": 1, "cursor": page["nextCursor"]}
    same(
        done, get(client, f"{AGENT}/by-submitter/{alice.address}", **older)["runs"][0]["agentRunId"]
    )


def main(url):
    client = connect(url)
    alice, bob = Account(client, 0), Account(client, 1)
    topic = sha256_hex(f"{alice.address}|1|".encode())
    burned = blobs(url, alice)
    # Two turns before the run, one after it, and the fees of two steps.
    burned += 2 * conversation(client, alice, bob, topic)
    done = whole_run(client, alice, bob, topic)
    taken_back(client, alice, done)
    same(str(burned + 100 + 200), client.tokenomics.get_supply()["burned"])
    print(json.dumps({"nonces": [alice.nonce, bob.nonce]}))


main(sys.argv[1])
