//! What `ombra keys` says of a wallet beside its answer.

use std::path::Path;
use std::process::Output;

use testkit::node::program;
use testkit::process::output;

/// Runs `ombra keys` on the key store of a folder.
fn keys(folder: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    let mut command = program();
    command.arg("keys").args(arguments).current_dir(folder);
    command.env("OMBRA_KEYS_DIR", folder.join("keys"));
    command.env("OMBRA_PASSWORD_FILE", folder.join("pw"));
    output(&mut command)
}

#[test]
fn the_index_of_an_account_is_told_beside_its_words_and_not_among_them() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("pw"), "secret\n")?;
    let words = format!("{} about\n", ["abandon"; 11].join(" "));
    std::fs::write(folder.path().join("words"), &words)?;
    let saved = ["derive", "--mnemonic-file", "words", "--index", "3", "--save", "savings"];
    assert!(keys(folder.path(), &saved)?.status.success());
    let exported = keys(folder.path(), &["export", "savings", "--secret", "mnemonic"])?;
    assert_eq!(words, String::from_utf8(exported.stdout)?);
    let said = String::from_utf8(exported.stderr)?;
    assert!(said.contains("the index of this account is 3"), "{said}");
    Ok(())
}
