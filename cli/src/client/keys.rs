//! `ombra keys`: wallets in encrypted files.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use wallet::accounts::DEVELOPMENT_MNEMONIC;
use wallet::{
    ChainMemory, Phrase, StoredWallet, Wallet, WordCount, Zeroizing, read_wallet_file,
    write_wallet_file,
};

use super::options::{PasswordArgs, StoreArgs, ask_secret};
use super::output::{facts, table};
use super::signer::note;
use super::{CliError, Out, Outcome, input};

/// The most accounts that one `derive` prints.
const DERIVED_MAX: u32 = 1000;

/// What to do with wallets.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a wallet with a new mnemonic, and print its words once
    #[command(after_help = "Example: ombra keys new alice --password-file alice.pw")]
    New(NewArgs),
    /// Add a wallet from words, a private key, or a wallet file of another client
    #[command(after_help = "Example: ombra keys import bob --mnemonic-file words.txt --index 1")]
    Import(ImportArgs),
    /// List the wallets of the key store
    #[command(after_help = "Example: ombra keys list --json")]
    List(ListArgs),
    /// Show a wallet's address and public key
    #[command(after_help = "Example: ombra keys show alice")]
    Show(ShowArgs),
    /// Copy a wallet to an encrypted file, or print one of its secrets
    #[command(after_help = "Example: ombra keys export alice --out alice-wallet.json")]
    Export(ExportArgs),
    /// Print the addresses of a mnemonic, or keep one of them as a wallet
    #[command(
        after_help = "Example: ombra keys derive --dev --count 10\n         ombra keys derive alice --index 3 --save alice-savings"
    )]
    Derive(DeriveArgs),
}

/// How many words.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Words {
    /// 12 words.
    #[value(name = "12")]
    Twelve,
    /// 24 words.
    #[value(name = "24")]
    TwentyFour,
}

/// A new wallet.
#[derive(Args, Debug)]
pub struct NewArgs {
    /// Name in the key store: letters, digits, '-' and '_'
    name: String,
    /// Number of words
    #[arg(long, value_enum, default_value = "12")]
    words: Words,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    password: PasswordArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A wallet that exists elsewhere.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Name in the key store: letters, digits, '-' and '_'
    name: String,
    /// File with the words ('-': standard input); if you give no source, the command asks on the
    /// terminal
    #[arg(long, value_name = "FILE", group = "source")]
    mnemonic_file: Option<PathBuf>,
    /// Derivation index
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["private_key_file", "file"])]
    index: u32,
    /// File with a private key of 64 hexadecimal characters ('-': standard input)
    #[arg(long, value_name = "FILE", group = "source")]
    private_key_file: Option<PathBuf>,
    /// Encrypted wallet file, for example from the Python SDK
    #[arg(long, value_name = "FILE", group = "source")]
    file: Option<PathBuf>,
    /// File with the password of that wallet file [default: the new password]
    #[arg(long, value_name = "FILE", requires = "file")]
    old_password_file: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    password: PasswordArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The key store's content.
#[derive(Args, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One wallet.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// Wallet file, or name in the key store
    wallet: String,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    password: PasswordArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What leaves the key store.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Wallet file, or name in the key store
    wallet: String,
    /// Write an encrypted wallet file
    #[arg(long, value_name = "FILE", required_unless_present = "secret")]
    out: Option<PathBuf>,
    /// File with a password for the new file [default: that of --password-file; without one, the
    /// command asks for a new password]
    #[arg(long, value_name = "FILE", requires = "out")]
    new_password_file: Option<PathBuf>,
    /// Print a secret in the clear
    #[arg(long, value_enum, conflicts_with = "out")]
    secret: Option<Secret>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    password: PasswordArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A secret of a wallet.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Secret {
    /// The private key, 64 hexadecimal characters.
    PrivateKey,
    /// The words.
    Mnemonic,
}

