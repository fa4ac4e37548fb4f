"""Calls of agents for those who ask: payloads, results, and what a node says of a call checked.

Needs nothing but Python 3.9 and the package `agent_methods` beside it; only the module `ask`, which
sends and waits, uses `ombrachain`. docs/market.md and docs/protocol.md section 18 have the rules.
"""

from .abi import Method, methods
from .check import (
    CallUnfit,
    check_call,
    compute_call_id,
    compute_commitment,
    compute_result_hash,
    price_of,
)
from .election import draw_members, verify_election

__all__ = [
    "CallUnfit",
    "Method",
    "check_call",
    "compute_call_id",
    "compute_commitment",
    "compute_result_hash",
    "draw_members",
    "methods",
    "price_of",
    "verify_election",
]
