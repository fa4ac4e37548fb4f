//! JSON in ASCII. The public client takes U+2028, U+2029 and U+0085 for ends of lines, and an event
//! of a stream ends with a line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;
use types::text::UnicodeEscape;

/// Writes everything beyond ASCII as `\uXXXX`, as UTF-16 has it.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        escape(writer, fragment)
    }

    /// The text of a signed transaction. Beyond ASCII it has only what stands in its strings.
    fn write_raw_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        escape(writer, fragment)
    }
}

fn escape<W: ?Sized + Write>(writer: &mut W, text: &str) -> io::Result<()> {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| !byte.is_ascii() || byte == 0x7f) {
        let (plain, other) = rest.split_at_checked(at).unwrap_or((rest, ""));
        writer.write_all(plain.as_bytes())?;
        let mut chars = other.chars();
        if let Some(char) = chars.next() {
            write!(writer, "{}", UnicodeEscape(char))?;
        }
        rest = chars.as_str();
    }
    writer.write_all(rest.as_bytes())
}

/// The value as JSON on one line of ASCII.
pub(super) fn to_string(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, Ascii);
    value.serialize(&mut writer).expect("events are plain data with text keys");
    String::from_utf8(bytes).expect("ASCII is UTF-8")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn what_ends_lines_for_some_clients_is_escaped_and_reads_back() {
        let text = "a\u{2028}b\u{2029}c\u{85}d\u{7f}e 😀 ț \" \\ \n";
        let raw = RawValue::from_string(json!({ "content": text }).to_string()).expect("JSON");
        let written = to_string(&json!({ "key ț": text }));
        let written_raw = to_string(&raw);
        for line in [&written, &written_raw] {
            assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{line}");
        }
        let read: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!(json!({ "key ț": text }), read);
        let read: serde_json::Value = serde_json::from_str(&written_raw).expect("JSON");
        assert_eq!(json!({ "content": text }), read);
    }
}
