//! Log lines on standard error, with a filter that can be changed while the node runs. They quote
//! peers, servers and requesters, and somebody reads them in a terminal: one event is one line, and no
//! character drives the terminal or hides.

use std::io::{self, IsTerminal as _, Write};

use types::text::escaped;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::config::{Log, LogFormat};

/// The filter could not be set.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The text is not a filter.
    #[error("invalid log filter {filter:?}: {source}")]
    Filter {
        /// The text.
        filter: String,
        /// Why.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Something else writes the logs already.
    #[error("logging is already set up")]
    Taken(#[from] tracing_subscriber::util::TryInitError),
    /// The subscriber is gone.
    #[error("logging has ended: {0}")]
    Gone(#[from] reload::Error),
}

/// Changes the filter of a running node.
#[derive(Clone, Debug)]
pub struct LogControl(reload::Handle<EnvFilter, Registry>);

/// The engine reports the lack of peers as an error nine times a block on a chain of one validator;
/// what matters of it is in our own lines.
/// Of its supervisor only failures are news: it warns at every ordinary stop. Its connector says at
/// every ordinary stop that our loop has ended; when the loop fails, we say why. Its ticker finds at
/// many an ordinary stop that whom it ticks for has stopped before.
const QUIET: &str = "arc_malachitebft_network=off,arc_malachitebft_discovery=off,\
                     arc_malachitebft_engine::node=error,\
                     arc_malachitebft_engine::util::ticker=off,\
                     arc_malachitebft_app_channel::connector=off";

fn parse(filter: &str, with_engine: bool) -> Result<EnvFilter, LogError> {
    let text = if with_engine || filter.contains("arc_malachitebft_network") {
        filter.to_owned()
    } else {
        format!("{filter},arc_malachitebft=warn,{QUIET}")
    };
    EnvFilter::try_new(&text)
        .map_err(|source| LogError::Filter { filter: filter.to_owned(), source })
}

/// Checks that a filter is understood.
///
/// # Errors
/// [`LogError::Filter`].
pub fn check(filter: &str) -> Result<(), LogError> {
    parse(filter, false).map(drop)
}

/// Starts logging.
///
/// # Errors
/// [`LogError`] if the filter is not understood or logging was started before.
pub fn start(log: &Log) -> Result<LogControl, LogError> {
    let (filter, handle) = reload::Layer::new(parse(&log.filter, false)?);
    let registry = tracing_subscriber::registry().with(filter);
    match log.format {
        LogFormat::Text => {
            // In a file or the log of a container, colours are only noise.
            let text = fmt::layer().with_ansi(io::stderr().is_terminal());
            registry.with(text.with_writer(|| Lines(io::stderr()))).try_init()?;
        }
        LogFormat::Json => {
            registry.with(fmt::layer().json().with_writer(|| Lines(io::stderr()))).try_init()?;
        }
    }
    Ok(LogControl(handle))
}

/// Writes one event with each write, as the layers hand them over.
struct Lines<W>(W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(line(&String::from_utf8_lossy(event)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// An event as it is shown: further lines are indented, so that none passes for an event.
fn line(event: &str) -> String {
    let (event, end) = event.strip_suffix('\n').map_or((event, ""), |event| (event, "\n"));
    let mut shown = String::with_capacity(event.len());
    let mut rest = event;
    // The layer has written the escapes of strangers as text; what is left are its own colours.
    while let Some((before, (colour, after))) =
        rest.split_once('\u{1b}').map(|(before, after)| (before, colour(after)))
    {
        shown.push_str(&escaped(before));
        shown.push_str(&colour);
        rest = after;
    }
    shown.push_str(&escaped(rest));
    shown.replace('\n', "\n    ") + end
}

/// The colour at the beginning of what follows an escape, or what is shown in its place; and the rest.
fn colour(after: &str) -> (String, &str) {
    let end = after.find('m').filter(|end| {
        let inside = after.get(..*end).and_then(|inside| inside.strip_prefix('['));
        inside.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'))
    });
    match end.and_then(|end| after.split_at_checked(end.saturating_add(1))) {
        Some((colour, rest)) => (format!("\u{1b}{colour}"), rest),
        None => (escaped("\u{1b}"), after),
    }
}

impl LogControl {
    /// Sets another filter, exactly as given.
    ///
    /// # Errors
    /// [`LogError`] if it is not understood.
    pub fn set(&self, filter: &str) -> Result<(), LogError> {
        self.0.reload(parse(filter, true)?)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! What strangers say stays within its line.

    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt;

    use super::{Lines, line};

    /// What an event of a layer looks like that quotes a stranger in each way in which events do.
    fn logged((with_ansi, with_json): (bool, bool)) -> String {
        const SAID: &str = "a\u{1b}[2J\u{9b}3J\r\nFORGED \u{202e}b\u{7}";
        let file = tempfile::NamedTempFile::new().unwrap();
        let writer = file.reopen().unwrap();
        let make = move || Lines(writer.try_clone().unwrap());
        let layer = fmt::layer().with_ansi(with_ansi).without_time();
        let say = || {
            tracing::info!(field = SAID, shown = %SAID, seen = ?SAID, "{SAID}");
        };
        if with_json {
            let layer = layer.json().with_writer(make);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
        } else {
            let layer = layer.with_writer(make);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
        }
        std::fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn no_control_of_a_stranger_reaches_the_log() {
        for (with_ansi, with_json) in [(false, false), (true, false), (false, true)] {
            let text = logged((with_ansi, with_json));
            for hidden in ["\r", "\u{7}", "\u{9b}", "\u{202e}", "\u{1b}[2J", "\nFORGED"] {
                assert!(!text.contains(hidden), "{hidden:?} in {text:?}");
            }
            assert_eq!(with_ansi, text.contains('\u{1b}'), "{text:?}");
            assert!(text.contains("2J") && text.ends_with('\n'), "{text:?}");
            if with_json {
                let read: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert!(read["fields"]["shown"].as_str().unwrap().contains("\u{202e}b"));
            }
        }
    }

    #[test]
    fn colours_of_the_layer_stay_and_other_escapes_do_not() {
        assert_eq!("\u{1b}[2mx\u{1b}[0m\n", line("\u{1b}[2mx\u{1b}[0m\n"));
        assert_eq!("\\u001b[2Jm\\u001b]0;title\\u001b", line("\u{1b}[2Jm\u{1b}]0;title\u{1b}"));
        assert_eq!("one\n    two\n", line("one\ntwo\n"));
    }
}
