//! The encrypted wallet file of the public Ombra clients, read and written (docs/protocol.md section 2).
//!
//! ```text
//! {"salt": hex 16 bytes, "iv": hex 12 bytes, "ciphertext": hex, "v": 1}
//! key        = PBKDF2-HMAC-SHA256(password, salt, 100,000 rounds, 32 bytes)
//! ciphertext = AES-256-GCM(key, iv, plaintext, no associated data) | 16 bytes tag
//! plaintext  = {"address","publicKey","privateKey","mnemonic"?,"hdIndex"?}, compact JSON
//! ```

use aes_gcm::aead::Aead;
use aes_gcm::{Aes256Gcm, KeyInit, Nonce};
use serde::Deserialize;
use types::{Address, PublicKey};
use zeroize::{Zeroize, Zeroizing};

use crate::error::WalletFileFault;
use crate::owner::parse_private_key;
use crate::{Phrase, Wallet, WalletError};

const ROUNDS: u32 = 100_000;
const SALT_BYTES: usize = 16;
const IV_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const VERSION: u64 = 1;

/// What the file holds in the clear. Unknown keys are ignored, as the other clients do.
#[derive(Deserialize)]
struct Sealed {
    salt: String,
    iv: String,
    ciphertext: String,
    v: u64,
}

/// What the file encrypts.
#[derive(Deserialize, Zeroize)]
#[serde(rename_all = "camelCase")]
struct Opened {
    address: String,
    public_key: String,
    private_key: String,
    mnemonic: Option<String>,
    hd_index: Option<u32>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.zeroize();
    }
}

/// Encrypts a wallet under a password with a fresh salt and IV; the answer is the file's text.
///
/// # Errors
/// When the password is empty or the system gives no random bytes.
pub fn encrypt(wallet: &Wallet, password: &str) -> Result<String, WalletError> {
    if password.is_empty() {
        return Err(WalletError::EmptyPassword);
    }
    let mut salt = [0_u8; SALT_BYTES];
    let mut iv = [0_u8; IV_BYTES];
    getrandom::fill(&mut salt).map_err(WalletError::NoRandomness)?;
    getrandom::fill(&mut iv).map_err(WalletError::NoRandomness)?;
    let ciphertext = seal(plaintext(wallet).as_bytes(), password, &salt, iv);
    Ok(format!(
        "{{\n  \"salt\": \"{}\",\n  \"iv\": \"{}\",\n  \"ciphertext\": \"{}\",\n  \"v\": {VERSION}\n}}\n",
        const_hex::encode(salt),
        const_hex::encode(iv),
        const_hex::encode(ciphertext)
    ))
}

/// Opens the text of a wallet file.
///
/// # Errors
/// When it is not a wallet file, its version is unknown, the password is wrong or the file was
/// changed, or the address, the public key or the words inside do not belong to the private key.
pub fn decrypt(text: &[u8], password: &str) -> Result<Wallet, WalletError> {
    let fault = WalletError::NotAWalletFile;
    let sealed: Sealed =
        serde_json::from_slice(text).map_err(|_shape| fault(WalletFileFault::Shape))?;
    if sealed.v != VERSION {
        return Err(WalletError::UnknownVersion(sealed.v));
    }
    let salt: [u8; SALT_BYTES] =
        const_hex::decode_to_array(&sealed.salt).map_err(|_hex| fault(WalletFileFault::Salt))?;
    let iv: [u8; IV_BYTES] =
        const_hex::decode_to_array(&sealed.iv).map_err(|_hex| fault(WalletFileFault::Iv))?;
    let ciphertext = const_hex::decode(&sealed.ciphertext)
        .ok()
        .filter(|bytes| bytes.len() >= TAG_BYTES)
        .ok_or_else(|| fault(WalletFileFault::Ciphertext))?;
    let plaintext = cipher(password, &salt)
        .decrypt(&Nonce::from(iv), ciphertext.as_slice())
        .map(Zeroizing::new)
        .map_err(|_unauthentic| WalletError::WrongPassword)?;
    open(&plaintext)
}

/// Reads the decrypted text and checks that its parts belong together.
fn open(plaintext: &[u8]) -> Result<Wallet, WalletError> {
    let opened: Opened = serde_json::from_slice(plaintext)
        .map_err(|_shape| WalletError::NotAWalletFile(WalletFileFault::Plaintext))?;
    let keypair = parse_private_key(&opened.private_key)?;
    if opened.public_key.parse::<PublicKey>().ok() != Some(keypair.public_key()) {
        return Err(WalletError::Inconsistent("public key"));
    }
    if opened.address.parse::<Address>().ok() != Some(keypair.address()) {
        return Err(WalletError::Inconsistent("address"));
    }
    let Some(words) = &opened.mnemonic else { return Ok(Wallet::from_keypair(keypair)) };
    let wallet = Wallet::from_phrase(Phrase::parse(words)?, opened.hd_index.unwrap_or(0))?;
    // Whoever trusts in these words must get this account back from them.
    if wallet.public_key() != keypair.public_key() {
        return Err(WalletError::Inconsistent("mnemonic"));
    }
    Ok(wallet)
}

/// The text to encrypt, keys in the order of the format. Every value is free of characters that need escapes.
fn plaintext(wallet: &Wallet) -> Zeroizing<String> {
    let origin = wallet.expose_phrase().zip(wallet.index());
    let tail = Zeroizing::new(match origin {
        Some((phrase, index)) => {
            format!(",\"mnemonic\":\"{}\",\"hdIndex\":{index}", phrase.expose())
        }
        None => String::new(),
    });
    Zeroizing::new(format!(
        "{{\"address\":\"{}\",\"publicKey\":\"{}\",\"privateKey\":\"{}\"{}}}",
        wallet.address(),
        wallet.public_key(),
        *wallet.expose_private_key(),
        *tail
    ))
}

/// Encrypts a text of any content.
fn seal(plaintext: &[u8], password: &str, salt: &[u8; SALT_BYTES], iv: [u8; IV_BYTES]) -> Vec<u8> {
    cipher(password, salt)
        .encrypt(&Nonce::from(iv), plaintext)
        .expect("a wallet is far below the cipher's limit of 64 GiB")
}

/// The cipher under the stretched password.
fn cipher(password: &str, salt: &[u8; SALT_BYTES]) -> Aes256Gcm {
    let mut key = Zeroizing::new([0_u8; 32]);
    pbkdf2::pbkdf2_hmac::<pbkdf2::sha2::Sha256>(password.as_bytes(), salt, ROUNDS, key.as_mut());
    Aes256Gcm::new((&*key).into())
}

#[cfg(test)]
mod tests;
