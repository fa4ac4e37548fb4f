//! Processes of tests: how they are stopped, what they print until they end, not waited for without
//! end, and what they have used, as the system tells.

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, anyhow, ensure};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

use crate::node::{PATIENCE, wait_for};

/// A process. Dropping it is `kill -9`.
#[derive(Debug)]
pub struct Process {
    /// What errors call it: "the miner".
    name: &'static str,
    pub child: Child,
}

impl Process {
    pub fn start(name: &'static str, command: &mut Command) -> anyhow::Result<Self> {
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        Ok(Self { name, child })
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The lines that it prints, as they come.
    pub fn lines(&mut self) -> anyhow::Result<mpsc::Receiver<String>> {
        Ok(lines(self.child.stdout.take().context("its output")?))
    }

    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self::signal(self.pid(), signal)
    }

    /// `kill -9`.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops it in order, with SIGTERM.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.terminate()
    }

    /// The same for a process that is started again.
    pub fn terminate(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        let name = self.name;
        let status = wait_for(&format!("{name} to end"), || Ok(self.child.try_wait()?))?;
        ensure!(status.success(), "{name} ended with {status}");
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a signal to a process. Without the program `kill`, which a small system does not have.
pub fn signal(id: u32, signal: Signal) -> anyhow::Result<()> {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("a process has an id")?;
    kill_process(pid, signal).with_context(|| format!("{signal:?} to the process {id}"))
}

/// How a process ends, and what it prints until then where that is piped. One that does not end in
/// time is killed.
pub fn ended(mut process: Child) -> anyhow::Result<Output> {
    let stdout = process.stdout.take().map(reading);
    let stderr = process.stderr.take().map(reading);
    let waited = wait_for("a program to end", || Ok(process.try_wait()?));
    if waited.is_err() {
        process.kill()?;
        process.wait()?;
    }
    let [stdout, stderr] = [stdout, stderr].map(|it| it.map_or_else(|| Ok(Vec::new()), read));
    let (stdout, stderr) = (stdout?, stderr?);
    let status = waited.with_context(|| {
        let printed = [&stdout, &stderr].map(|it| String::from_utf8_lossy(it));
        format!("it printed: {}", printed.join("\n"))
    })?;
    Ok(Output { status, stdout, stderr })
}

/// How a command ends that reads nothing, and what it prints.
pub fn output(command: &mut Command) -> anyhow::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ended(command.spawn().with_context(|| format!("starting {command:?}"))?)
}

/// Runs a command to its end, however long it takes; answers what it printed, without the space around.
pub fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output();
    let Output { status, stdout, stderr } = output.with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&stderr);
    ensure!(status.success(), "{command:?} ended with {status}: {}", said.trim());
    Ok(String::from_utf8_lossy(&stdout).trim().to_owned())
}

/// The last lines of a log, so many of them.
#[must_use]
pub fn last_lines(logged: &str, count: usize) -> String {
    let lines: Vec<_> = logged.lines().collect();
    lines.get(lines.len().saturating_sub(count)..).unwrap_or_default().join("\n")
}

fn reading(mut pipe: impl Read + Send + 'static) -> JoinHandle<std::io::Result<Vec<u8>>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_count| bytes)
    })
}

fn read(reading: JoinHandle<std::io::Result<Vec<u8>>>) -> anyhow::Result<Vec<u8>> {
    Ok(reading.join().map_err(|_panic| anyhow!("a reader panicked"))??)
}

/// The lines that a process prints, as they come. What nobody takes is read all the same.
pub fn lines(printed: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(printed).lines().map_while(Result::ok) {
            // Whoever waited may have given up.
            drop(tell.send(line));
        }
    });
    told
}

/// The lines up to the first that begins with `word`; none if there is no such line in time.
pub fn lines_to(printed: &mpsc::Receiver<String>, word: &str) -> Option<Vec<String>> {
    let deadline = Instant::now() + PATIENCE;
    let mut lines = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        lines.push(printed.recv_timeout(left).ok()?);
        if lines.last().is_some_and(|line| line.starts_with(word)) {
            return Some(lines);
        }
    }
}

/// User and system time of a process so far.
pub fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    times(&format!("/proc/{pid}/stat"), 11)
}

/// User and system time of all processes that this one has started and waited for.
pub fn cpu_seconds_of_children() -> anyhow::Result<f64> {
    times("/proc/self/stat", 13)
}

/// The memory that a process has now.
pub fn rss_kb(pid: u32) -> anyhow::Result<u64> {
    status_kb(pid, "VmRSS:")
}

/// The most memory that a process has had.
pub fn peak_rss_kb(pid: u32) -> anyhow::Result<u64> {
    status_kb(pid, "VmHWM:")
}

/// Bytes of all files in a folder.
pub fn folder_bytes(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        bytes += if facts.is_dir() { folder_bytes(&entry.path())? } else { facts.len() };
    }
    Ok(bytes)
}

/// Two times that stand beside each other in the line of a process.
fn times(file: &str, user: usize) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(file)?;
    let after_name = stat.rsplit(')').next().context("an odd stat line")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |index: usize| -> anyhow::Result<u32> {
        Ok(fields.get(index).context("a short stat line")?.parse()?)
    };
    Ok(f64::from(ticks(user)? + ticks(user + 1)?) / 100.0)
}

/// A figure of a process's status in KiB, such as `VmRSS:`.
pub fn status_kb(pid: u32, name: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|line| line.split_whitespace().next());
    Ok(figure.with_context(|| format!("no {name} in the status"))?.parse()?)
}

/// Processes that work in this folder or below it.
pub fn of_folder(folder: &Path) -> anyhow::Result<Vec<u32>> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Processes come and go, and some are not ours to look at.
        let works_at = std::fs::read_link(process.path().join("cwd"));
        if works_at.is_ok_and(|path| path.starts_with(folder)) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// The variables that a process was started with, each ended by a zero byte.
pub fn environment(pid: u32) -> anyhow::Result<String> {
    let path = format!("/proc/{pid}/environ");
    let bytes = std::fs::read(&path).with_context(|| path.clone())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
