//! What a program may try to do to the member that runs it.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::*;

#[test]
fn a_loop_without_end_takes_the_call_s_fuel_and_no_more() {
    let program = module("", "(loop $again (br $again)) unreachable");
    let executed = fails(&program, "the limit fuel of the call is reached");
    assert_eq!(executed.answer.usage, LIMITS.usage);
}

#[test]
fn a_loop_without_end_stops_when_the_member_has_no_more_time() {
    let program = module("", "(loop $again (br $again)) unreachable");
    let agent = agent("alone", "uint256", &[]);
    let until = Instant::now() + Duration::from_millis(50);
    let stop = Stop::new(CancellationToken::new(), Some(until));
    let member = member().with_program(&agent, &program);
    let executed = member.execute(&agent, &payload(&agent), fuelled(u64::MAX), stop);
    assert_eq!(executed.answer.outcome, Outcome::Unable);
    assert_eq!(executed.reason.as_deref(), Some("the time that this miner has for it is over"));
}

#[test]
fn memory_ends_at_sixty_four_mebibytes_for_everybody() {
    // 1,023 pages more are all, one more is refused with -1.
    let grow = |pages: u32, expected: i32| {
        format!(
            "(if (i32.ne (memory.grow (i32.const {pages})) (i32.const {expected})) (then unreachable))
             i64.const 32"
        )
    };
    let all = succeeds(&module("", &grow(1_023, 1)));
    let more = succeeds(&module("", &grow(1_024, -1)));
    assert!(all.answer.usage.fuel > more.answer.usage.fuel + 1_000_000, "what grows costs fuel");
    let reason = "the program is no module of wasm-1";
    fails(&with_memory(1_025, "", "i32.const 0", "i64.const 32"), reason);
    let begun = succeeds(&with_memory(1_024, "", "i32.const 0", "i64.const 32"));
    assert!(begun.answer.usage.fuel > 1_000_000, "what it begins with, too");
}

#[test]
fn calls_without_end_are_a_failure() {
    let deep = "(func $deep (param i64) (result i64) (call $deep (local.get 0)))";
    fails(&module(deep, "(call $deep (i64.const 1))"), "the program calls too deep");
    let locals = "(local i64)".repeat(1_000);
    let wide = format!("(func $deep (result i64) {locals} (call $deep))");
    fails(&module(&wide, "(call $deep)"), "the program calls too deep");
}

#[test]
fn a_program_that_gives_a_place_outside_of_its_memory_fails() {
    for place in ["i32.const -1", "i32.const 65536", "i32.const 65535"] {
        fails(&with_alloc("", place, "i64.const 32"), "alloc gives a place outside of the memory");
    }
    for result in ["i64.const -1", "i64.const 0x1_0000_0000_0000", "i64.const 0xffff_0000_0020"] {
        let executed = run(&module("", result));
        assert_ne!(executed.answer.outcome, Outcome::Success, "{result}");
    }
    fails(&module("", "i64.const 0xffff_0000_0020"), "the result is outside of the memory");
    fails(&module("", "i64.const 31"), "the program's result is none of the method's outputs");
    for (place, length) in [(-1, 4), (65_535, 2), (0, 65_537)] {
        let import = "(import \"ombra\" \"log\" (func $log (param i32 i32)))";
        let body = format!("(call $log (i32.const {place}) (i32.const {length})) i64.const 32");
        fails(&module(import, &body), "log is outside of the memory");
    }
}

#[test]
fn alloc_asks_nobody() {
    let import = "(import \"ombra\" \"context\" (func $context (result i64)))";
    let alloc = "(drop (call $context)) i32.const 4096";
    fails(&with_alloc(import, alloc, "i64.const 32"), "alloc asks the host");
    // Neither while the host answers something else.
    let twice = "(if (global.get $second) (then (drop (call $context))))
                 (global.set $second (i32.const 1)) i32.const 4096";
    let import = format!("{import} (global $second (mut i32) (i32.const 0))");
    let program = with_alloc(&import, twice, "(drop (call $context)) i64.const 32");
    fails(&program, "alloc asks the host");
}

#[test]
fn alloc_may_take_no_longer_than_everything_else() {
    let program = with_alloc("", "(loop $again (br $again)) unreachable", "i64.const 32");
    fails(&program, "the limit fuel of the call is reached");
}

#[test]
fn an_import_that_is_exported_as_handle_is_no_program() {
    let text = "(module (import \"ombra\" \"infer\" (func $infer (param i32 i32) (result i64)))
        (memory (export \"memory\") 1)
        (func (export \"alloc\") (param i32) (result i32) i32.const 0)
        (export \"handle\" (func $infer)))";
    fails(&wasm(text), "the program exports what it imports");
}

#[test]
fn logs_have_bounds() {
    let import = "(import \"ombra\" \"log\" (func $log (param i32 i32)))";
    let lines = |count: u32, bytes: u32| {
        repeated(count, &format!("(call $log (i32.const 8192) (i32.const {bytes}))"))
    };
    let work = succeeds(&module(import, &lines(1_000, 1_024))).work.expect("work");
    assert_eq!(work.as_json()["steps"].as_array().map(Vec::len), Some(1_000));
    fails(&module(import, &lines(1_001, 0)), "log: more than 1000 lines");
    fails(&module(import, &lines(1, 1_025)), "log: more than 1024 bytes");
    let broken = format!("{import} (data (i32.const 8192) \"\\ff\")");
    fails(&module(&broken, &lines(1, 1)), "log: no UTF-8");
}

#[test]
fn every_trap_has_its_reason() {
    let typed = "(type $none (func)) (table 2 funcref) (elem (i32.const 0) $other)
                 (func $other (param i32))";
    for (more, body, reason) in [
        ("", "unreachable", "the program gives up (unreachable)"),
        ("", "(i64.load (i32.const -1))", "the program reaches outside of its memory"),
        ("", "(i64.div_s (i64.const 1) (i64.const 0))", "the program divides by zero"),
        (
            "",
            "(i64.div_s (i64.const 0x8000000000000000) (i64.const -1))",
            "the program divides what has no quotient",
        ),
        ("", "(i64.trunc_f64_s (f64.const nan))", "the program converts what is no integer"),
        (
            typed,
            "(call_indirect (type $none) (i32.const 7)) i64.const 0",
            "the program reaches outside of its table",
        ),
        (
            typed,
            "(call_indirect (type $none) (i32.const 1)) i64.const 0",
            "the program calls a function that is none",
        ),
        (
            typed,
            "(call_indirect (type $none) (i32.const 0)) i64.const 0",
            "the program calls a function of another type",
        ),
    ] {
        fails(&module(more, body), reason);
    }
}
