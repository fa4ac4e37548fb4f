//! What a process has used, as the system tells.

use std::path::Path;

use anyhow::Context;

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
