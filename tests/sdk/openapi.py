"""The OpenAPI document is valid, and every answer is as it says: successes and refusals of every
path, with parameters that are right and wrong, and the events of streams.

usage: openapi.py URL FORK

The node must be a new `ombra dev`, on whose chain FORK is the latest fork: v6, v7 or v8. Prints one line of
JSON.
"""

import copy
import json
import sys
import time

import httpx
import market
from chain import NOBODY, NOWHERE, Account, connect, included, same
from jsonschema import Draft202012Validator
from ombrachain.crypto import sha256_hex
from openapi_spec_validator import OpenAPIV31SpecValidator
from websockets.sync.client import connect as open_socket

JSON = "application/json"
TOPIC = "cd" * 32
# Where a schema names the schemas that it is made of.
MADE_OF = ("allOf", "anyOf")
# Where something stands in a path that cannot be there, and what no endpoint takes in a query.
WRONG = ("wrong!", "-1", "%2F", "%00", "%F0%9F%98%80", "9" * 70)
WRONG_QUERIES = (
    "nothing=1",
    "limit=-1",
    "limit=x",
    "offset=x",
    "from=9&to=1",
    "cursor=%F0",
    "after=1",
)


class Document:
    """The document, and what does not fit it."""

    def __init__(self, url):
        self.url, self.http = url, httpx.Client(timeout=60)
        self.document = self.http.get(f"{url}/api/openapi.json").json()
        OpenAPIV31SpecValidator(self.document).validate()
        self.strict = closed(self.document)
        self.answered, self.statuses, self.types = set(), set(), set()

    def check(self, schema, value, what):
        """The value fits the schema, and has no member that the schema does not name."""
        whole = {**schema, "components": self.strict["components"]}
        errors = list(Draft202012Validator(whole).iter_errors(value))
        told = [f"{error.json_path}: {error.message[:300]}" for error in errors]
        assert not errors, f"{what}: {told} in {json.dumps(value)[:600]}"

    def ask(self, template, path, method="get", **request):
        """Asks, and checks the answer against what the document says for its status."""
        answer = self.http.request(method, self.url + path, **request)
        what = f"{method} {path}: {answer.status_code}"
        responses = self.strict["paths"][template][method]["responses"]
        response = responses.get(str(answer.status_code)) or responses["default"]
        if "$ref" in response:
            response = self.strict["components"]["responses"][response["$ref"].split("/")[-1]]
        [(kind, content)] = response["content"].items()
        same((what, kind), (what, answer.headers["content-type"].split(";")[0]))
        if kind == JSON:
            self.check(content["schema"], answer.json(), what)
            self.types |= types_in(answer.json())
        # The schema of refusals is for refusals only.
        same((what, answer.is_success), (what, str(answer.status_code) in responses))
        assert answer.status_code < 500, f"{what} {answer.text}"
        self.statuses.add(answer.status_code)
        if answer.is_success:
            self.answered.add(template)
        return answer


def types_in(value):
    """The types of the signed transactions in a value, at any depth."""
    inner = value.values() if isinstance(value, dict) else value
    found = set().union(*map(types_in, inner)) if isinstance(value, dict | list) else set()
    is_signed = isinstance(value, dict) and {"type", "hash", "signature"} <= value.keys()
    # Where it is no text, it is a schema in the document.
    return found | ({value["type"]} if is_signed and isinstance(value["type"], str) else set())


def closed(document):
    """The document with schemas that allow only the members that they name."""
    document = copy.deepcopy(document)
    schemas = document["components"]["schemas"]
    parts = {name: copy.deepcopy(schemas[name]) for name in parts_of(schemas)}
    document["paths"] = {path: closed_schema(it, parts) for path, it in document["paths"].items()}
    for name, schema in schemas.items():
        # Which type a transaction has is said where all types are named, so it is closed there.
        is_whole = name not in types_of(schemas)
        schemas[name] = closed_schema(schema, parts, is_whole)
    return document


def types_of(schemas):
    """The names of the schemas of types of transactions."""
    return set(schemas["Transaction"]["discriminator"]["mapping"])


def is_made_of_parts(schema):
    """Whether the schemas that it names stand beside further members."""
    return "allOf" in schema or ("anyOf" in schema and "properties" in schema)


def name_of(schema):
    return schema.get("$ref", "").split("/")[-1]


def parts_of(schemas):
    """The names of schemas that others are made of."""
    made = [schema for schema in schemas.values() if is_made_of_parts(schema)]
    parts = [part for schema in made for key in MADE_OF for part in schema.get(key, [])]
    return {name_of(part) for part in parts if "$ref" in part}


