"""Runs on a chain through the public client `ombrachain`: asking, storing, waiting, reading.

The other modules of this package need no client.
"""

import base64
import time
import urllib.error
import urllib.request

from ombrachain.crypto import sha256_hex
from ombrachain.tx import _sign_and_finalize

from .kinds import members
from .protection import protection

CHUNK_BYTES = 400_000
POLL_SECONDS = 0.5


class Runs:
    """The runs that a wallet pays for."""

    def __init__(self, client, wallet, url):
        self.client, self.wallet, self.url = client, wallet, url

    def nonce(self):
        return self.client.chain.get_account(self.wallet.address)["nonce"]

    def send(self, kind, nonce=None, **fields):
        """Signs, submits, and waits for the block."""
        nonce = self.nonce() if nonce is None else nonce
        fields = members(kind, fields, nonce, int(time.time() * 1000))
        tx = {"type": kind, "from": self.wallet.address, **fields}
        sent = self.client.chain.submit_tx(_sign_and_finalize(tx, self.wallet.private_key))
        while (told := self.client.chain.get_tx(sent["hash"]))["txStatus"] == "pending":
            time.sleep(POLL_SECONDS / 5)
        if told["txStatus"] == "dropped":
            raise RuntimeError(f"{kind} was dropped: {told['dropped']['message']}")

    def new_conversation(self):
        return sha256_hex(f"{self.wallet.address}|{int(time.time() * 1000)}|".encode())

    def ask(self, written, conversation, max_fee, max_steps):
        """Asks for what `write_request` gave, protected from v7 on; answers the settled record."""
        # The first 256 UTF-16 code units, where a cut pair becomes U+FFFD.
        begin = written.prompt.encode("utf-16-le")[:512].decode("utf-16-le", "replace")
        blob = {"promptBlobId": self.store(written.blob)} if written.blob else {}
        nonce = self.nonce()
        run = sha256_hex(f"{self.wallet.address}{nonce}{begin}".encode())
        what = {"agentRunId": run, "conversationId": conversation, "prompt": written.prompt}
        what = {**what, "toolsWhitelist": [], "maxFee": str(max_fee), "maxSteps": max_steps}
        guard = protection(self.url, max_fee)
        self.send("AGENT_REQUEST", nonce, **what, **blob, **guard)
        while (told := self.record(run))["status"] in ("pending", "claimed", "running"):
            time.sleep(POLL_SECONDS)
        return told

    def record(self, run):
        return self.client._request("GET", f"/api/agent/v6/run/{run}")

    def store(self, text):
        """A text as a blob, whose id is its hash; one that is there is not paid for again."""
        content = text.encode()
        name = sha256_hex(content)
        if self.fetch(name) == content:
            return name
        chunks = [content[at : at + CHUNK_BYTES] for at in range(0, len(content), CHUNK_BYTES)]
        size = {"totalBytes": len(content), "totalChunks": len(chunks), "contentHash": name}
        kind = "text/plain; charset=utf-8"
        self.send("SOCIAL_BLOB_INIT", blobId=name, contentType=kind, **size)
        for index, chunk in enumerate(chunks):
            coded = base64.b64encode(chunk).decode()
            self.send("SOCIAL_BLOB_CHUNK", blobId=name, chunkIndex=index, chunkDataBase64=coded)
        self.send("SOCIAL_BLOB_FINALIZE", blobId=name)
        return name

    def fetch(self, name):
        """The bytes of a blob; nothing if there is none."""
        try:
            with urllib.request.urlopen(f"{self.url}/api/blob/{name}", timeout=30) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def answer(self, record):
        """The final answer of a settled run."""
        if record.get("finalAnswerInline") is not None:
            return record["finalAnswerInline"]
        blob = record.get("finalAnswerBlobId")
        content = self.fetch(blob) if blob else None
        if content is None:
            raise RuntimeError(f"the run ended as {record['status']}, without an answer")
        return content.decode()
