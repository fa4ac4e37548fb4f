//! What a terminal is shown: everything that this program writes to one goes through here, so that no
//! text of a stranger drives it, whichever command shows it.

use std::io::{self, IsTerminal, Write};

use types::text::escaped;

/// Standard output; if it is a terminal, one that cannot be driven. What goes to a file or to another
/// program is not changed.
pub(super) fn output() -> Box<dyn Write + Send> {
    let stdout = io::stdout();
    if stdout.is_terminal() { Box::new(Terminal::new(stdout)) } else { Box::new(stdout) }
}

/// Writes UTF-8; what could drive a terminal, or hide in it, is written as `\uXXXX`.
#[derive(Debug)]
struct Terminal<W> {
    inner: W,
    /// The beginning of a character whose rest was not written yet: at most three bytes.
    begun: Vec<u8>,
}

impl<W> Terminal<W> {
    const fn new(inner: W) -> Self {
        Self { inner, begun: Vec::new() }
    }
}

impl<W: Write> Write for Terminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        for chunk in all.utf8_chunks() {
            self.inner.write_all(escaped(chunk.valid()).as_bytes())?;
            let invalid = chunk.invalid();
            let is_last = all.as_ptr_range().end == invalid.as_ptr_range().end;
            let is_begun = std::str::from_utf8(invalid).is_err_and(|it| it.error_len().is_none());
            if is_last && is_begun {
                self.begun = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.inner.write_all("\u{fffd}".as_bytes())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    //! No byte of a stranger drives the terminal.

    use std::io::Write;

    use super::Terminal;

    fn shown(parts: &[&[u8]]) -> String {
        let mut terminal = Terminal::new(Vec::new());
        for part in parts {
            terminal.write_all(part).unwrap();
        }
        String::from_utf8(terminal.inner).unwrap()
    }

    #[test]
    fn controls_are_written_as_their_numbers_and_text_as_it_is() {
        assert_eq!("a\\u001b[2Jb\n\tc", shown(&[b"a\x1b[2Jb\n\tc"]));
        assert_eq!("\\u009b2J \\u202eevil", shown(&["\u{9b}2J \u{202e}evil".as_bytes()]));
        assert_eq!("Grüße 👍", shown(&["Grüße 👍".as_bytes()]));
    }

    #[test]
    fn a_character_in_two_parts_is_seen_whole_and_half_a_one_is_marked() {
        let whole = "ü\u{202e}👍".as_bytes();
        for place in 0..=whole.len() {
            let (head, tail) = whole.split_at(place);
            assert_eq!("ü\\u202e👍", shown(&[head, tail]), "{place}");
        }
        // C1 as a single byte is no UTF-8.
        assert_eq!("a\u{fffd}2J", shown(&[b"a\x9b2J"]));
        assert_eq!("\u{fffd}a", shown(&[b"\xe2\x80", b"a"]));
    }
}
