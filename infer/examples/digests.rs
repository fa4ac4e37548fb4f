//! Computes the golden digests of scores and answers on this processor, and says with which
//! instructions: `digests [MODEL FILE [all]]`. Without the file of the real model only those of a small
//! one with random weights, which is made on the spot; without `all` only the first of the real model.
//! `./run determinism` runs it on other processors.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use infer::{Grammars, Model, SMOLLM2_135M_MANIFEST, Session, Threads};

use self::golden::{Golden, REAL, SMALL};

#[path = "../tests/golden/mod.rs"]
mod golden;
#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "what only tests use")]
mod support;

fn session(model: &Arc<Model>) -> Session {
    let threads = Threads::new(NonZeroUsize::MIN).unwrap();
    Session::new(Arc::clone(model), threads, NonZeroUsize::new(1_024).unwrap())
}

/// Prints the digests of some questions, and tells whether they are the golden ones.
fn compare(which: &str, model: &Arc<Model>, cases: &[Golden]) -> bool {
    let grammars = Grammars::new(Arc::clone(model)).unwrap();
    let mut session = session(model);
    let mut same = true;
    for (at, case) in cases.iter().enumerate() {
        let prompt = golden::prompt(model, case);
        let scores = golden::scores(&mut session, &prompt, case.steps);
        let answers = golden::answers(&mut session, &grammars, &prompt, case.output_tokens_max);
        let found = [("scores", scores, case.scores), ("answers", answers, case.answers)];
        for (what, digest, expected) in found {
            let verdict = if digest == expected { "ok" } else { "DIFFERS" };
            println!("{which} {at} {what} {digest} {verdict}");
            same &= digest == expected;
        }
    }
    same
}

fn main() -> ExitCode {
    let small = support::model();
    println!("instructions {}", session(&small).instructions());
    let mut same = compare("small", &small, &[SMALL]);
    let mut arguments = std::env::args_os().skip(1);
    if let Some(path) = arguments.next() {
        let real = Arc::new(Model::open(Path::new(&path)).unwrap());
        assert_eq!(real.manifest().hash(), SMOLLM2_135M_MANIFEST, "another model");
        let cases = if arguments.next().is_some() { REAL.len() } else { 1 };
        same &= compare("real", &real, &REAL[..cases]);
    }
    if same { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
