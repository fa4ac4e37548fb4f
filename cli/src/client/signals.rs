//! ctrl-C, which ends the wait of a command.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CliError;

/// The ctrl-Cs of this process, from now on. One that comes while nobody waits for it is not lost.
#[derive(Debug)]
pub(in crate::client) struct Interrupts(Signal);

impl Interrupts {
    /// Listens from now on. From here on ctrl-C does not end the process by itself, so one listener has to
    /// last as long as the command.
    pub(in crate::client) fn listen() -> Result<Self, CliError> {
        let listening = signal(SignalKind::interrupt());
        listening.map(Self).map_err(|source| CliError::file("listening for ctrl-C", source))
    }

    /// Ends at the next one.
    pub(in crate::client) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// What a future answers, or nothing if ctrl-C comes first: also while a call to the node runs.
    pub(in crate::client) async fn unless<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            () = self.next() => None,
            answer = work => Some(answer),
        }
    }
}
