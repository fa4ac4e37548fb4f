"""Whether what a node says of a call fits together: ids, commitments, groups, and the bill.

docs/protocol.md section 18 has the rules. It is arithmetic over one answer of a node; that the
chain has this call is another question, which `ombra_getProof` answers.
"""

from hashlib import sha256

USAGE = ("inputTokens", "outputTokens", "fuel")
ANSWER = ("outcome", "resultHash", *USAGE, "receiptHash")
BILL = ("wages", "royaltyPaid", "conditionalPaid", "refund", "appellantPaid", "burned")
PER_TOKENS, PER_FUEL = 10**6, 10**9
NO_RESULT = sha256(b"").hexdigest()


class CallUnfit(ValueError):
    """Something of a call that does not fit: `field` names it."""

    def __init__(self, field, got, expected):
        super().__init__(f"{field}: the node says {got}, expected {expected}")
        self.field = field


def _same(field, got, expected):
    if str(got) != str(expected):
        raise CallUnfit(field, got, expected)


def compute_call_id(chain_id, sender, nonce):
    """The id of the call that an AGENT_CALL with this nonce makes."""
    return sha256(f"call|{chain_id}|{sender[-40:]}|{nonce}".encode()).hexdigest()


def compute_result_hash(coded):
    """SHA-256 of a payload or a result, given as hex with 0x."""
    return sha256(bytes.fromhex(coded[2:])).hexdigest()


def compute_commitment(by, salt, answer):
    """What hides an answer; `by` is the call's id, the round's index, and the member."""
    call_id, round_index, member = by
    said = [answer[name] for name in ANSWER]
    parts = ["commit", call_id, round_index, member[-40:], salt, *said]
    return sha256("|".join(str(part) for part in parts).encode()).hexdigest()