def closed_schema(schema, parts, is_whole=True):
    """The schema without further members. Parts of it stand in it open, so that they allow each
    other's."""
    if isinstance(schema, list):
        return [closed_schema(item, parts) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed_schema(value, parts) for key, value in schema.items()}
    for key in MADE_OF if is_made_of_parts(schema) else ():
        if key in made:
            made[key] = [parts.get(name_of(part), part) for part in made[key]]
    names_members = "properties" in schema or "discriminator" in schema or "allOf" in schema
    if is_whole and names_members and "additionalProperties" not in schema:
        made["unevaluatedProperties"] = False
    return made


def fill(client):
    """A chain with something of everything; answers a right value of each parameter."""
    alice, bob = Account(client, 0), Account(client, 1)
    paid = alice.pay(bob.address, 5, fee=1)
    content = b"bytes"
    blob = {"contentType": "text/plain", "contentHash": sha256_hex(content)}
    alice.send("SOCIAL_BLOB_INIT", blobId="b", **blob, totalBytes=5, totalChunks=1)
    alice.send("SOCIAL_BLOB_CHUNK", blobId="b", chunkIndex=0, chunkDataBase64="Ynl0ZXM=")
    alice.send("SOCIAL_BLOB_FINALIZE", blobId="b")
    bob.send("MINER_REGISTER", name="bob", capabilities=["chat"], modelInfo="a person")
    turn = {"conversationId": TOPIC, "role": "user", "content": "țară"}
    first = alice.send("CHAT_TURN", **turn, attachments=[{"type": "file", "blobId": "b"}])
    request = alice.request("What?", 10_000, TOPIC)
    run = request["agentRunId"]
    alice.send("AGENT_REQUEST", **request, promptBlobId="b", modelHint="any")
    linked = {"agentRunId": run, "parentTurnHash": first["hash"], "contentBlobId": "b"}
    alice.send("CHAT_TURN", **turn, **linked)
    bob.send("AGENT_CLAIM", **bob.claim(run))
    call = {"name": "t", "argsHash": TOPIC, "resultHash": TOPIC, "durationMs": 1, "ok": False}
    used = {"toolCalls": [call], "thoughtBlobId": "b", "outputBlobId": "b"}
    step = {"stepIndex": 0, "outputTokens": 3, "outputHash": TOPIC}
    bob.send("AGENT_STEP", agentRunId=run, **step, **used)
    amounts = {"minerReward": "3", "userRefund": "9897", "networkFee": "100"}
    end = {"agentRunId": run, "totalTokensOut": 3, "status": "completed", **amounts}
    finished = bob.send("AGENT_FINISH", **end, finalAnswerInline="42", finalAnswerBlobId="b")
    taken_back = alice.request("Or?", 1_000, TOPIC)
    alice.send("AGENT_REQUEST", **taken_back)
    alice.send("AGENT_CANCEL", agentRunId=taken_back["agentRunId"])
    # One run stays open, and one transaction waits.
    alice.send("AGENT_REQUEST", **alice.request("And?", 1_000, TOPIC))
    miner = client.miners.get_by_address(bob.address)["minerId"]
    alice.nonce += 1
    waiting = alice.hand_in("TRANSFER", to=NOBODY, amount="1", fee="0")
    names = [
        run,
        TOPIC,
        miner,
        paid["hash"],
        paid["blockHash"],
        bob.address,
        "1",
        "nothing",
        waiting["hash"],
    ]
    return {
        "address": [alice.address, "ox" + bob.address, NOBODY],
        "blobId": ["b"],
        "hash": [
            paid["blockHash"],
            paid["hash"],
            finished["hash"],
            first["hash"],
            waiting["hash"],
            NOWHERE,
        ],
        "id": [run, TOPIC, miner, NOWHERE],
        "index": ["0", "1", paid["blockHash"], "1000000"],
        "query": names,
        "status": ["completed", "pending", "failed"],
    }


QUERIES = {
    "limit": ("1", "100", "101", "501"),
    "offset": ("0", "2", "1000000"),
    "from": ("1", "3", "1000000"),
    "to": ("2", "300"),
    "cursor": ("", "AAAA"),
    "after": (NOBODY, "ox" + "00" * 20),
    "owner": (NOBODY,),
    "tag": ("text",),
    "executor": ("wasm-1",),
    "text": ("judge",),
    "deterministic": ("true", "false"),
    "version": ("1.0.0",),
    "agentId": (NOWHERE,),
    "requester": (NOBODY,),
    "member": (NOBODY,),
    "status": ("electing", "timedOut", "done"),
}


