//! Lines that a person types, without holding up what else goes on.

use std::io::{self, BufRead as _};

use tokio::sync::mpsc;

/// Lines typed ahead of whoever takes them.
const LINES_HELD_MAX: usize = 16;

/// Standard input, of which there is one reader: a thread that begins with the first question for a
/// line and ends with the input or the process.
#[derive(Debug, Default)]
pub(super) struct Keyboard(Option<mpsc::Receiver<io::Result<String>>>);

impl Keyboard {
    /// The next line; none at the end of the input. No line is lost if nobody waits for the answer.
    pub(super) async fn line(&mut self) -> io::Result<Option<String>> {
        self.0.get_or_insert_with(lines).recv().await.transpose()
    }
}

fn lines() -> mpsc::Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::channel(LINES_HELD_MAX);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
