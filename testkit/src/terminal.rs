//! Programs in a terminal of their own, and what the terminal was sent.

use std::process::Command;

use anyhow::Context as _;

use crate::node::binary;
use crate::process::output;

/// What the program's standard output sends to its terminal when it is called with these arguments
/// and variables. The terminal makes `\r\n` of each line end; that is undone.
pub fn shown(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<String> {
    let quoted = arguments.iter().map(|it| format!("'{}'", it.replace('\'', "'\\''")));
    let line = quoted.collect::<Vec<_>>().join(" ");
    let mut command = Command::new("script");
    command.args([
        "-qefc",
        &format!("exec {} {line} 2>/dev/null", binary().display()),
        "/dev/null",
    ]);
    command.env("TERM", "xterm").env_remove("OMBRA_WALLET").envs(variables.iter().copied());
    let output = output(&mut command).context("`script` of util-linux")?;
    Ok(String::from_utf8(output.stdout)?.replace("\r\n", "\n"))
}
