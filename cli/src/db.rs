//! `ombra db`: look after the database of a stopped node.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use node::config::Home;
use node::replay::ChainReplay;
use serde_json::json;
use store::tools::Verified;
use store::{Options, Store, Tip, tools};
use types::Hash;

use super::client::{CliError, Out, Outcome};
use super::lock::HomeLock;
use super::signed::{AgreedArgs, ForgetArgs, Signed};
use super::{genesis, signed};

/// Maintain the database of a stopped node
#[derive(Debug, Subcommand)]
pub(super) enum DbCommand {
    /// Rows and bytes of every table
    #[command(after_help = "Example: ombra db stats --home /var/lib/ombra")]
    Stats(HomeArgs),
    /// Execute every block again and compare roots, rows and invariants
    #[command(after_help = "Example: ombra db verify --home /var/lib/ombra")]
    Verify(HomeArgs),
    /// Rewrite the tables to free the space of deleted rows
    #[command(after_help = "Example: ombra db compact --home /var/lib/ombra")]
    Compact(HomeArgs),
    /// Write blocks with their certificates into a file
    #[command(after_help = "Example: ombra db export --home /var/lib/ombra blocks.ombra")]
    Export(ExportArgs),
    /// Check and execute the blocks of a file
    #[command(after_help = "Example: ombra db import --home /var/lib/ombra blocks.ombra")]
    Import(FileArgs),
    /// Copy the database into a folder
    #[command(after_help = "Example: ombra db snapshot --home /var/lib/ombra /backup/ombra")]
    Snapshot(FileArgs),
    /// Restore the database from a snapshot; the home must not have one yet
    #[command(after_help = "Example: ombra db restore --home /var/lib/ombra /backup/ombra")]
    Restore(RestoreArgs),
    /// Let a validator sign the height after its last block again. Only for a sole validator, or on a
    /// stopped chain after all operators have agreed. This starts a different chain from there: tell
    /// everyone who has seen the old blocks. The node's old record and log are kept beside the new
    /// ones
    #[command(
        after_help = "Example: ombra db sign-again --home /var/lib/ombra --height 1042 --hash HASH"
    )]
    SignAgain(SignAgainArgs),
    /// Roll back the last block; the old database is kept beside the new one
    #[command(after_help = "Example: ombra db rollback --home /var/lib/ombra")]
    Rollback(RollbackArgs),
}

#[derive(Debug, Args)]
pub(super) struct HomeArgs {
    /// The node's home, or the data folder of `ombra dev`
    #[arg(long, value_name = "DIR", env = "OMBRA_HOME")]
    home: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct FileArgs {
    #[command(flatten)]
    at: HomeArgs,
    /// The file or folder
    path: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    forget: ForgetArgs,
}

#[derive(Debug, Args)]
pub(super) struct RollbackArgs {
    #[command(flatten)]
    at: HomeArgs,
    #[command(flatten)]
    forget: ForgetArgs,
}

#[derive(Debug, Args)]
pub(super) struct SignAgainArgs {
    #[command(flatten)]
    at: HomeArgs,
    /// The height of the last block of the database
    #[arg(long)]
    height: u64,
    /// Its hash; at height 0 the genesis hash
    #[arg(long)]
    hash: Hash,
    #[command(flatten)]
    agreed: AgreedArgs,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    file: FileArgs,
    /// The first block
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// The last block [default: the last there is]
    #[arg(long)]
    to: Option<u64>,
}

impl DbCommand {
    const fn at(&self) -> &HomeArgs {
        match self {
            Self::Stats(at) | Self::Verify(at) | Self::Compact(at) => at,
            Self::Rollback(args) => &args.at,
            Self::SignAgain(args) => &args.at,
            Self::Import(args) | Self::Snapshot(args) => &args.at,
            Self::Restore(args) => &args.file.at,
            Self::Export(args) => &args.file.at,
        }
    }
}

pub(super) fn run(command: DbCommand, out: Out<'_>) -> Outcome {
    let _lock = HomeLock::take(&Home::new(command.at().home.clone()))?;
    match command {
        DbCommand::Stats(args) => stats(&args, out),
        DbCommand::Verify(args) => verify(&args, out),
        DbCommand::Compact(args) => {
            let bar = bar("tables");
            tools::compact(&open(&args)?, &mut progress(&bar)).map_err(failed)?;
            bar.finish_and_clear();
            done(&args, json!({ "ok": true }), "compacted", out)
        }
        DbCommand::Export(args) => export(&args, out),
        DbCommand::Import(args) => import(&args, out),
        DbCommand::Snapshot(FileArgs { at, path }) => {
            tools::snapshot(&open(&at)?, &path).map_err(failed)?;
            done(&at, json!({ "ok": true, "path": path }), "copied", out)
        }
        DbCommand::Restore(args) => restore(&args, out),
        DbCommand::Rollback(args) => rollback(&args, out),
        DbCommand::SignAgain(args) => sign_again(&args, out),
    }
}

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::Failed(error.to_string())
}

