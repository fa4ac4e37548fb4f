//! Reading what people give: texts, files, addresses, amounts.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use types::{Address, Amount};
use wallet::Zeroizing;
use wallet::accounts::development_account;

use super::CliError;

/// A secret's file is not larger.
const SECRET_BYTES_MAX: u64 = 4096;
const MICRO_DIGITS: usize = 6;
/// What the name of a development account begins with.
pub(super) const DEVELOPMENT: &str = "dev:";

/// The first line of a file (`-` is standard input), without its line end.
pub(crate) fn first_line(path: &Path) -> Result<Zeroizing<String>, CliError> {
    let text = Zeroizing::new(read_text(path, SECRET_BYTES_MAX)?);
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        return Err(CliError::Usage(format!("{}: the first line is empty", path.display())));
    }
    Ok(Zeroizing::new(line.to_owned()))
}

/// A whole text file (`-` is standard input) of at most `bytes_max` bytes.
pub(super) fn read_text(path: &Path, bytes_max: u64) -> Result<String, CliError> {
    let fault = |source| CliError::file(path.display(), source);
    String::from_utf8(read_bytes(path, bytes_max)?)
        .map_err(|error| fault(io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// A whole file (`-` is standard input) of at most `bytes_max` bytes.
pub(super) fn read_bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, CliError> {
    let fault = |source| CliError::file(path.display(), source);
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(fault)?)
    };
    let mut bytes = Vec::new();
    let limit = bytes_max.saturating_add(1);
    source.take(limit).read_to_end(&mut bytes).map_err(fault)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > bytes_max {
        let name = path.display();
        return Err(CliError::Usage(format!("{name} is larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// The text of an argument, or else of a file.
pub(super) fn text_or_file(
    text: Option<String>,
    file: Option<&Path>,
    bytes_max: u64,
) -> Result<Option<String>, CliError> {
    match (text, file) {
        (Some(text), _) => Ok(Some(text)),
        (None, Some(path)) => read_text(path, bytes_max).map(Some),
        (None, None) => Ok(None),
    }
}

/// An address: 40 hex characters, `ox` and 40 hex characters, or `dev:N` for development account N.
pub(crate) fn address(text: &str) -> Result<Address, String> {
    payee(text).map(|payee| payee.address)
}

/// Who is to be paid: an address, and the N of `dev:N` if it was written so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Payee {
    pub(super) address: Address,
    pub(super) development: Option<u32>,
}

/// The same as an [`address`]; whether it may be paid is for the key to say that pays.
pub(crate) fn payee(text: &str) -> Result<Payee, String> {
    let Some(index) = text.strip_prefix(DEVELOPMENT) else {
        let address = Address::parse(text).map_err(|error| error.to_string())?;
        return Ok(Payee { address, development: None });
    };
    let index = index.parse().map_err(|_number| format!("{text:?}: expected dev:N"))?;
    let key = development_account(index).map_err(|error| error.to_string())?;
    Ok(Payee { address: key.address(), development: Some(index) })
}

/// An amount: digits are micro-OMBRA, with the unit `ombra` it may have six decimals (`1.5ombra`).
pub(crate) fn amount(text: &str) -> Result<Amount, String> {
    let lower = text.trim().to_ascii_lowercase();
    let Some(ombra) = lower.strip_suffix("ombra") else {
        return Amount::parse(&lower).map_err(|_text| expected_amount(text));
    };
    let ombra = ombra.trim_end();
    let (whole, fraction) = ombra.split_once('.').unwrap_or((ombra, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > MICRO_DIGITS {
        return Err(expected_amount(text));
    }
    format!("{whole}{fraction:0<MICRO_DIGITS$}")
        .parse()
        .map(Amount::new)
        .map_err(|_overflow| expected_amount(text))
}

fn expected_amount(text: &str) -> String {
    format!("{text:?}: expected micro-OMBRA (1500000) or OMBRA with its unit (1.5ombra)")
}

#[cfg(test)]
mod tests {
    //! Amounts and addresses as people write them.

    use types::Amount;

    use super::{address, amount};

    #[test]
    fn amounts_are_micro_unless_the_unit_is_written() {
        for (text, micro) in [
            ("0", 0),
            ("1500000", 1_500_000),
            ("1ombra", 1_000_000),
            ("1.5 OMBRA", 1_500_000),
            ("0.000001ombra", 1),
            ("18446744073709.551615ombra", u64::MAX),
        ] {
            assert_eq!(Ok(Amount::new(micro)), amount(text), "{text}");
        }
    }

    #[test]
    fn unclear_amounts_are_refused() {
        for text in [
            "",
            "1.5",
            "-1",
            "1e6",
            "ombra",
            ".5ombra",
            "1.ombra",
            "1.0000001ombra",
            "1 000",
            "18446744073709.551616ombra",
            "+1ombra",
        ] {
            assert!(amount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_have_three_written_forms() {
        let hex = "de133ca6f509c74f6e2e849403cc461d2d5b3e3c";
        for text in [hex, &format!("ox{hex}"), "dev:0"] {
            assert_eq!(hex, address(text).unwrap().to_string());
        }
        for text in ["", "dev:", "dev:-1", "dev:4294967295", "0xde13"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
