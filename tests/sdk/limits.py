"""The public SDK at a node with a rate limit: what it is told, and what a key is good for.

usage: limits.py URL LIMIT

The node gives an address 5 requests at once and then 1 in a second, and the key `key` many; if
LIMIT is `none` it has no rate limit. Prints one line of JSON.
"""

import json
import sys

import httpx
from chain import answers, connect, same, wait_for
from ombrachain import OmbraApiError

AT_ONCE = 5


def refusal(client):
    """What the client is told when it asks too often. On a slow machine that is later."""

    def ask():
        try:
            assert client.chain.get_height()
        except OmbraApiError as error:
            return error

    return wait_for("the limit", ask)


def limited(url):
    # A 429 is final for the SDK: it does not ask again by itself.
    for client in (connect(url), connect(url, api_key="another")):
        seen = answers(client)
        error = refusal(client)
        same((429, "RATE_LIMITED"), (error.status, error.body["code"]))
        assert 0 < error.body["retryAfterMs"] <= 1_000, error.body
        same([429], [answer.status_code for answer in seen if not answer.is_success])

    def ask():
        answer = httpx.get(f"{url}/api/chain/height")
        return None if answer.is_success else answer

    answer = wait_for("the limit", ask)
    same((429, "1"), (answer.status_code, answer.headers["retry-after"]))
    limit = [answer.headers[f"x-ratelimit-{name}"] for name in ("limit", "remaining")]
    same([str(AT_ONCE), "0"], limit)
    assert 0 < int(answer.headers["x-ratelimit-reset"]) <= AT_ONCE, answer.headers

    known = connect(url, api_key="key")
    same(200, httpx.get(f"{url}/healthz").status_code)
    return many(known)


def many(client):
    """How many of many requests in a row are answered."""
    return sum(1 for _ in range(50) if client.chain.get_height())


def unlimited(url):
    """Everybody is answered, whatever key they send, and nobody is told of a limit."""
    counts = []
    for key in (None, "key"):
        client = connect(url, api_key=key)
        seen = answers(client)
        counts.append(many(client))
        told = {name for answer in seen for name in answer.headers if "ratelimit" in name}
        same(set(), told)
    return min(counts)


def main(url, limit):
    answered = unlimited(url) if limit == "none" else limited(url)
    print(json.dumps({"answered": answered}))


main(*sys.argv[1:])
