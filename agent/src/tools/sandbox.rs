//! Confines a program that the miner starts: Landlock, limits of resources, and then the program.
//!
//! A process can only confine itself, and only before it becomes the program. Doing this between
//! fork and exec takes unsafe code, so the miner starts its own binary once more: `ombra miner sandbox
//! CONFINEMENT PROGRAM ARGUMENTS…` calls [`enter`].

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// What a confined program may do. It may always read and run the system's programs and libraries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// Further files and folders that it may read and run.
    pub read: Vec<PathBuf>,
    /// Folders that it may write in.
    pub write: Vec<PathBuf>,
    /// Whether it may open and accept TCP connections.
    pub network: bool,
    /// Bytes of memory of its own that one process may have.
    pub memory_bytes_max: u64,
    /// Bytes of one file that it writes.
    pub file_bytes_max: u64,
    /// Files and connections that one process may have open.
    pub files_max: u64,
}

/// How to start the program that calls [`enter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// The program.
    pub program: PathBuf,
    /// What stands before the confinement.
    pub arguments: Vec<OsString>,
}

/// Why a program was not confined, and so not started.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The confinement is missing or cannot be read.
    #[error("the confinement cannot be read: expected CONFINEMENT PROGRAM ARGUMENTS…: {0}")]
    Confinement(#[source] serde_json::Error),
    /// No program is named.
    #[error("no program is named: expected CONFINEMENT PROGRAM ARGUMENTS…")]
    NoProgram,
    /// A path that the operator names is not there.
    #[error("{}: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system does not set a limit.
    #[error("a limit of resources cannot be set: {0}")]
    Limit(#[source] io::Error),
    /// This kernel cannot confine.
    #[error("this system cannot confine programs (Linux 6.7 with Landlock can): {0}")]
    Unsupported(String),
    /// The program cannot be started.
    #[error("{} cannot be started: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Wrapper {
    /// The command that confines itself and becomes `program`.
    ///
    /// # Errors
    /// When a path of the confinement is not UTF-8.
    pub fn command(
        &self,
        confinement: &Confinement,
        program: &[String],
    ) -> Result<Command, serde_json::Error> {
        let mut command = Command::new(&self.program);
        let confinement = serde_json::to_string(confinement)?;
        command.args(&self.arguments).arg(confinement).args(program);
        Ok(command)
    }
}

/// Confines this process and becomes the program. `arguments` are those after `sandbox`.
///
/// # Errors
/// When anything fails; the program has not been started then.
pub fn enter(arguments: impl IntoIterator<Item = OsString>) -> Result<Infallible, SandboxError> {
    let mut arguments = arguments.into_iter();
    let confinement = arguments.next().unwrap_or_default();
    let confinement: Confinement = serde_json::from_slice(confinement.as_encoded_bytes())
        .map_err(SandboxError::Confinement)?;
    let program = PathBuf::from(arguments.next().ok_or(SandboxError::NoProgram)?);
    limit_resources(&confinement)?;
    restrict(&confinement)?;
    let source = Command::new(&program).args(arguments).exec();
    Err(SandboxError::Start { program, source })
}

fn limit_resources(confinement: &Confinement) -> Result<(), SandboxError> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Data, confinement.memory_bytes_max),
        (Resource::Fsize, confinement.file_bytes_max),
        (Resource::Nofile, confinement.files_max),
    ];
    for (resource, most) in limits {
        let most = getrlimit(resource).maximum.map_or(most, |already| already.min(most));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|fault| SandboxError::Limit(fault.into()))?;
    }
    Ok(())
}

/// What a program needs to run at all, as far as a system has it. Not `/etc` as a whole, where an
/// operator may keep keys, and not `/proc`.
#[cfg(target_os = "linux")]
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

#[cfg(target_os = "linux")]
fn restrict(confinement: &Confinement) -> Result<(), SandboxError> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
        RulesetCreatedAttr, Scope, path_beneath_rules,
    };

    for path in confinement.read.iter().chain(&confinement.write) {
        present(path)?;
    }
    let unsupported = |fault: landlock::RulesetError| SandboxError::Unsupported(fault.to_string());
    let (all, read) = (AccessFs::from_all(ABI::V3), AccessFs::from_read(ABI::V3));
    let build = || {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(all)?;
        if !confinement.network {
            rules = rules.handle_access(AccessNet::from_all(ABI::V4))?;
        }
        // Newer kernels can also keep it from signalling others and from devices' controls.
        rules
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(ABI::V5))?
            .scope(Scope::from_all(ABI::V6))?
            .create()?
            .add_rules(path_beneath_rules(SYSTEM, read))?
            .add_rules(path_beneath_rules(&confinement.read, read))?
            .add_rules(path_beneath_rules(&confinement.write, all))?
            .add_rules(path_beneath_rules(["/dev/null"], all))?
            .restrict_self()
    };
    build().map(drop).map_err(unsupported)
}

#[cfg(not(target_os = "linux"))]
fn restrict(_: &Confinement) -> Result<(), SandboxError> {
    Err(SandboxError::Unsupported("not Linux".to_owned()))
}

fn present(path: &Path) -> Result<(), SandboxError> {
    let found = std::fs::metadata(path).map(drop);
    found.map_err(|source| SandboxError::Path { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
