//! The program of an MCP server: in a process group of its own, with an environment of its own, and
//! gone for certain when it is to be gone.

use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::ServerConfig;
use crate::tools::sandbox::Wrapper;

/// Where programs are looked for, unless the operator says otherwise.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How long a program may take to leave after its input has ended …
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);
/// … and then after SIGTERM. Then comes SIGKILL.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the system may take to bury what was killed.
const REAP_TIMEOUT: Duration = Duration::from_secs(2);
/// Lines of a program's error output that are logged …
const LOGGED_LINES_MAX: usize = 50;
/// … each up to so many bytes.
const LOGGED_LINE_BYTES_MAX: u64 = 500;

/// A program that runs.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// The process, which is also the group.
    id: Pid,
    /// Cancelled once the process has ended. It is not reaped then: as long as it is not, nobody else
    /// can have its number, and the group can be killed.
    ended: CancellationToken,
    errors: JoinHandle<()>,
    is_reaped: bool,
}

/// What a process is spoken to through.
pub(super) type Pipes = (ChildStdout, ChildStdin);

impl Process {
    /// Starts the program, with `folder` as its own.
    pub(super) fn start(
        config: &ServerConfig,
        wrapper: Option<&Wrapper>,
        folder: &Path,
    ) -> std::io::Result<(Self, Pipes)> {
        let program = match wrapper {
            Some(wrapper) => {
                wrapper.command(&config.sandbox.confinement(folder), &config.command)?
            }
            None => {
                let (name, arguments) = config.command.split_first().ok_or_else(missing)?;
                let mut program = Program::new(name);
                program.args(arguments);
                program
            }
        };
        let mut command = Command::from(program);
        command
            .env_clear()
            .env("PATH", PATH)
            .env("LANG", "C.UTF-8")
            .env("HOME", folder)
            .env("TMPDIR", folder)
            .envs(&config.environment)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let number = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let id = number.ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let input = child.stdin.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let ended = watch(id)?;
        let errors = tokio::spawn(log(config.name.clone(), errors));
        Ok((Self { child, id, ended, errors, is_reaped: false }, (output, input)))
    }

    /// Waits until the program has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Ends the program, whose input has been closed, and all that it has started in its group.
    pub(super) async fn end(mut self) {
        if timeout(LEAVE_TIMEOUT, self.ended()).await.is_err() {
            self.signal(Signal::TERM);
            drop(timeout(TERMINATE_TIMEOUT, self.ended()).await);
        }
        self.signal(Signal::KILL);
        match timeout(REAP_TIMEOUT, self.child.wait()).await {
            Ok(Ok(status)) => {
                self.is_reaped = true;
                tracing::debug!(%status, "the program of an MCP server has ended");
            }
            Ok(Err(error)) => tracing::warn!(%error, "an MCP server cannot be reaped"),
            Err(_) => tracing::warn!("an MCP server is not gone after SIGKILL"),
        }
    }

    fn signal(&self, signal: Signal) {
        // It fails only if the group is empty, which is what is wanted.
        let _ = kill_process_group(self.id, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.signal(Signal::KILL);
        }
        self.errors.abort();
    }
}

/// Answers what is cancelled when the process ends. It takes a thread that waits, because every other
/// way to wait without reaping needs unsafe code; the thread ends with the process.
fn watch(id: Pid) -> std::io::Result<CancellationToken> {
    let ended = CancellationToken::new();
    let told = ended.clone();
    let wait = move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(id), options), Err(Errno::INTR)) {}
        told.cancel();
    };
    std::thread::Builder::new().name("mcp-watch".to_owned()).spawn(wait)?;
    Ok(ended)
}

fn missing() -> std::io::Error {
    std::io::Error::other("the program has no process or no pipes")
}

/// Reads a program's error output to its end, so that the program is never held up by it, and logs
/// the beginning.
async fn log(server: String, errors: ChildStderr) {
    let mut lines = BufReader::new(errors);
    for _ in 0..LOGGED_LINES_MAX {
        let mut line = Vec::new();
        let read = (&mut lines).take(LOGGED_LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
        if !read.is_ok_and(|bytes| bytes > 0) {
            return;
        }
        let line = String::from_utf8_lossy(&line);
        tracing::info!(server, line = line.trim_end(), "an MCP server says");
    }
    tracing::warn!(server, "what else this MCP server says is not logged");
    drop(tokio::io::copy(&mut lines, &mut tokio::io::sink()).await);
}
