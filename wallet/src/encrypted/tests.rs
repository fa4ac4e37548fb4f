//! Round trips, files made by the public Python SDK, and everything that must be refused.

use super::{decrypt, encrypt, plaintext, seal};
use crate::error::WalletFileFault;
use crate::{Phrase, Wallet, WalletError};

const SDK_WALLET: &[u8] = include_bytes!("../../tests/fixtures/sdk-wallet.json");
const SDK_KEY_ONLY: &[u8] = include_bytes!("../../tests/fixtures/sdk-key-only.json");
const SDK_PASSWORD: &str = "correct horse țară 😀";

fn golden() -> Wallet {
    let words = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about";
    Wallet::from_phrase(Phrase::parse(words).unwrap(), 0).unwrap()
}

/// Encrypts any text as if it were a wallet.
fn sealed(text: &str) -> String {
    let (salt, iv) = ([1; 16], [2; 12]);
    let bytes = seal(text.as_bytes(), "pw", &salt, iv);
    format!(
        r#"{{"salt":"{}","iv":"{}","ciphertext":"{}","v":1}}"#,
        const_hex::encode(salt),
        const_hex::encode(iv),
        const_hex::encode(bytes)
    )
}

#[test]
fn files_of_the_python_sdk_open_with_words_and_without() {
    let of_key = Wallet::from_private_key(&"ab".repeat(32)).unwrap();
    for (file, password, expected, address) in [
        (SDK_WALLET, SDK_PASSWORD, golden(), "94bfbb5fbd2fea4c67be283d36528a3cfd1cfda3"),
        (SDK_KEY_ONLY, "pw", of_key, "3340df54cb41c460f52c2ee61132f47e75459cb6"),
    ] {
        let wallet = decrypt(file, password).unwrap();
        assert_eq!(address, wallet.address().to_string());
        assert_eq!((expected.index(), plaintext(&expected)), (wallet.index(), plaintext(&wallet)));
    }
}

#[test]
fn a_written_file_opens_with_its_password_and_no_other() {
    for wallet in [golden(), Wallet::from_private_key(&"7f".repeat(32)).unwrap()] {
        let text = encrypt(&wallet, "țară 😀").unwrap();
        let again = decrypt(text.as_bytes(), "țară 😀").unwrap();
        assert_eq!(plaintext(&wallet), plaintext(&again));
        let refused = decrypt(text.as_bytes(), "tara 😀");
        assert!(matches!(refused, Err(WalletError::WrongPassword)));
    }
}

#[test]
fn the_encrypted_text_has_the_keys_and_order_of_the_format() {
    let expected = concat!(
        r#"{"address":"94bfbb5fbd2fea4c67be283d36528a3cfd1cfda3","#,
        r#""publicKey":"ed5509fe8b726488ca7bd896040755bb1fe6377fc30cfa595f4d223ca1976f67","#,
        r#""privateKey":"2b5159fc0ec5030712e9ff87b9b83b4ae0ae7d50a601a9aaa44837f8038f37fb","#,
        r#""mnemonic":"abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about","#,
        r#""hdIndex":0}"#,
    );
    assert_eq!(expected, *plaintext(&golden()));
}

#[test]
fn a_change_anywhere_in_the_ciphertext_is_noticed() {
    let text = encrypt(&golden(), "pw").unwrap();
    let start = text.find("ciphertext").unwrap() + 14;
    for position in [start, start + 40, text.rfind("\",").unwrap() - 1] {
        let mut bytes = text.clone().into_bytes();
        bytes[position] = if bytes[position] == b'0' { b'1' } else { b'0' };
        assert!(matches!(decrypt(&bytes, "pw"), Err(WalletError::WrongPassword)), "{position}");
    }
}

#[test]
fn two_files_of_one_wallet_share_neither_salt_nor_iv() {
    let (one, other) = (encrypt(&golden(), "pw").unwrap(), encrypt(&golden(), "pw").unwrap());
    let texts = |file: &str| -> Vec<String> {
        file.lines().filter(|line| line.contains(": \"")).map(str::to_owned).collect()
    };
    let (one, other) = (texts(&one), texts(&other));
    assert_eq!((3, 3), (one.len(), other.len()), "salt, iv and ciphertext: {one:?}");
    assert!(one.iter().all(|line| !other.contains(line)), "{one:?} {other:?}");
}

#[test]
fn what_is_not_a_wallet_file_is_refused_with_its_fault() {
    let salt = "00".repeat(16);
    let iv = "00".repeat(12);
    let tag = "00".repeat(16);
    let cases = [
        (String::new(), WalletFileFault::Shape),
        ("[]".into(), WalletFileFault::Shape),
        (r#"{"salt":1}"#.into(), WalletFileFault::Shape),
        (file("00", &iv, &tag), WalletFileFault::Salt),
        (file(&"zz".repeat(16), &iv, &tag), WalletFileFault::Salt),
        (file(&salt, &salt, &tag), WalletFileFault::Iv),
        (file(&salt, &iv, "0"), WalletFileFault::Ciphertext),
        (file(&salt, &iv, "00"), WalletFileFault::Ciphertext),
        (sealed("{}"), WalletFileFault::Plaintext),
        (sealed("\u{fffd}"), WalletFileFault::Plaintext),
    ];
    for (text, expected) in cases {
        let refused = decrypt(text.as_bytes(), "pw");
        assert!(
            matches!(&refused, Err(WalletError::NotAWalletFile(fault)) if *fault == expected),
            "{text}: {refused:?}"
        );
    }
    let later = file(&salt, &iv, &tag).replace("\"v\":1", "\"v\":2");
    assert!(matches!(decrypt(later.as_bytes(), "pw"), Err(WalletError::UnknownVersion(2))));
}

#[test]
fn a_file_whose_parts_do_not_belong_together_is_refused() {
    let right = plaintext(&golden());
    let cases = [
        (right.replace("94bf", "94b0"), "address"),
        (right.replace("ed5509", "ed5500"), "public key"),
        (right.replace("\"hdIndex\":0", "\"hdIndex\":1"), "mnemonic"),
        (
            right
                .replace(&["abandon"; 11].join(" "), &["zoo"; 11].join(" "))
                .replace("about", "wrong"),
            "mnemonic",
        ),
    ];
    for (text, part) in cases {
        let refused = decrypt(sealed(&text).as_bytes(), "pw");
        assert!(
            matches!(refused, Err(WalletError::Inconsistent(found)) if found == part),
            "{part}"
        );
    }
}

#[test]
fn an_empty_password_is_refused_for_a_new_file() {
    assert!(matches!(encrypt(&golden(), ""), Err(WalletError::EmptyPassword)));
}

fn file(salt: &str, iv: &str, ciphertext: &str) -> String {
    format!(r#"{{"salt":"{salt}","iv":"{iv}","ciphertext":"{ciphertext}","v":1}}"#)
}