def walk(document, right):
    """Every path that is read, with every right value of its parameter and with wrong ones."""
    for template, item in document.document["paths"].items():
        if "get" not in item or template.endswith(("/events", "/ws")):
            continue
        params = item["get"].get("parameters", [])
        named = [it["name"] for it in params if it["in"] == "path"]
        for value in right[named[0]] if named else [""]:
            path = template.replace("{%s}" % "".join(named), value)
            document.ask(template, path)
            for name in (it["name"] for it in params if it["in"] == "query"):
                for query in QUERIES[name]:
                    document.ask(template, path, params={name: query})
        for value in WRONG if named else []:
            document.ask(template, template.replace("{%s}" % named[0], value))
        for query in WRONG_QUERIES:
            document.ask(template, f"{path}?{query}")


def submit(document, client):
    """Transactions that are taken, known, malformed and refused."""
    path = "/api/chain/tx"
    carol = Account(client, 2)
    good = carol.sign("TRANSFER", to=NOBODY, amount="1", fee="0")
    later = carol.sign("TRANSFER", to=NOBODY, amount="2", fee="0")
    unsigned = {key: value for key, value in later.items() if key not in ("hash", "signature")}
    bodies = [good, good, {"tx": unsigned, "signature": later["signature"]}, later]
    for body in bodies:
        same(200, document.ask(path, path, "post", json=body).status_code)
    included(client, later["hash"])
    stale = carol.draft("TRANSFER", to=NOBODY, amount="3", fee="0", nonce=0)
    poor = carol.draft("TRANSFER", to=NOBODY, amount=str(10**18), fee="0")
    bad = [
        stale,
        poor,
        {},
        [],
        7,
        "x",
        {**good, "amount": "2"},
        {"tx": good},
        {"tx": 1, "signature": 2},
    ]
    for body in bad:
        assert not document.ask(path, path, "post", json=body).is_success, body
    for text in (b"", b"{", b"\xff", b"[" * 1000, b'{"a":1,"a":2}', b" " * 20_000_000):
        assert not document.ask(path, path, "post", content=text).is_success, text
    # No account of the SDK is a validator's.
    key = {"candidateKey": carol.wallet.public_key, "power": 1}
    vote = carol.draft("VALIDATOR_VOTE", **key, expiresAt=int(time.time() * 1000) + 60_000)
    same(422, document.ask(path, path, "post", json=vote).status_code)
    wanted = document.strict["paths"][path]["post"]["requestBody"]["content"][JSON]["schema"]
    for body in (*bodies, vote):
        document.check(wanted, body, "a transaction as it is handed in")
    transactions_fit_their_type_only(document, good, vote)


def transactions_fit_their_type_only(document, transfer, vote):
    """What the node would call malformed does not fit, and a signer's own members do."""
    published = {"$ref": "#/components/schemas/Transaction"}
    schema = Draft202012Validator({**published, "components": document.document["components"]})
    for fits in (transfer, vote, {**transfer, "memo": [1]}, {**transfer, "to": "ox" + NOBODY}):
        assert schema.is_valid(fits), fits
    less = [{k: v for k, v in transfer.items() if k != name} for name in transfer]
    other = [{**transfer, "type": vote["type"]}, {**vote, "type": transfer["type"]}]
    wrong = [{**transfer, "amount": 5}, {**transfer, "nonce": 0.5}, {**transfer, "fee": None}]
    for spoilt in [*less, *other, *wrong, {**transfer, "type": "BURN"}]:
        assert not schema.is_valid(spoilt), spoilt


def events(document, client):
    """A block as the stream and as the WebSocket tell it."""
    schema = {"$ref": "#/components/schemas/BlockEvent"}
    headers = {"Last-Event-ID": "0"}
    count, height = 0, client.chain.get_height()["height"]
    with document.http.stream("GET", f"{document.url}/api/chain/events", headers=headers) as answer:
        kinds = document.strict["paths"]["/api/chain/events"]["get"]["responses"]["200"]["content"]
        same(list(kinds), [answer.headers["content-type"]])
        name = None
        for line in answer.iter_lines():
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            if line.startswith("data: ") and name == "block":
                document.check(schema, json.loads(line.removeprefix("data: ")), "an event")
                count += 1
                if count == height:
                    break
    with open_socket(document.url.replace("http", "ws") + "/api/ws") as socket:
        socket.send(json.dumps({"action": "subscribe", "channel": "blocks"}))
        same("subscribed", json.loads(socket.recv(60))["type"])
        Account(client, 3).pay(NOBODY, 1)
        block = json.loads(socket.recv(60))["data"]
        document.check({"$ref": "#/components/schemas/SocketBlock"}, block, "a block")
    refusal = document.ask("/api/chain/events", "/api/chain/events", headers={"Last-Event-ID": "x"})
    same(400, refusal.status_code)
    same(426, document.ask("/api/ws", "/api/ws").status_code)


