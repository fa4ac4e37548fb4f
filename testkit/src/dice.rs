//! Numbers that look random and follow from a seed.

/// The generator of Lehmer.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from `from` on and below `below`.
    pub const fn roll(&mut self, from: u64, below: u64) -> u64 {
        self.0 = self.0 % 2_147_483_646 * 48_271 % 2_147_483_647 + 1;
        from + self.0 % (below - from)
    }

    /// Whether one of `sides` came up.
    pub const fn hits(&mut self, sides: u64) -> bool {
        self.roll(0, sides) == 0
    }
}
