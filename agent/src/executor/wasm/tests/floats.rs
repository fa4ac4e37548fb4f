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
    for odd in ODD {
        let nan = format!("(f64.reinterpret_i64 (i64.const {odd:#x}))");
        for op in ["add", "sub", "mul", "div", "min", "max"] {
            for (a, b) in [(nan.as_str(), "(f64.const 1)"), ("(f64.const 1)", nan.as_str())] {
                let body = format!("(i64.reinterpret_f64 (f64.{op} {a} {b}))");
                assert_eq!(bits(&body), 0x7ff8_0000_0000_0000, "{body}");
            }
        }
        for op in ["sqrt", "ceil", "floor", "trunc", "nearest"] {
            let body = format!("(i64.reinterpret_f64 (f64.{op} {nan}))");
            assert_eq!(bits(&body), 0x7ff8_0000_0000_0000, "{body}");
        }
        let demoted = format!("(i64.extend_i32_u (i32.reinterpret_f32 (f32.demote_f64 {nan})))");
        assert_eq!(bits(&demoted), 0x7fc0_0000);
    }
    for odd in ODD_SHORT {
        let nan = format!("(f32.reinterpret_i32 (i32.const {odd:#x}))");
        for op in ["add", "sub", "mul", "div", "min", "max"] {
            let body =
                format!("(i64.extend_i32_u (i32.reinterpret_f32 (f32.{op} {nan} (f32.const 1))))");
            assert_eq!(bits(&body), 0x7fc0_0000, "{body}");
        }
        for op in ["sqrt", "ceil", "floor", "trunc", "nearest"] {
            let body = format!("(i64.extend_i32_u (i32.reinterpret_f32 (f32.{op} {nan})))");
            assert_eq!(bits(&body), 0x7fc0_0000, "{body}");
        }
        let promoted = format!("(i64.reinterpret_f64 (f64.promote_f32 {nan}))");
        assert_eq!(bits(&promoted), 0x7ff8_0000_0000_0000);
    }
    for made in ["(f64.div (f64.const 0) (f64.const 0))", "(f64.sqrt (f64.const -1))"] {
        assert_eq!(bits(&format!("(i64.reinterpret_f64 {made})")), 0x7ff8_0000_0000_0000, "{made}");
    }
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
