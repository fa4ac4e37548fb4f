"""Keccak-256 as Solidity has it: the padding is not that of SHA3-256, which hashlib has."""

RATE = 136
ROUNDS = 24
LANE = (1 << 64) - 1


def rotate(lane, bits):
    """A lane of 64 bits, turned to the left."""
    bits %= 64
    return ((lane << bits) | (lane >> (64 - bits))) & LANE


def permute(lanes):
    """Keccak-f[1600] on 5 by 5 lanes (FIPS 202 section 3)."""
    register = 1
    for _ in range(ROUNDS):
        parity = [lanes[x][0] ^ lanes[x][1] ^ lanes[x][2] ^ lanes[x][3] ^ lanes[x][4] for x in range(5)]
        for x in range(5):
            mixed = parity[x - 1] ^ rotate(parity[(x + 1) % 5], 1)
            lanes[x] = [lane ^ mixed for lane in lanes[x]]
        x, y, moved = 1, 0, lanes[1][0]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            moved, lanes[x][y] = lanes[x][y], rotate(moved, (step + 1) * (step + 2) // 2)
        for y in range(5):
            row = [lanes[x][y] for x in range(5)]
            for x in range(5):
                lanes[x][y] = row[x] ^ (~row[(x + 1) % 5] & LANE & row[(x + 2) % 5])
        for bit in range(7):
            register = ((register << 1) ^ ((register >> 7) * 0x171)) & 0xFF
            if register & 2:
                lanes[0][0] ^= 1 << ((1 << bit) - 1)


def keccak256(data):
    """The 32 bytes of the hash."""
    padded = bytearray(data) + b"\x01" + bytes(RATE - 1 - len(data) % RATE)
    padded[-1] |= 0x80
    lanes = [[0] * 5 for _ in range(5)]
    for start in range(0, len(padded), RATE):
        for at in range(RATE // 8):
            begin = start + 8 * at
            lanes[at % 5][at // 5] ^= int.from_bytes(padded[begin : begin + 8], "little")
        permute(lanes)
    return b"".join(lanes[at][0].to_bytes(8, "little") for at in range(4))
