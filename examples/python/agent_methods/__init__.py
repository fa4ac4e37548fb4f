"""The agent methods for those who ask: envelopes, answers, and calls of their own functions.

Needs nothing but Python 3.9. docs/agent-methods.md has the rules.
"""

from .abi import Function, declare, decode_call
from .answers import Answer, Call, read_answer, resume
from .faults import FieldError
from .keccak import keccak256
from .requests import (
    Request,
    infer_chat,
    infer_messages,
    infer_number,
    infer_string,
    infer_tools_chat,
    read_request,
    request,
    tool_result,
    write_request,
)

__all__ = [
    "Answer",
    "Call",
    "FieldError",
    "Function",
    "Request",
    "declare",
    "decode_call",
    "infer_chat",
    "infer_messages",
    "infer_number",
    "infer_string",
    "infer_tools_chat",
    "keccak256",
    "read_answer",
    "read_request",
    "request",
    "resume",
    "tool_result",
    "write_request",
]