def price_of(prices, usage):
    """What an answer of this size costs, in micro."""
    metered = (
        ("inputTokens", "promptPerM", PER_TOKENS),
        ("outputTokens", "completionPerM", PER_TOKENS),
        ("fuel", "fuelPerG", PER_FUEL),
    )
    return int(prices["perCall"]) + sum(
        -(-int(usage[units]) * int(prices[price]) // per) for units, price, per in metered
    )


def check_call(call, tx=None):
    """Raises CallUnfit at the first thing that does not fit.

    `call` is as `ombra_getCall` tells it, with the member `salt` in each reveal; `tx` is the signed
    AGENT_CALL, if it is known: the record has to be of it.
    """
    if tx is not None:
        _check_request(call, tx)
    if "payload" in call:
        _same("payloadHash", call["payloadHash"], compute_result_hash(call["payload"]))
    _same("budget", call["budget"], price_of(call["prices"], call["limits"]))
    for index, record in enumerate(call["rounds"]):
        _check_reveals(call["callId"], index, record)
        _check_group(call, index, record)
    _check_answer(call)
    if call["settled"]:
        _check_bill(call)


def _check_request(call, tx):
    _same("callId", call["callId"], compute_call_id(tx["chainId"], tx["from"], tx["nonce"]))
    for name in (
        "callId",
        "agentId",
        "agentVersion",
        "consensus",
        "committeeSize",
        "maxFee",
        "timeoutMs",
    ):
        _same(name, call[name], tx[name])
    _same("threshold", call.get("threshold"), tx.get("threshold"))
    _same("requester", call["requester"], tx["from"][-40:])
    _same("appealable", call["appealable"], tx.get("appealable", False))
    _same("payloadHash", call["payloadHash"], compute_result_hash(tx["payload"]))
    for part in ("prices", "limits"):
        for name, value in tx[part].items():
            _same(f"{part}.{name}", call[part][name], value)


def _check_reveals(call_id, index, record):
    for member in record["members"]:
        reveal, field = member.get("reveal"), f"the commitment of {member['address']}"
        if reveal is None:
            continue
        opened = compute_commitment((call_id, index, member["address"]), reveal.get("salt"), reveal)
        _same(field, member.get("commitment", {}).get("hash"), opened)
        if reveal["outcome"] != "success":
            _same("resultHash", reveal["resultHash"], NO_RESULT)
        if "result" in reveal:
            _same("resultHash", reveal["resultHash"], compute_result_hash(reveal["result"]))


def _answers(record):
    reveals = (member.get("reveal") for member in record["members"])
    return [it for it in reveals if it is not None and it["outcome"] != "unable"]


def _is_equal(one, other):
    return all(one.get(name) == other.get(name) for name in ANSWER)


def _is_in(group, reveal):
    if "answer" in group:
        return _is_equal(group["answer"], reveal)
    return group["outcome"] == reveal["outcome"]


def _check_group(call, index, record):
    if "decidedAt" not in record:
        if "group" in record:
            raise CallUnfit(f"rounds[{index}].decidedAt", None, "a time, as a group decided")
        return
    answers = _answers(record)
    is_majority = call["consensus"] == "majority"
    needed = record["size"] // 2 + 1 if is_majority else call["threshold"]
    groups = [{"outcome": it["outcome"], "answer": it} for it in answers]
    if not is_majority:
        groups = [{"outcome": "success"}, {"outcome": "failure"}]
    sizes = ((group, sum(_is_in(group, it) for it in answers)) for group in groups)
    deciding = next(((group, size) for group, size in sizes if size >= needed), None)
    told, field = record.get("group"), f"rounds[{index}]"
    if deciding is None or told is None:
        _same(f"{field}.group", told, deciding)
        return
    group, size = deciding
    _same(f"{field}.group.outcome", told["outcome"], group["outcome"])
    if is_majority and not _is_equal(told["answer"], group["answer"]):
        raise CallUnfit(f"{field}.group.answer", told["answer"], group["answer"])
    _same(f"{field}.agreeing", record["agreeing"], size)


def _standing(call):
    """The last round that a group decided."""
    return next((it for it in reversed(call["rounds"]) if "group" in it), None)


def _check_answer(call):
    standing = _standing(call)
    if call["status"] not in ("electing", "committing", "revealing"):
        is_decided = any("decidedAt" in record for record in call["rounds"])
        if call["status"] != "unassigned" and not is_decided:
            raise CallUnfit("status", call["status"], "a round that was decided")
        outcome = standing["group"]["outcome"] if standing else None
        expected = {"success": "success", "failure": "failed"}.get(outcome, call["status"])
        _same("status", call["status"], expected)
        if outcome is None and call["status"] == "success":
            raise CallUnfit("status", "success", "a group that decided")
    answer = call.get("answer")
    if answer is not None:
        if standing is None or not _is_equal(answer, standing["group"].get("answer", {})):
            raise CallUnfit("answer", answer, "that of the group that decided")
        if "result" in answer:
            _same("answer.resultHash", answer["resultHash"], compute_result_hash(answer["result"]))
    for answer in call.get("answers", []):
        own = (
            it.get("reveal", {}) for it in standing["members"] if it["address"] == answer["member"]
        )
        if not any(_is_equal(it, answer) for it in own):
            raise CallUnfit(f"the answer of {answer['member']}", answer, "what it revealed")
        if "result" in answer:
            _same("answers.resultHash", answer["resultHash"], compute_result_hash(answer["result"]))


def _check_bill(call):
    members = [member for record in call["rounds"] for member in record["members"]]
    appeal = call.get("appeal", {"payment": 0, "deposit": 0})
    held = int(call["maxFee"]) + int(appeal["payment"]) + int(appeal["deposit"])
    went = sum(int(call[name]) for name in BILL)
    _same("the sum of the bill", went, held + int(call["penalties"]))
    if call["status"] == "unassigned":
        _same("refund", call["refund"], call["maxFee"])
        return
    _same("wages", call["wages"], sum(int(it["paid"]) for it in members))
    _same("penalties", call["penalties"], sum(int(it["penalty"]) for it in members))
    standing = _standing(call)
    group = standing["group"] if standing else None
    for member in members:
        _check_member(call, group, member)
    royalty = call["terms"]["royalty"] if call["status"] == "success" else 0
    _same("royaltyPaid", call["royaltyPaid"], royalty)
    if group is not None:
        agreeing = [int(it["bond"]) for it in members if _agrees(it, group)]
        _same("agreeing", call["agreeing"], len(agreeing))
        # The chain stops at the largest amount.
        _same("bondBehind", call["bondBehind"], min(sum(agreeing), 2**64 - 1))
    if "appeal" not in call and call["rounds"]:
        record = call["rounds"][0]
        fees = record["revealed"] if group else record["size"]
        burned = fees * int(call["terms"]["revealFee"]) + int(call["penalties"])
        _same("burned", call["burned"], burned)


def _agrees(member, group):
    reveal = member.get("reveal")
    return reveal is not None and reveal["outcome"] != "unable" and _is_in(group, reveal)


def _check_member(call, group, member):
    is_paid = group is not None and _agrees(member, group)
    _same(f"what {member['address']} got", member["paid"], _wage(call, group) if is_paid else 0)
    penalty = 0 if is_paid else _penalty(call, group, member)
    _same(f"what {member['address']} lost", member["penalty"], min(penalty, int(member["lock"])))


def _wage(call, group):
    per_call = int(call["prices"]["perCall"])
    if call["consensus"] == "threshold":
        return per_call
    wage = min(price_of(call["prices"], group["answer"]), int(call["budget"]))
    return min(wage, per_call) if group["outcome"] == "failure" else wage


def _penalty(call, group, member):
    terms = {name: int(value) for name, value in call["terms"].items()}
    is_second = len(call["rounds"]) > 1
    is_final = is_second and "group" in call["rounds"][1]
    # What silence costs after an appeal that came to nothing, where nobody loses for an answer.
    silence = terms["dissentPenalty"] // 2 if is_second and not is_final else None
    if "commitment" not in member:
        return terms["absencePenalty"] if silence is None else silence
    if "reveal" not in member:
        return terms["unrevealedPenalty"] if silence is None else silence
    if member["reveal"]["outcome"] == "unable":
        return silence or 0
    if is_final:
        return terms["dissentPenalty"]
    return terms["outsidePenalty"] if group is not None and not is_second else 0
