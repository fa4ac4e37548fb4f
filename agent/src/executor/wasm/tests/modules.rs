//! What is a module of `wasm-1`, and what is none.

use super::*;
use crate::executor::check_program;

const REASON: &str = "the program is no module of wasm-1";

#[track_caller]
fn refused(program: &[u8], why: &str) {
    let error = check_program(program).expect_err(why).to_string();
    assert!(error.contains(why), "{error}");
    fails(program, REASON);
}

#[test]
fn what_is_no_module_is_refused() {
    refused(b"", "unexpected end");
    refused(b"\0asm", "unexpected end");
    refused(b"%PDF-1.4, not a module", "magic header");
    let mut cut = module("", "i64.const 32");
    cut.truncate(cut.len() - 3);
    refused(&cut, "unexpected end");
}

#[test]
fn a_module_exports_memory_alloc_and_handle_of_their_types() {
    let exports = |memory: &str, alloc: &str, handle: &str| {
        wasm(&format!(
            "(module (memory {memory} 1) (func {alloc} (param i32) (result i32) i32.const 0)
           (func {handle} (param i32 i32) (result i64) i64.const 32))"
        ))
    };
    let (memory, alloc, handle) =
        ("(export \"memory\")", "(export \"alloc\")", "(export \"handle\")");
    assert_eq!(run(&exports(memory, alloc, handle)).answer.outcome, Outcome::Success);
    refused(&exports("", alloc, handle), "no memory with the name memory");
    refused(&exports(memory, "", handle), "no function alloc of the type");
    refused(&exports(memory, alloc, ""), "no function handle of the type");
    refused(&exports(memory, handle, alloc), "no function alloc of the type");
}

#[test]
fn a_module_imports_only_what_is_offered() {
    for (import, why) in [
        ("(import \"env\" \"abort\" (func))", "nobody offers the import env.abort"),
        (
            "(import \"ombra\" \"clock\" (func (result i64)))",
            "nobody offers the import ombra.clock",
        ),
        ("(import \"ombra\" \"log\" (func (param i32)))", "the import ombra.log is"),
        ("(import \"ombra\" \"memory2\" (global i32))", "an import that is no function"),
        ("(import \"ombra\" \"table\" (table 1 funcref))", "an import that is no function"),
    ] {
        refused(&module(import, "i64.const 32"), why);
    }
}

#[test]
fn what_the_runtime_does_not_have_is_refused() {
    for (more, body, why) in [
        ("(func $start) (start $start)", "i64.const 32", "a start function"),
        ("(func (param externref))", "i64.const 32", "reference types"),
        ("(func (param v128))", "i64.const 32", "SIMD"),
        ("(func $f (result i64) i64.const 1)", "(return_call $f)", "tail calls"),
        ("(memory 1)", "i64.const 32", "multiple memories"),
        (
            "(global i32 (i32.add (i32.const 1) (i32.const 1)))",
            "i64.const 32",
            "constant expression",
        ),
        // The types of these blocks are among the types of functions.
        ("", "(i32.const 1) (block (param i32) drop) i64.const 32", "multi-value"),
        ("", "(i32.const 1) (loop (param i32) drop) i64.const 32", "multi-value"),
        ("", "(block (result i64 i64) unreachable) unreachable", "results of a type"),
        ("", "(drop (i32.atomic.load (i32.const 0))) i64.const 32", "threads"),
        ("(memory $m i64 1)", "i64.const 32", ""),
    ] {
        refused(&module(more, body), why);
    }
}

#[test]
fn parts_that_are_too_large_are_refused() {
    let many = |text: &str, count: usize| module(&text.repeat(count), "i64.const 32");
    refused(&many("(func)", 16_383), "16385 functions, expected at most 16384");
    refused(&many("(global i32 (i32.const 0))", 1_025), "1025 globals, expected at most 1024");
    refused(&many("(data \"\")", 4_097), "4097 segments, expected at most 4096");
    refused(&module("(table 16385 funcref)", "i64.const 32"), "16385 elements of a table");
    let locals = format!("(func {})", "(local i64)".repeat(1_025));
    refused(&module(&locals, "i64.const 32"), "1025 locals of a function");
    let values = format!("(func {})", "(param i64)".repeat(33));
    refused(&module(&values, "i64.const 32"), "33 parameters of a type");
    refused(&module("(func (result i64 i64) unreachable)", "i64.const 32"), "2 results of a type");
    let elements = format!("(func $f) (elem func {})", "$f ".repeat(8_192));
    let twice = format!("{elements} {}", elements.replace("(func $f)", "(elem func $f)"));
    refused(&module(&twice, "i64.const 32"), "16385 elements of the segments");
    let body = "(drop (i32.const 1))".repeat(100_000);
    refused(&module("", &format!("{body} i64.const 32")), "bytes of a function");
    let full = |bytes: usize| {
        let segment = format!("(data \"{}\")", "x".repeat(bytes));
        module(&segment, "i64.const 32")
    };
    refused(&full(4 * 1024 * 1024), "bytes, expected at most 4194304");
}

#[test]
fn a_segment_outside_of_memory_or_table_is_a_failure() {
    let reason = "the program cannot begin: a segment is outside of its memory or table";
    fails(&module("(data (i32.const 65535) \"ab\")", "i64.const 32"), reason);
    fails(&module("(table 1 funcref) (func $f) (elem (i32.const 1) $f)", "i64.const 32"), reason);
}

#[test]
fn a_call_of_no_method_and_arguments_of_another_are_a_failure() {
    let agent = agent("alone", "uint256", &[]);
    let member = member().with_program(&agent, &module("", "i64.const 32"));
    let selector = agent.metadata.methods[0].selector().0;
    for (payload, reason) in [
        (b"none".as_slice(), "the payload calls none of the agent's methods"),
        (b"".as_slice(), "the payload calls none of the agent's methods"),
        (selector.as_slice(), "the payload has no arguments of the method"),
    ] {
        let executed = member.execute(&agent, payload, LIMITS, never());
        assert_eq!(executed.reason.as_deref(), Some(reason));
        assert_eq!(executed.answer.outcome, Outcome::Failure);
    }
}
