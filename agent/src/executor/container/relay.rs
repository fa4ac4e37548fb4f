//! The program of the relay, and the image around it.
//!
//! `agent/relay/` has its source and says how it is built.

use types::Hash;

use super::plan::RELAY_PATH;

/// The relay for the processor of an engine, as the engine names it.
fn program(architecture: &str) -> Option<&'static [u8]> {
    match architecture {
        "amd64" => Some(include_bytes!("../../../relay/built/relay-x86_64")),
        "arm64" => Some(include_bytes!("../../../relay/built/relay-aarch64")),
        _ => None,
    }
}

/// An image that an engine can import.
#[derive(Clone, Debug)]
pub(super) struct RelayImage {
    /// The name, which another program of the relay would not have.
    pub(super) name: &'static str,
    /// Tells versions of the program apart.
    pub(super) tag: String,
    /// The file system, as a tar.
    pub(super) files: Vec<u8>,
}

impl RelayImage {
    /// The image for the processor of an engine.
    pub(super) fn of(architecture: &str) -> Option<Self> {
        let program = program(architecture)?;
        let hash = Hash::digest(program).to_string();
        let tag = hash.get(..16)?.to_owned();
        Some(Self { name: "ombra-relay", tag, files: tar(RELAY_PATH, program) })
    }

    /// What it is called.
    pub(super) fn reference(&self) -> String {
        format!("{}:{}", self.name, self.tag)
    }
}

const BLOCK: usize = 512;

/// A tar of one program, in the form of POSIX.1-1988.
fn tar(path: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; BLOCK];
    let mut write = |at: usize, text: &[u8]| {
        if let Some(place) = at.checked_add(text.len()).and_then(|end| header.get_mut(at..end)) {
            place.copy_from_slice(text);
        }
    };
    write(0, path.trim_start_matches('/').as_bytes());
    write(100, b"0000555\0");
    write(108, b"0000000\0");
    write(116, b"0000000\0");
    write(124, format!("{:011o}\0", content.len()).as_bytes());
    write(136, b"00000000000\0");
    // The sum counts itself as spaces.
    write(148, b"        ");
    write(156, b"0");
    write(257, b"ustar\x0000");
    let sum: u64 = header.iter().copied().map(u64::from).sum();
    if let Some(place) = header.get_mut(148..156) {
        place.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    let mut tar = header.to_vec();
    tar.extend_from_slice(content);
    let padded = tar.len().next_multiple_of(BLOCK).saturating_add(2 * BLOCK);
    tar.resize(padded, 0);
    tar
}

#[cfg(test)]
mod tests {
    //! The image is one that `tar` reads, and the programs are ones that engines start.

    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_image_has_the_program_and_nothing_else() {
        let image = RelayImage::of("amd64").expect("a relay");
        let mut tar = Command::new("tar")
            .args(["-tvf", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tar");
        tar.stdin.take().expect("an input").write_all(&image.files).expect("written");
        let output = tar.wait_with_output().expect("an end");
        let listing = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success());
        assert_eq!(listing.lines().count(), 1, "{listing}");
        assert!(
            listing.starts_with("-r-xr-xr-x 0/0") && listing.ends_with(" relay\n"),
            "{listing}"
        );
    }

    #[test]
    fn there_is_a_static_program_for_each_processor() {
        for (architecture, machine) in [("amd64", 62_u8), ("arm64", 183)] {
            let program = program(architecture).expect("a relay");
            assert_eq!(&program[..4], b"\x7fELF");
            assert_eq!(program[16], 2, "it stands where it was linked, without a loader");
            assert_eq!(program[18], machine);
        }
        assert!(RelayImage::of("riscv64").is_none());
    }
}
