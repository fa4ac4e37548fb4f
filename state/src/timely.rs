//! Whether a proposal's timestamp fits the moment at which it came (docs/protocol.md section 6.2). From
//! v7 on; what a node finds here decides its vote, and never whether a block is valid that is decided.

use types::Params;

/// When a proposal was seen here, by this node's clock, in milliseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When its sealed head came.
    pub came_ms: u64,
    /// When its head had come and its round was open here: the same, unless it came early.
    pub open_ms: u64,
}

/// How a timestamp misses the moment at which its proposal came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Untimely {
    /// Its proposer's clock is ahead, or this node's is behind.
    #[error(
        "the timestamp is {timestamp}, expected at most {latest}: when it came, and precisionMs"
    )]
    Ahead {
        /// The timestamp.
        timestamp: u64,
        /// The greatest that would have been timely.
        latest: u64,
    },
    /// Its proposer's clock is behind, or this node's is ahead, or it was long on its way.
    #[error(
        "the timestamp is {timestamp}, expected at least {earliest}: when it came, less \
         precisionMs and the messageDelayMs of its round"
    )]
    Behind {
        /// The timestamp.
        timestamp: u64,
        /// The least that would have been timely.
        earliest: u64,
    },
}

/// `messageDelayMs` grows to this, a day, and no further.
const DELAY_MS_MAX: u64 = 86_400_000;

/// Parts of a millisecond in which the delay grows, so that a small one grows at all.
const PARTS: u64 = 1_000;

/// How long a proposal of a round may take to the others: `messageDelayMs`, a tenth longer with each
/// round, so that a set with slower messages than genesis expects agrees in some round. In whole
/// milliseconds, rounded down.
#[must_use]
pub fn message_delay_ms(params: &Params, round: u32) -> u64 {
    let most = DELAY_MS_MAX.saturating_mul(PARTS);
    let mut delay = params.message_delay_ms.saturating_mul(PARTS);
    for _ in 0..round {
        if delay >= most {
            break;
        }
        delay = delay.saturating_add(delay / 10);
    }
    delay.min(most) / PARTS
}

/// Whether a proposal of `round` with this timestamp is timely: at most `precisionMs` ahead of the
/// moment at which it came, and at most `precisionMs` and the round's delay behind the moment at which
/// it had come and its round was open.
///
/// # Errors
/// [`Untimely`] says which way it misses.
pub fn check_timely(
    timestamp: u64,
    round: u32,
    seen: Seen,
    params: &Params,
) -> Result<(), Untimely> {
    let latest = seen.came_ms.saturating_add(params.precision_ms);
    if timestamp > latest {
        return Err(Untimely::Ahead { timestamp, latest });
    }
    let tolerated = params.precision_ms.saturating_add(message_delay_ms(params, round));
    let earliest = seen.open_ms.saturating_sub(tolerated);
    if timestamp < earliest {
        return Err(Untimely::Behind { timestamp, earliest });
    }
    Ok(())
}

/// How long a proposer may put transactions into a block of the first round: a quarter of
/// `messageDelayMs`. The rest is for sending it.
#[must_use]
pub const fn build_time_ms(params: &Params) -> u64 {
    params.message_delay_ms / 4
}

/// The shortest time after which something may lapse: ten times what a proposer can move time by.
#[must_use]
pub const fn least_ttl_ms(params: &Params) -> u64 {
    params.precision_ms.saturating_add(params.message_delay_ms).saturating_mul(10)
}

#[cfg(test)]
mod tests {
    //! The bounds, to the millisecond.

    use super::*;

    const CAME: u64 = 1_700_000_000_000;

    fn at_once(came_ms: u64) -> Seen {
        Seen { came_ms, open_ms: came_ms }
    }

    fn check(timestamp: u64, round: u32, seen: Seen) -> Result<(), Untimely> {
        check_timely(timestamp, round, seen, &Params::default())
    }

    #[test]
    fn a_timestamp_is_timely_from_delay_and_precision_before_it_came_to_precision_after() {
        let seen = at_once(CAME);
        for timely in [CAME - 2_500, CAME, CAME + 500] {
            assert_eq!(check(timely, 0, seen), Ok(()), "{timely}");
        }
        let (late, early) = (CAME - 2_501, CAME + 501);
        let behind = Untimely::Behind { timestamp: late, earliest: CAME - 2_500 };
        assert_eq!(check(late, 0, seen), Err(behind));
        let ahead = Untimely::Ahead { timestamp: early, latest: CAME + 500 };
        assert_eq!(check(early, 0, seen), Err(ahead));
    }

    #[test]
    fn the_delay_grows_by_a_tenth_with_each_round_and_the_precision_does_not() {
        let delays = [0, 1, 2, 3, 4, 10].map(|round| message_delay_ms(&Params::default(), round));
        assert_eq!(delays, [2_000, 2_200, 2_420, 2_662, 2_928, 5_187]);
        let seen = at_once(CAME);
        assert_eq!(check(CAME - 2_700, 1, seen), Ok(()));
        assert!(check(CAME - 2_701, 1, seen).is_err());
        assert!(check(CAME + 501, 9, seen).is_err());
    }

    #[test]
    fn the_delay_of_a_millisecond_grows_too_and_none_beyond_a_day() {
        let params = |message_delay_ms| Params { message_delay_ms, ..Params::default() };
        assert_eq!(message_delay_ms(&params(1), 8), 2);
        for least in [1, 2_000, u64::MAX] {
            assert_eq!(message_delay_ms(&params(least), u32::MAX), 86_400_000);
        }
    }

    #[test]
    fn nothing_overflows_at_the_ends_of_time() {
        for (round, seen) in [(0, at_once(0)), (u32::MAX, at_once(u64::MAX))] {
            assert_eq!(check(seen.came_ms, round, seen), Ok(()));
        }
        assert!(check(u64::MAX, u32::MAX, at_once(0)).is_err());
        assert!(check(0, u32::MAX, at_once(u64::MAX)).is_err());
    }

    #[test]
    fn who_sends_early_gains_neither_time_before_the_round_nor_after_the_arrival() {
        let early = Seen { came_ms: CAME, open_ms: CAME + 10_000 };
        let behind = Untimely::Behind { timestamp: CAME, earliest: CAME + 7_500 };
        assert_eq!(check(CAME, 0, early), Err(behind));
        assert!(check(CAME + 8_000, 0, early).is_err(), "it was ahead when it came");
        let slightly = Seen { came_ms: CAME, open_ms: CAME + 2_500 };
        assert_eq!(check(CAME, 0, slightly), Ok(()));
    }
}