/// Other accounts of the same words.
#[derive(Args, Debug)]
pub struct DeriveArgs {
    /// Wallet file, or name in the key store, that has words
    #[arg(group = "words")]
    wallet: Option<String>,
    /// Use the words of the development accounts
    #[arg(long, group = "words")]
    dev: bool,
    /// File with the words ('-': standard input)
    #[arg(long, value_name = "FILE", group = "words")]
    mnemonic_file: Option<PathBuf>,
    /// First index
    #[arg(long, value_name = "N", default_value_t = 0)]
    index: u32,
    /// Number of accounts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(DERIVED_MAX)))]
    count: u32,
    /// Keep the account in the key store under this name
    #[arg(long, value_name = "NAME", conflicts_with = "count")]
    save: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    password: PasswordArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `ombra keys`.
///
/// # Errors
/// [`CliError`].
pub fn run(command: KeysCommand, out: Out<'_>) -> Outcome {
    match command {
        KeysCommand::New(args) => new(&args, out),
        KeysCommand::Import(args) => import(&args, out),
        KeysCommand::List(args) => list(&args, out),
        KeysCommand::Show(args) => show(&args, out),
        KeysCommand::Export(args) => export(&args, out),
        KeysCommand::Derive(args) => derive(&args, out),
    }
}

fn new(args: &NewArgs, out: Out<'_>) -> Outcome {
    let words = match args.words {
        Words::Twelve => WordCount::Twelve,
        Words::TwentyFour => WordCount::TwentyFour,
    };
    let phrase = Phrase::generate(words)?;
    let wallet = Wallet::from_phrase(phrase.clone(), 0)?;
    let stored = args.store.store()?.add(&args.name, &wallet, &args.password.new_password()?)?;
    if args.json {
        let mut object = described(&stored, &wallet);
        object["mnemonic"] = json!(phrase.expose());
        writeln!(out, "{object}")?;
        return Ok(());
    }
    print_stored(&stored, &wallet, out)?;
    writeln!(out, "\n{}\n", phrase.expose())?;
    writeln!(
        out,
        "Write these words down. If you lose the wallet file or its password, only these words restore"
    )?;
    writeln!(
        out,
        "the account. Anyone who has them controls it. `ombra keys export --secret mnemonic` shows them"
    )?;
    writeln!(out, "again.")?;
    Ok(())
}

fn import(args: &ImportArgs, out: Out<'_>) -> Outcome {
    let (wallet, password) = if let Some(path) = &args.private_key_file {
        let wallet = Wallet::from_private_key(&input::first_line(path)?)?;
        (wallet, args.password.new_password()?)
    } else if let Some(path) = &args.file {
        import_file(path, args)?
    } else {
        let wallet = Wallet::from_phrase(read_phrase(args.mnemonic_file.as_deref())?, args.index)?;
        (wallet, args.password.new_password()?)
    };
    let stored = args.store.store()?.add(&args.name, &wallet, &password)?;
    if let Some(path) = &args.file {
        ChainMemory::beside(&stored.path).inherit(&ChainMemory::beside(path))?;
    }
    if args.json {
        writeln!(out, "{}", described(&stored, &wallet))?;
        return Ok(());
    }
    print_stored(&stored, &wallet, out)
}

/// A wallet file of another client, and the password under which it is kept here.
fn import_file(path: &Path, args: &ImportArgs) -> Result<(Wallet, Zeroizing<String>), CliError> {
    if let Some(old) = &args.old_password_file {
        let wallet = read_wallet_file(path, &input::first_line(old)?)?;
        return Ok((wallet, args.password.new_password()?));
    }
    let password = args.password.existing(&path.display().to_string())?;
    Ok((read_wallet_file(path, &password)?, password))
}

/// The words of a file, or of the terminal.
fn read_phrase(file: Option<&Path>) -> Result<Phrase, CliError> {
    let text = match file {
        Some(path) => input::first_line(path)?,
        None => ask_secret(
            "Mnemonic (12 or 24 words, not shown): ",
            "nothing to import: give --mnemonic-file, --private-key-file or --file",
        )?,
    };
    Ok(Phrase::parse(&text)?)
}

fn list(args: &ListArgs, out: Out<'_>) -> Outcome {
    let store = args.store.store()?;
    let wallets = store.list()?;
    if args.json {
        let items: Vec<_> = wallets
            .iter()
            .map(|stored| json!({"name": stored.name, "address": stored.address, "file": stored.path}))
            .collect();
        writeln!(out, "{}", json!(items))?;
    } else if wallets.is_empty() {
        writeln!(out, "no wallets in {}", store.folder().display())?;
    } else {
        let mut rows = table(["NAME", "ADDRESS", "FILE"]);
        for StoredWallet { name, address, path } in wallets {
            rows.add_row([name, address.to_string(), path.display().to_string()]);
        }
        writeln!(out, "{rows}")?;
    }
    Ok(())
}

fn show(args: &ShowArgs, out: Out<'_>) -> Outcome {
    let wallet = args.store.open(&args.wallet, &args.password)?;
    let chain = args.store.memory(&args.wallet)?.recall()?;
    if args.json {
        let object = json!({
            "address": wallet.address(),
            "publicKey": wallet.public_key(),
            "hasMnemonic": wallet.expose_phrase().is_some(),
            "hdIndex": wallet.index(),
            "chain": chain,
        });
        writeln!(out, "{object}")?;
        return Ok(());
    }
    let chain = chain.map_or_else(|| "none so far".to_owned(), |chain| chain.to_string());
    writeln!(out, "{}", facts(public_facts(&wallet).into_iter().chain([("chain", chain)])))?;
    Ok(())
}

fn export(args: &ExportArgs, out: Out<'_>) -> Outcome {
    let wallet = args.store.open(&args.wallet, &args.password)?;
    if let Some(path) = &args.out {
        let password = match &args.new_password_file {
            Some(file) => input::first_line(file)?,
            None => args.password.new_password()?,
        };
        write_wallet_file(path, &wallet, &password)?;
        // A copy that had to learn its chain anew could be told another.
        ChainMemory::beside(path).inherit(&args.store.memory(&args.wallet)?)?;
        if args.json {
            writeln!(out, "{}", json!({"address": wallet.address(), "file": path}))?;
        } else {
            writeln!(out, "{}", path.display())?;
        }
        return Ok(());
    }
    match args.secret {
        Some(Secret::Mnemonic) => print_words(&wallet, args.json, out),
        Some(Secret::PrivateKey) | None => {
            let secret = wallet.expose_private_key();
            if args.json {
                let object = json!({"address": wallet.address(), "privateKey": *secret});
                writeln!(out, "{object}")?;
            } else {
                writeln!(out, "{}", *secret)?;
            }
            Ok(())
        }
    }
}

/// The words alone are not enough to find the account again: the index is told beside them.
fn print_words(wallet: &Wallet, is_json: bool, out: Out<'_>) -> Outcome {
    let words = wallet.expose_phrase().ok_or(wallet::WalletError::NoMnemonic)?.expose();
    let index = wallet.index().unwrap_or_default();
    if is_json {
        let object = json!({"address": wallet.address(), "mnemonic": words, "hdIndex": index});
        writeln!(out, "{object}")?;
        return Ok(());
    }
    writeln!(out, "{words}")?;
    note(&format!(
        "the index of this account is {index}: write it down with the words. To restore {}: ombra \
         keys import NAME --index {index}",
        wallet.address()
    ));
    Ok(())
}

fn derive(args: &DeriveArgs, out: Out<'_>) -> Outcome {
    let phrase = phrase_to_derive(args)?;
    if let Some(name) = &args.save {
        let wallet = Wallet::from_phrase(phrase, args.index)?;
        let stored = args.store.store()?.add(name, &wallet, &args.password.new_password()?)?;
        if args.json {
            writeln!(out, "{}", described(&stored, &wallet))?;
            return Ok(());
        }
        return print_stored(&stored, &wallet, out);
    }
    let keys = phrase.keys()?;
    let mut rows = table(["INDEX", "ADDRESS", "PUBLIC KEY"]);
    let mut items = Vec::new();
    for index in (args.index..).take(usize::try_from(args.count).unwrap_or_default()) {
        let key = keys.at(index)?;
        let (address, public_key) = (key.address().to_string(), key.public_key().to_string());
        items.push(json!({"index": index, "address": address, "publicKey": public_key}));
        rows.add_row([index.to_string(), address, public_key]);
    }
    if args.json {
        writeln!(out, "{}", json!(items))?;
    } else {
        writeln!(out, "{rows}")?;
    }
    Ok(())
}

fn phrase_to_derive(args: &DeriveArgs) -> Result<Phrase, CliError> {
    if args.dev {
        return Ok(Phrase::parse(DEVELOPMENT_MNEMONIC)?);
    }
    let Some(name) = &args.wallet else {
        return read_phrase(args.mnemonic_file.as_deref());
    };
    let wallet = args.store.open(name, &args.password)?;
    Ok(wallet.expose_phrase().ok_or(wallet::WalletError::NoMnemonic)?.clone())
}

fn described(stored: &StoredWallet, wallet: &Wallet) -> serde_json::Value {
    json!({
        "name": stored.name,
        "address": stored.address,
        "publicKey": wallet.public_key(),
        "file": stored.path,
    })
}

fn print_stored(stored: &StoredWallet, wallet: &Wallet, out: Out<'_>) -> Outcome {
    let file = stored.path.display().to_string();
    writeln!(out, "{}", facts(public_facts(wallet).into_iter().chain([("file", file)])))?;
    Ok(())
}

fn public_facts(wallet: &Wallet) -> [(&'static str, String); 3] {
    let origin = wallet.index().map_or_else(
        || "private key, no words".to_owned(),
        |index| format!("words, m/44'/7777'/0'/0/{index}"),
    );
    [
        ("address", wallet.address().to_string()),
        ("public key", wallet.public_key().to_string()),
        ("made from", origin),
    ]
}
