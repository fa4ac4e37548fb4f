//! What a case needs of the machine, and how it is kept apart from it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::ensure;

use super::Missing;

/// What a case needs of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Processes on loopback; any machine will do.
    Loopback,
    /// A network namespace and a network device for each node.
    Wires,
    /// A file system of its own.
    Disk,
    /// A file system whose blocks have a size of their own.
    Blocks,
    /// The program of release 0.2.0, which [`EARLIER`] names.
    Earlier,
    /// A library that gives a process another clock, compiled when it is needed.
    Clock,
}

/// Options of `unshare` that give a process its own network, mounts and process ids, all gone with
/// it.
const APART: &[&str] = &["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// More of them, for who is not root.
const AS_ROOT: &[&str] = &["--user", "--map-root-user"];

/// What a shell does first in there, before it becomes the program that it is given.
pub const ENTER: &str = "ip link set lo up && exec \"$0\" \"$@\"";

/// The compiler of C that a build needs anyway.
pub const COMPILER: &str = "cc";

/// The variable with the path of the program of release 0.2.0. CHANGELOG.md names the commit to build it
/// from.
pub const EARLIER: &str = "OMBRA_EARLIER";

/// The program of release 0.2.0, if it is there.
#[must_use]
pub fn earlier() -> Option<PathBuf> {
    std::env::var_os(EARLIER).map(PathBuf::from).filter(|path| path.is_file())
}

/// How a process is started apart on this machine, if it can be.
pub fn apart() -> Option<Vec<&'static str>> {
    let as_root = [APART, AS_ROOT].concat();
    [APART.to_vec(), as_root].into_iter().find(|options| {
        let mut command = Command::new("unshare");
        command.args(options).args(["--", "sh", "-c", ENTER, "true"]);
        succeeds(&mut command)
    })
}

/// Why a case cannot run here, if it cannot.
pub fn missing(need: Need) -> Option<String> {
    let namespaces = || {
        let why = "this user may not make network and mount namespaces (unshare, ip)";
        apart().is_none().then(|| why.to_owned())
    };
    match need {
        Need::Loopback => None,
        Need::Disk => namespaces(),
        Need::Earlier => {
            let why = format!("{EARLIER} names no program of release 0.2.0");
            earlier().is_none().then_some(why)
        }
        Need::Blocks => namespaces().or_else(|| {
            let why = "this user may not mount a file as a disk (loop devices, mkfs.ext2)";
            (!mounts_files()).then(|| why.to_owned())
        }),
        Need::Wires => namespaces().or_else(|| {
            let why = "there is no /dev/net/tun";
            (!Path::new("/dev/net/tun").exists()).then(|| why.to_owned())
        }),
        Need::Clock => {
            let why = "there is no compiler of C (cc)";
            (!succeeds(Command::new(COMPILER).arg("--version"))).then(|| why.to_owned())
        }
    }
}

fn mounts_files() -> bool {
    let devices = std::fs::File::options().write(true).open("/dev/loop-control");
    devices.is_ok() && succeeds(Command::new("mkfs.ext2").arg("-V"))
}

/// Starts this program with this argument.
///
/// # Errors
/// It is [`Missing`], or ends with an error.
pub fn runs(program: impl AsRef<OsStr>, argument: &str) -> anyhow::Result<()> {
    let is_there = succeeds(Command::new(&program).arg(argument));
    let name = Path::new(&program).display();
    ensure!(is_there, Missing(format!("the program {name} does not run")));
    Ok(())
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
