//! How fast the real model reads and speaks, in tokens for each second of the processor's time, and
//! what memory it takes. The variable `OMBRA_MODEL` names the model's file.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use infer::{
    Flow, Grammars, Limits, Model, Prompt, Role, Session, Threads, Turn, Verified, scores_sha256,
    verify,
};
use rustix::time::{ClockId, clock_gettime};

const TEXT: &str = "The quick brown fox jumps over the lazy dog, and nobody minds. ";
const OUTPUT_TOKENS: u32 = 96;
const ROUNDS: usize = 2;

/// Time of the processor that this process has used.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor's time and time on the wall of the round of `work` that used least.
fn measure(mut work: impl FnMut()) -> (f64, f64) {
    let mut least = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let (used, started) = (processor(), Instant::now());
        work();
        let round = ((processor() - used).as_secs_f64(), started.elapsed().as_secs_f64());
        if round.0 < least.0 {
            least = round;
        }
    }
    least
}

fn report(what: &str, tokens: usize, (processor, wall): (f64, f64)) {
    let rate = |seconds: f64| tokens as f64 / seconds;
    println!(
        "{what:<48} {tokens:>5} tokens  {:>7.1} /s of processor  {:>7.1} /s",
        rate(processor),
        rate(wall)
    );
}

fn memory(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name| status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    let [now, most] = ["VmRSS:", "VmHWM:"].map(|name| line(name).replace(['\t', ' '], ""));
    println!("{when:<48} {now} {most}");
}

fn session(model: &Arc<Model>, threads: usize) -> Session {
    let threads = Threads::new(threads.try_into().unwrap()).unwrap();
    Session::new(Arc::clone(model), threads, NonZeroUsize::new(2_048).unwrap())
}

/// A prompt of about this many tokens.
fn prompt(model: &Model, tokens: usize) -> Prompt {
    let each = model.tokenizer().encode(TEXT).len();
    let text = TEXT.repeat(tokens.div_ceil(each));
    model.prompt(&[Turn { role: Role::User, text: &text }])
}

fn main() {
    let Some(path) = std::env::var_os("OMBRA_MODEL") else {
        println!("OMBRA_MODEL is not set: nothing is measured");
        return;
    };
    let mut model = None;
    let (processor, wall) = measure(|| {
        drop(model.take());
        model = Some(Model::open(Path::new(&path)).unwrap());
    });
    println!("opening: {processor:.3} s of processor, {wall:.3} s");
    let model = Arc::new(model.unwrap());
    memory("memory with the model");

    for (tokens, chunk) in [(64, 64), (512, 1), (512, 64), (1_500, 64)] {
        let prompt = prompt(&model, tokens);
        let mut session = session(&model, 1);
        session.read_at_once(NonZeroUsize::new(chunk).unwrap());
        let time = measure(|| {
            session.forget();
            drop(session.scores(prompt.tokens()).unwrap());
        });
        report(&format!("reading, {chunk} at once"), prompt.tokens().len(), time);
    }
    for tokens in [16, 1_500] {
        speak(&model, tokens);
    }
    for tokens in [16, 500] {
        check(&model, tokens);
    }
    memory("memory after 1500 tokens");
    let (processor, _) = measure(|| drop(Grammars::new(Arc::clone(&model)).unwrap()));
    println!("grammars: {processor:.3} s of processor");
    memory("memory with grammars");
}

/// Measures what it costs to write an answer down, and to check it, after so many tokens.
fn check(model: &Arc<Model>, tokens: usize) {
    let prompt = prompt(model, tokens);
    let limits = Limits { output_tokens_max: OUTPUT_TOKENS };
    let mut session = session(model, 1);
    let scores = session.scores(prompt.tokens()).unwrap();
    let digests = measure(|| {
        for _ in 0..OUTPUT_TOKENS {
            std::hint::black_box(scores_sha256(std::hint::black_box(&scores)));
        }
    });
    report("digests", OUTPUT_TOKENS as usize, digests);
    for (what, is_recorded) in [("answering", false), ("answering, written down", true)] {
        let time = measure(|| {
            session.forget();
            if is_recorded {
                session.record(u64::MAX);
            }
            session.generate(&prompt, &limits, None, &mut |_| Flow::Continue).unwrap();
        });
        report(&format!("{what}, prompt of {tokens} read"), OUTPUT_TOKENS as usize, time);
    }
    let reading = session.recorded().remove(0);
    let time = measure(|| {
        session.forget();
        let verified = verify(&mut session, &reading, None, &mut |_| Flow::Continue).unwrap();
        assert_eq!(verified, Verified::Follows);
    });
    report(&format!("checking, prompt of {tokens} read"), OUTPUT_TOKENS as usize, time);
}

/// Measures answers after so many tokens, which are read before.
fn speak(model: &Arc<Model>, tokens: usize) {
    let prompt = prompt(model, tokens);
    let limits = Limits { output_tokens_max: OUTPUT_TOKENS };
    for (what, threads) in [("1 thread", 1), ("2 threads", 2), ("1 thread, plainly", 1)] {
        let mut session = session(model, threads);
        if what.ends_with("plainly") {
            session.compute_plainly();
        }
        drop(session.scores(prompt.tokens()).unwrap());
        let mut spoken = 0;
        let time = measure(|| {
            let answer = session.generate(&prompt, &limits, None, &mut |_| Flow::Continue);
            spoken = answer.unwrap().output_tokens;
        });
        report(&format!("speaking after {tokens}, {what}"), spoken as usize, time);
    }
}
