//! Computes the golden digests of scores and answers on this processor, and says with which
//! instructions: `digests [MODEL FILE [all]]`. Without the file of the real model only those of a small
//! one with random weights, which is made on the spot; without `all` only the first of the real model.
//! `./run determinism` runs it on other processors.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use infer::{Grammars, Model, SMOLLM2_135M_MANIFEST, Session, Threads, scores_sha256};

use self::golden::{Golden, LOUD, OVERFLOWING, REAL, SMALL};

#[path = "../tests/golden/mod.rs"]
mod golden;
#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "what only tests use")]
mod support;

fn session(model: &Arc<Model>) -> Session {
    let threads = Threads::new(NonZeroUsize::MIN).unwrap();
    Session::new(Arc::clone(model), threads, NonZeroUsize::new(1_024).unwrap())
}

/// Prints a digest, and tells whether it is the golden one.
fn is_golden(name: &str, digest: &str, golden: &str) -> bool {
    let is_golden = digest == golden;
    println!("{name} {digest} {}", if is_golden { "ok" } else { "DIFFERS" });
    is_golden
}

/// Compares the digests of some questions.
fn compare(which: &str, model: &Arc<Model>, cases: &[Golden]) -> bool {
    let grammars = Grammars::new(Arc::clone(model)).unwrap();
    let mut session = session(model);
    let mut same = true;
    for (at, case) in cases.iter().enumerate() {
        let prompt = golden::prompt(model, case);
        let scores = golden::scores(&mut session, &prompt, case.steps);
        same &= is_golden(&format!("{which} {at} scores"), &scores, case.scores);
        let answers = golden::answers(&mut session, &grammars, &prompt, case.output_tokens_max);
        same &= is_golden(&format!("{which} {at} answers"), &answers, case.answers);
    }
    same
}

fn compare_overflowing() -> bool {
    let model = support::overflowing();
    let scores = session(&model).scores(golden::prompt(&model, &SMALL).tokens()).unwrap();
    is_golden("overflowing 0 scores", &const_hex::encode(scores_sha256(&scores)), OVERFLOWING)
}

fn main() -> ExitCode {
    let small = support::model();
    println!("instructions {}", session(&small).instructions());
    let mut same = compare("small", &small, &[SMALL]);
    same &= compare("loud", &support::loud(), &[LOUD]);
    same &= compare_overflowing();
    let mut arguments = std::env::args_os().skip(1);
    if let Some(path) = arguments.next() {
        let real = Arc::new(Model::open(Path::new(&path)).unwrap());
        assert_eq!(real.manifest().hash(), SMOLLM2_135M_MANIFEST, "another model");
        let cases = if arguments.next().is_some() { REAL.len() } else { 1 };
        same &= compare("real", &real, &REAL[..cases]);
    }
    if same { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
