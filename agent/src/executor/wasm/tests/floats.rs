//! Numbers with a point are the same everywhere, and so is what is none.

use super::*;

/// The bits of what this computes, an `i64`.
fn bits(body: &str) -> u64 {
    let store = format!("(i64.store (i32.const 24) {body}) i64.const 32");
    let executed = run(&module("", &store));
    assert_eq!(executed.answer.outcome, Outcome::Success, "{body}: {:?}", executed.reason);
    let bytes: [u8; 8] = executed.result[24..].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes)
}

/// A NaN with its sign set and bits of its own, signalling or not.
const ODD: [u64; 2] = [0xfff8_0000_dead_beef, 0xfff0_0000_dead_beef];
const ODD_SHORT: [u32; 2] = [0xffc0_beef, 0xff80_beef];

#[test]
fn what_is_no_number_has_the_same_bits_wherever_it_comes_from() {
    let is_none = |made: &str| {
        let found = bits(&format!("(i64.reinterpret_f64 {made})"));
        assert_eq!(found, 0x7ff8_0000_0000_0000, "{made}");
    };
    let is_none_short = |made: &str| {
        let found = bits(&format!("(i64.extend_i32_u (i32.reinterpret_f32 {made}))"));
        assert_eq!(found, 0x7fc0_0000, "{made}");
    };
    let of_two = ["add", "sub", "mul", "div", "min", "max"];
    let of_one = ["sqrt", "ceil", "floor", "trunc", "nearest"];
    for odd in ODD {
        let nan = format!("(f64.reinterpret_i64 (i64.const {odd:#x}))");
        for op in of_two {
            is_none(&format!("(f64.{op} {nan} (f64.const 1))"));
            is_none(&format!("(f64.{op} (f64.const 1) {nan})"));
        }
        for op in of_one {
            is_none(&format!("(f64.{op} {nan})"));
        }
        is_none_short(&format!("(f32.demote_f64 {nan})"));
    }
    for odd in ODD_SHORT {
        let nan = format!("(f32.reinterpret_i32 (i32.const {odd:#x}))");
        for op in of_two {
            is_none_short(&format!("(f32.{op} {nan} (f32.const 1))"));
        }
        for op in of_one {
            is_none_short(&format!("(f32.{op} {nan})"));
        }
        is_none(&format!("(f64.promote_f32 {nan})"));
    }
    is_none("(f64.div (f64.const 0) (f64.const 0))");
    is_none("(f64.sqrt (f64.const -1))");
}

#[test]
fn what_only_moves_bits_keeps_them() {
    for odd in ODD {
        let nan = format!("(f64.reinterpret_i64 (i64.const {odd:#x}))");
        let sign = 1_u64 << 63;
        for (op, expected) in [
            (nan.clone(), odd),
            (format!("(f64.neg {nan})"), odd ^ sign),
            (format!("(f64.abs {nan})"), odd & !sign),
            (format!("(f64.copysign {nan} (f64.const 1))"), odd & !sign),
            (
                format!(
                    "(block (result f64) (f64.store (i32.const 0) {nan}) (f64.load (i32.const 0)))"
                ),
                odd,
            ),
        ] {
            assert_eq!(bits(&format!("(i64.reinterpret_f64 {op})")), expected, "{op}");
        }
    }
}

#[test]
fn conversions_that_do_not_fit_end_at_the_bounds() {
    assert_eq!(bits("(i64.trunc_sat_f64_s (f64.const nan))"), 0);
    assert_eq!(bits("(i64.trunc_sat_f64_u (f64.const 1e30))"), u64::MAX);
    assert_eq!(bits("(i64.trunc_sat_f64_s (f64.const -1e30))"), 1 << 63);
}