def call_events(document, call):
    """What came of an open call up to its election, as its stream tells it to a client that comes back."""
    path, schema = "/api/calls/{id}/events", {"$ref": "#/components/schemas/CallEvent"}
    kinds, name, url = [], None, document.url + path.replace("{id}", call)
    with document.http.stream("GET", url, headers={"Last-Event-ID": "1"}) as answer:
        responses = document.strict["paths"][path]["get"]["responses"]
        same(list(responses["200"]["content"]), [answer.headers["content-type"]])
        for line in answer.iter_lines():
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            if line.startswith("data: ") and name == "call":
                event = json.loads(line.removeprefix("data: "))
                document.check(schema, event, "an event of a call")
                kinds.append(event["event"])
                if kinds[-1] == "elected":
                    break
    same(["created", "elected"], kinds)


def protect(client):
    """A run whose submitter refuses the reward, and the bond of its miner; answers the run."""
    alice, bob = Account(client, 0), Account(client, 1)
    bob.send("MINER_BOND", amount="300000")
    request = alice.request("Which?", 10_000, TOPIC)
    run = request["agentRunId"]
    asked = {"miners": [bob.address], "claimBond": "100000"}
    alice.send("AGENT_REQUEST", **request, **asked, maxTokensPerStep=100, refuseMs=600_000)
    bob.send("AGENT_CLAIM", **bob.claim(run))
    bob.send("AGENT_STEP", agentRunId=run, stepIndex=0, outputTokens=3, outputHash=TOPIC)
    amounts = {"minerReward": "3", "userRefund": "9897", "networkFee": "100"}
    end = {"agentRunId": run, "totalTokensOut": 3, "status": "completed", **amounts}
    bob.send("AGENT_FINISH", **end, finalAnswerInline="43")
    alice.send("AGENT_REFUSE", agentRunId=run)
    bob.send("MINER_UNBOND", amount="1000")
    return run


def empty():
    """A right value of each parameter on a chain where nothing is yet."""
    nothing = {name: [NOWHERE] for name in ("hash", "id")}
    some = {"address": [NOBODY], "blobId": ["b"], "index": ["0", "1"]}
    return {**nothing, **some, "query": ["0", NOBODY], "status": ["pending"]}


# Only validators send these, or their keys have signed something in them, and no account of the SDK is one.
VOTES = {"VALIDATOR_VOTE", "FORK_VOTE", "PARAM_VOTE", "EVIDENCE"}
LATER = {"MINER_BOND", "MINER_UNBOND", "AGENT_REFUSE"}
# On chains of before v8 there is no market.
MARKET = {"AGENT_REGISTER", "AGENT_RETIRE", "MINER_OFFER", "AGENT_CALL", "CALL_COMMIT", "CALL_REVEAL", "CALL_APPEAL"}
MARKET_PATHS = {"/api/agents/{id}", "/api/agents/{id}/versions", "/api/calls/{id}"}


def main(url, fork):
    client = connect(url)
    document = Document(url)
    walk(document, empty())
    protected = [] if fork == "v6" else [protect(client)]
    right = fill(client)
    right["id"] += protected
    if fork == "v8":
        agent, calls = market.play(client, lambda path: document.http.get(url + path))
        right["id"] += [agent, *calls]
        call_events(document, calls[-1])
    walk(document, right)
    submit(document, client)
    events(document, client)
    streams = {"/api/chain/events", "/api/mempool/events", "/api/calls/{id}/events", "/api/ws"}
    unanswered = set() if fork == "v8" else MARKET_PATHS
    same(set(document.document["paths"]) - streams - unanswered, document.answered)
    unseen = {"v6": VOTES | LATER | MARKET, "v7": VOTES | MARKET, "v8": VOTES}[fork]
    same(types_of(document.document["components"]["schemas"]) - unseen, document.types)
    print(json.dumps({"statuses": sorted(document.statuses)}))


main(*sys.argv[1:])