fn database(args: &HomeArgs) -> Result<PathBuf, CliError> {
    let path = Home::new(args.home.clone()).database();
    if path.join("CURRENT").exists() {
        return Ok(path);
    }
    Err(CliError::Usage(format!("there is no database in {}", path.display())))
}

fn open(args: &HomeArgs) -> Result<Store, CliError> {
    Store::open(&database(args)?, Options::default()).map_err(failed)
}

fn replay(args: &HomeArgs) -> Result<ChainReplay, CliError> {
    ChainReplay::new(&genesis::parse(&Home::new(args.home.clone()).genesis())?).map_err(failed)
}

/// A bar on a terminal; elsewhere nothing.
fn bar(unit: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = format!("{{bar:40}} {{pos}}/{{len}} {unit} {{per_sec}} {{eta}}");
    let style = ProgressStyle::with_template(&template);
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn progress(bar: &ProgressBar) -> impl FnMut(u64, u64) + '_ {
    |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    }
}

fn done(args: &HomeArgs, answer: serde_json::Value, words: &str, out: Out<'_>) -> Outcome {
    if args.json {
        writeln!(out, "{answer}")?;
    } else {
        writeln!(out, "{words}")?;
    }
    Ok(())
}

fn tip_line(args: &HomeArgs, word: &str, tip: &Tip, out: Out<'_>) -> Outcome {
    let Tip { height, hash, state_root, .. } = tip;
    let answer = json!({ "ok": true, "height": height, "hash": hash, "stateRoot": state_root });
    let words = format!("{word} up to block {height} {hash}, state root {state_root}");
    done(args, answer, &words, out)
}

/// Settles what stands beside a database that was made shorter, and says what the validator does then.
fn shorter(args: &HomeArgs, word: &str, tip: &Tip, signed: Signed, out: Out<'_>) -> Outcome {
    let follows_until = signed.follows_until();
    signed.settle()?;
    tip_line(args, word, tip, out)?;
    match follows_until {
        Some(height) if !args.json => Ok(writeln!(
            out,
            "this validator has signed height {height}: it follows without signing until the \
             others have decided that height. Never do this on validators that have a third of the \
             power together: the chain would stop (docs/operations.md section 8.6)"
        )?),
        Some(_) | None => Ok(()),
    }
}

fn stats(args: &HomeArgs, out: Out<'_>) -> Outcome {
    let tables = tools::stats(&open(args)?).map_err(failed)?;
    if args.json {
        let rows: Vec<_> = tables
            .iter()
            .map(|it| json!({ "table": it.table, "rows": it.rows, "bytes": it.bytes }))
            .collect();
        writeln!(out, "{}", json!(rows))?;
        return Ok(());
    }
    let mut shown = comfy_table::Table::new();
    shown.load_preset(comfy_table::presets::NOTHING).set_header(["table", "rows", "bytes"]);
    for it in &tables {
        shown.add_row([it.table.to_owned(), it.rows.to_string(), it.bytes.to_string()]);
    }
    writeln!(out, "{shown}")?;
    Ok(())
}

