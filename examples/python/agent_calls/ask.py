"""Calls on a chain: estimating, signing, sending, waiting, and checking what comes back.

The wallet and the signing are those of the public client `ombrachain`.
"""

import json
import time
import urllib.request
from collections import namedtuple
from hashlib import sha256

from agent_methods.kinds import members as ordered
from ombrachain.tx import _sign_and_finalize

from .abi import methods
from .check import CallUnfit, check_call, compute_call_id

ANSWER_SECONDS = 30
WAIT_MS = 60_000
OPEN = ("electing", "committing", "revealing")
# How many calls are sent at most for one question.
TRIES = 3
# How long to wait before each further try; the last also holds for all after it.
PAUSE_SECONDS = (2, 4)
DEFAULTS = {"committeeSize": 3, "timeoutMs": 60_000}
# What a question may say of the AGENT_CALL itself; the rest is estimated or computed.
TERMS = (
    "consensus",
    "committeeSize",
    "timeoutMs",
    "threshold",
    "appealable",
    "onResult",
    "conversationId",
    "prices",
    "limits",
    "maxFee",
)


class NodeError(RuntimeError):
    """What a node refuses: `code` is a fixed word, `data` what it tells beside it."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.data = error.get("data") or {}
        self.code = self.data.get("code")


class OtherChain(RuntimeError):
    """The node is on another chain than the caller expects; nothing was signed for it."""


class Ended(namedtuple("Ended", ("status", "values", "call"))):
    """How a call ended; `tries` is how many calls were sent, of which `call` is the last."""

    tries = 1


class Caller:
    """Somebody who calls agents with a wallet, at a node.

    `chain_id` and `genesis_hash` are the only chain for which the caller signs; a node on another one
    raises OtherChain. Without them it signs for the chain that the node names first, which may be any
    chain if the node is a stranger's.
    """

    def __init__(self, wallet, url, chain_id=None, genesis_hash=None):
        self.wallet, self.url = wallet, url
        # The node is asked once, so that no later answer changes the chain.
        told = self.rpc("ombra_chainInfo")
        for name, expected in (("chainId", chain_id), ("genesisHash", genesis_hash)):
            if expected is not None and told[name] != expected:
                raise OtherChain(
                    f"nothing was signed: expected {name} {expected}, the node has {told[name]}"
                )
        self.chain_id = told["chainId"]

    def rpc(self, method, *params, seconds=ANSWER_SECONDS):
        """The result of a method of the node."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            told = json.load(answer)
        if "error" in told:
            raise NodeError(told["error"])
        return told["result"]

    def nonce(self):
        return self.rpc("ombra_getAccount", self.wallet.address)["pendingNonce"]

    def send(self, kind, nonce=None, **fields):
        """Signs for this chain, sends, and waits for the block; answers the signed transaction."""
        nonce = self.nonce() if nonce is None else nonce
        whole = {**ordered(kind, fields, nonce, int(time.time() * 1000)), "chainId": self.chain_id}
        tx = _sign_and_finalize(
            {"type": kind, "from": self.wallet.address, **whole}, self.wallet.private_key
        )
        self.rpc("ombra_sendTransaction", tx)
        seen = self.rpc("ombra_waitForTransaction", tx["hash"])
        if seen["status"] != "included":
            raise RuntimeError(f"{kind} is {seen['status']}: {seen.get('dropped')}")
        return tx

    def agent(self, agent_id, version=None):
        """An agent and its methods, after its metadata was compared with its hash."""
        told = self.rpc("ombra_getAgent", agent_id, *([] if version is None else [version]))
        metadata = told["metadata"]
        hashed = sha256(metadata.encode()).hexdigest()
        if hashed != told["version"]["metadataHash"]:
            raise CallUnfit("metadataHash", told["version"]["metadataHash"], hashed)
        owned = f"agent|{told['owner'][-40:]}|{json.loads(metadata)['name']}"
        if sha256(owned.encode()).hexdigest() != agent_id:
            raise CallUnfit("agentId", agent_id, "that of owner and name")
        return told, methods(metadata)

    def prepare(self, agent_id, method, arguments=(), version=None, **terms):
        """The fields of an AGENT_CALL, and the method; the node estimates what is not given."""
        question, asked = self._question(agent_id, method, arguments, version, terms)
        found = self._estimate(question)
        _check_enough(found)
        return _complete(question, found), asked

    def _question(self, agent_id, method, arguments, version, terms):
        """The fields that no estimate changes, and the method."""
        for name in terms:
            if name not in TERMS:
                raise ValueError(f"a question has no {name}, but {', '.join(TERMS)}")
        told, known = self.agent(agent_id, version)
        asked = next((it for it in known if method in (it.name, it.signature)), None)
        if asked is None:
            raise ValueError(
                f"method is {method!r}, expected one of {[it.signature for it in known]}"
            )
        named = {"agentId": agent_id, "agentVersion": told["version"]["version"]}
        fields = {**DEFAULTS, **named, "payload": asked.encode(arguments), **terms}
        # Where answers cannot be compared, as many are collected as else have to agree.
        is_compared = told["version"]["deterministic"]
        fields.setdefault("consensus", "majority" if is_compared else "threshold")
        if fields["consensus"] == "threshold":
            fields.setdefault("threshold", fields["committeeSize"] // 2 + 1)
        return fields, asked

    def _estimate(self, question, is_raised=False):
        """What the node estimates now, None if the question says all of it.

        `is_raised` is for a `perCall` that is a quarter higher than what the node suggests.
        """
        if {"prices", "limits", "maxFee"} <= set(question):
            return None
        names = (
            "agentId",
            "committeeSize",
            "threshold",
            "payload",
            "appealable",
            "prices",
            "limits",
        )
        wish = {name: question[name] for name in names if name in question}
        wish["version"] = question["agentVersion"]
        found = self.rpc("ombra_estimateCall", wish)
        if is_raised and "prices" not in question:
            per_call = -(-int(found["prices"]["perCall"]) * 5 // 4)
            wish["prices"] = {**found["prices"], "perCall": str(per_call)}
            found = self.rpc("ombra_estimateCall", wish)
        return found

    def call_agent(self, agent_id, method, arguments=(), until="decided", tries=TRIES, **more):
        """Asks an agent and waits; answers the status, the values of a success, and the call.

        `more` are `version` and what of the AGENT_CALL shall be other than estimated. Raises
        CallUnfit if what the node says does not fit together.

        A call that ends `unassigned` is sent again after a pause, with what the node estimates
        then, until `tries` are made. From the third on, `perCall` is a quarter higher than
        estimated, unless `prices` are given; a given `maxFee` is not exceeded. The answer, or what
        is raised, has how many calls were sent as `tries`. What a signal handler raises, such as
        KeyboardInterrupt, ends the pause.
        """
        sent = []
        try:
            if type(tries) is not int or tries < 1:
                raise ValueError(f"tries is {tries!r}, expected a whole number, 1 or more")
            question, asked = self._question(
                agent_id, method, arguments, more.pop("version", None), more
            )
            ended = self._try(question, until, tries, sent)
            result = ended.get("answer", {}).get("result") if ended["status"] == "success" else None
            values = None if result is None else asked.decode_result(result)
        except BaseException as error:
            error.tries = len(sent)
            raise
        told = Ended(ended["status"], values, ended)
        told.tries = len(sent)
        return told

    def _try(self, question, until, tries, sent):
        """The last call of those sent, whose ids go into `sent`."""
        call = None
        for retry in range(tries):
            if retry > 0:
                time.sleep(PAUSE_SECONDS[min(retry, len(PAUSE_SECONDS)) - 1])
            found = self._estimate(question, is_raised=retry > 1)
            if retry == 0:
                _check_enough(found)
            elif not _is_affordable(question, found):
                break
            elif _is_too_few(found):
                # The election would fail again, and cost another inclusion fee.
                continue
            call = self._send_call(_complete(question, found), until, sent)
            if call["status"] != "unassigned":
                break
        return call

    def _send_call(self, fields, until, sent):
        nonce = self.nonce()
        fields["callId"] = compute_call_id(self.chain_id, self.wallet.address, nonce)
        sent.append(fields["callId"])
        tx = self.send("AGENT_CALL", nonce, **fields)
        call = self.wait_for_call(fields["callId"], until)
        check_call(call, tx)
        return call

    def wait_for_call(self, call_id, until="decided"):
        """A call with its salts, as soon as it is decided or settled."""
        while True:
            options = {"until": until, "timeoutMs": WAIT_MS}
            call = self.rpc("ombra_waitForCall", call_id, options, seconds=2 * WAIT_MS / 1000)
            if call["settled"] if until == "settled" else call["status"] not in OPEN:
                return self.with_salts(call)

    def with_salts(self, call):
        """Salts stand in the CALL_REVEALs, which the record names by their places."""
        for record in call["rounds"]:
            reveals = (it["reveal"] for it in record["members"] if "reveal" in it)
            for reveal in (it for it in reveals if "salt" not in it):
                block = self.rpc("ombra_getBlock", reveal["blockIndex"], False)
                sent = self.rpc("ombra_getTransaction", block["transactions"][reveal["position"]])
                reveal["salt"] = sent["tx"]["salt"]
        return call


def _complete(question, found):
    """The fields of an AGENT_CALL: those of the question, and what else was estimated."""
    if found is None:
        return dict(question)
    held = str(int(found["maxFee"]) + _conditional(question))
    return {"prices": found["prices"], "limits": found["limits"], "maxFee": held, **question}


def _conditional(question):
    return sum(int(it["amount"]) for it in question.get("onResult", []))


def _is_too_few(found):
    return found is not None and found["eligible"] < found["needed"]


def _check_enough(found):
    if _is_too_few(found):
        raise RuntimeError(
            f"{found['eligible']} miners work for this agent now, needed are {found['needed']}"
        )


def _is_affordable(question, found):
    """Whether the question allows to hold the least that the chain takes for such a call."""
    if found is None or "maxFee" not in question:
        return True
    return int(found["floor"]) + _conditional(question) <= int(question["maxFee"])
