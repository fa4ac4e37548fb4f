// Keccak-256 as Solidity has it: the padding is not that of SHA3-256.

const RATE = 136;
const ROUNDS = 24;

/** A lane of 64 bits, turned to the left. */
const rotate = (lane, bits) => {
  const by = BigInt(bits % 64);
  return BigInt.asUintN(64, (lane << by) | (lane >> (64n - by)));
};

/** The lane of column `x` and row `y` is at `x + 5 * y`. */
const at = (x, y) => (x % 5) + 5 * (y % 5);

/** The bits of round constants that a register of 8 bits gives (FIPS 202 section 3.2.5). */
function roundConstants() {
  let register = 1;
  return Array.from({ length: ROUNDS }, () => {
    let constant = 0n;
    for (let bit = 0; bit < 7; bit += 1) {
      register = ((register << 1) ^ ((register >> 7) * 0x171)) & 0xff;
      if (register & 2) constant |= 1n << BigInt(2 ** bit - 1);
    }
    return constant;
  });
}

const CONSTANTS = roundConstants();

/** Keccak-f[1600], in place. */
function permute(lanes) {
  for (const constant of CONSTANTS) {
    const parity = [0, 1, 2, 3, 4].map((x) =>
      [0, 1, 2, 3, 4].reduce((sum, y) => sum ^ lanes[at(x, y)], 0n),
    );
    lanes.forEach((lane, index) => {
      const x = index % 5;
      lanes[index] = lane ^ parity[(x + 4) % 5] ^ rotate(parity[(x + 1) % 5], 1);
    });
    let [x, y] = [1, 0];
    let moved = lanes[at(x, y)];
    for (let step = 0; step < 24; step += 1) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      const turned = rotate(moved, ((step + 1) * (step + 2)) / 2);
      moved = lanes[at(x, y)];
      lanes[at(x, y)] = turned;
    }
    const before = [...lanes];
    before.forEach((lane, index) => {
      const [column, row] = [index % 5, Math.floor(index / 5)];
      const next = BigInt.asUintN(64, ~before[at(column + 1, row)]);
      lanes[index] = lane ^ (next & before[at(column + 2, row)]);
    });
    lanes[0] ^= constant;
  }
}

/**
 * Keccak-256.
 * @param {Uint8Array} bytes
 * @returns {Uint8Array} 32 bytes
 */
export function keccak256(bytes) {
  const padded = new Uint8Array((Math.floor(bytes.length / RATE) + 1) * RATE);
  padded.set(bytes);
  padded[bytes.length] ^= 0x01;
  padded[padded.length - 1] ^= 0x80;
  const view = new DataView(padded.buffer);
  const lanes = new Array(25).fill(0n);
  for (let start = 0; start < padded.length; start += RATE) {
    for (let lane = 0; lane < RATE / 8; lane += 1) {
      lanes[lane] ^= view.getBigUint64(start + 8 * lane, true);
    }
    permute(lanes);
  }
  const hash = new DataView(new ArrayBuffer(32));
  for (let lane = 0; lane < 4; lane += 1) hash.setBigUint64(8 * lane, lanes[lane], true);
  return new Uint8Array(hash.buffer);
}