fn verify(args: &HomeArgs, out: Out<'_>) -> Outcome {
    let (store, chain) = (open(args)?, replay(args)?);
    let scratch = beside(&database(args)?, "verify");
    let bar = bar("blocks");
    let started = Instant::now();
    let mut executed = Duration::ZERO;
    let mut show = progress(&bar);
    let verified = tools::verify(&store, &scratch, &chain.replay(), &mut |done, total| {
        // The last report of progress comes when the last block is executed; comparing follows.
        executed = started.elapsed();
        show(done, total);
    });
    drop(show);
    bar.finish_and_clear();
    let Verified { tip, earliest, transactions, .. } = verified.map_err(failed)?;
    let Tip { height, hash, state_root, .. } = tip;
    let (whole, executed) = (started.elapsed().as_secs_f64(), executed.as_secs_f64());
    let compared = whole - executed;
    let answer = json!({
        "ok": true, "height": height, "hash": hash, "stateRoot": state_root,
        "earliestBlock": earliest, "transactions": transactions, "executedSeconds": executed, "comparedSeconds": compared,
    });
    if earliest > 1 {
        let words = format!(
            "this database began from a snapshot: its first block is {earliest}\n\
             checked up to block {height} {hash}: the certificates of the blocks, the signatures \
             of {transactions} transactions, the rows against state root {state_root}, and the \
             invariants\n\
             the blocks were not executed again, because that needs the state before them"
        );
        return done(args, answer, &words, out);
    }
    let words = format!(
        "verified up to block {height} {hash}, state root {state_root}\n\
         {transactions} transactions executed in {executed:.2} s, rows and invariants compared in \
         {compared:.2} s"
    );
    done(args, answer, &words, out)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

fn export(args: &ExportArgs, out: Out<'_>) -> Outcome {
    let FileArgs { at, path } = &args.file;
    let bar = bar("blocks");
    let range = (args.from, args.to);
    let blocks = tools::export(&open(at)?, path, range, &mut progress(&bar)).map_err(failed)?;
    bar.finish_and_clear();
    let words = format!("{blocks} blocks written to {}", path.display());
    done(at, json!({ "ok": true, "blocks": blocks, "path": path }), &words, out)
}

fn import(args: &FileArgs, out: Out<'_>) -> Outcome {
    let FileArgs { at, path } = args;
    let chain = replay(at)?;
    // A file that cannot be read leaves no new database behind: a node with one fetches no snapshot.
    std::fs::File::open(path).map_err(|source| CliError::file(path.display(), source))?;
    let folder = Home::new(at.home.clone()).database();
    std::fs::create_dir_all(&folder)
        .map_err(|source| CliError::File { what: folder.display().to_string(), source })?;
    let store = Store::open(&folder, Options::default()).map_err(failed)?;
    let bar = bar("blocks");
    let tip = tools::import(&store, path, &chain.replay(), &mut progress(&bar));
    bar.finish_and_clear();
    tip_line(at, "imported", &tip.map_err(failed)?, out)
}

fn restore(args: &RestoreArgs, out: Out<'_>) -> Outcome {
    let RestoreArgs { file: FileArgs { at, path }, forget } = args;
    let home = Home::new(at.home.clone());
    let genesis = genesis::parse(&home.genesis())?;
    let signed = {
        let snapshot = Store::open_read_only(path, Options::default()).map_err(failed)?;
        let height = snapshot.tip().map_err(failed)?.height;
        signed::look(&home, &genesis, &snapshot, height, forget)?
    };
    let tip = tools::restore(path, &home.database(), genesis.hash(), Options::default());
    let tip = tip.map_err(failed)?;
    shorter(at, "restored", &tip, signed, out)
}

fn rollback(args: &RollbackArgs, out: Out<'_>) -> Outcome {
    let RollbackArgs { at, forget } = args;
    let path = database(at)?;
    let home = Home::new(at.home.clone());
    let signed = {
        let store = open(at)?;
        let height = store.tip().map_err(failed)?.height.saturating_sub(1);
        signed::look(&home, &genesis::parse(&home.genesis())?, &store, height, forget)?
    };
    let bar = bar("blocks");
    let chain = replay(at)?;
    let replay = chain.replay();
    let tip = tools::rollback(&path, Options::default(), &replay, &mut progress(&bar));
    bar.finish_and_clear();
    let tip = tip.map_err(failed)?;
    shorter(at, "rolled back", &tip, signed, out)
}

fn sign_again(args: &SignAgainArgs, out: Out<'_>) -> Outcome {
    let SignAgainArgs { at, height, hash, agreed } = args;
    let home = Home::new(at.home.clone());
    let (tip, signed) = {
        let store = open(at)?;
        let tip = store.tip().map_err(failed)?;
        if (tip.height, tip.hash) != (*height, *hash) {
            return Err(CliError::Usage(format!(
                "the last block of the database is {} {}, not {height} {hash}",
                tip.height, tip.hash
            )));
        }
        let genesis = genesis::parse(&home.genesis())?;
        (tip, signed::forget(&home, &genesis, &store, tip.height, agreed)?)
    };
    signed.settle()?;
    tip_line(at, "the validator signs again; the chain reaches", &tip, out)
}

#[cfg(test)]
mod tests {
    //! What a command that fails leaves behind.

    use super::*;
    use crate::testing::parsed;
    use crate::testnet::{self, TestnetArgs};

    #[test]
    fn an_import_of_a_file_that_is_not_there_makes_no_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let args: TestnetArgs = parsed(&["--out", path, "--local", "--validators", "1"]);
        testnet::run(&args, &mut Vec::new()).unwrap();
        let home = folder.path().join("node0");
        let database = Home::new(home.clone()).database();
        let at = HomeArgs { home, json: false };
        let import = FileArgs { at, path: folder.path().join("blocks.ombra") };
        let refused = run(DbCommand::Import(import), &mut Vec::new()).unwrap_err();
        assert!(refused.to_string().contains("blocks.ombra: No such file"), "{refused}");
        assert!(!database.join("CURRENT").exists());
    }
}
