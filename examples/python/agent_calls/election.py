"""The election of a call's members, drawn again (docs/protocol.md section 17.2)."""

from hashlib import sha256

NUMBER_BYTES = 16


def draw_members(call_id, round_index, randomness, size, candidates):
    """Draws the members of a round from (address, weight, is_full), in any order.

    The seat of a candidate that is full stays empty. Answers the seats as (address, is_empty) in
    the order of the draw, and the hash of the candidates.
    """
    left = sorted((address, int(weight), bool(is_full)) for address, weight, is_full in candidates)
    if len({address for address, _, _ in left}) != len(left) or any(it[1] <= 0 for it in left):
        raise ValueError("candidates: expected each address once, with a weight of more than 0")
    listed = "|".join(
        f"{address}|{weight}{'-' if is_full else ''}" for address, weight, is_full in left
    )
    seats = []
    while left and len(seats) < size:
        seed = f"elect|{call_id}|{round_index}|{randomness}|{len(seats)}"
        number = int.from_bytes(sha256(seed.encode()).digest()[:NUMBER_BYTES], "big")
        address, _, is_full = left.pop(_place(left, number))
        seats.append((address, is_full))
    return seats, sha256(listed.encode()).hexdigest()


def verify_election(told, randomness, candidates):
    """What is wrong about a round as `ombra_getCall` tells it, in words; None if nothing is.

    `told` is the call's id, the round's index, and the round.
    """
    call_id, round_index, record = told
    seats, hashed = draw_members(call_id, round_index, randomness, record["size"], candidates)
    if hashed != record["candidatesHash"]:
        return f"candidatesHash is {record['candidatesHash']}, and {hashed} of these candidates"
    drawn = [address for address, is_empty in seats if not is_empty]
    members = [member["address"] for member in record["members"]]
    return None if drawn == members else f"the members are {members}, and {drawn} were drawn"


def _place(left, number):
    """The first at which the running sum of weights exceeds the number's place in the whole sum."""
    place = number % sum(weight for _, weight, _ in left)
    for index, (_, weight, _) in enumerate(left):
        if place < weight:
            return index
        place -= weight
    raise AssertionError("the place is within the sum")
