//! Accounts for development chains, the same on every machine. Their keys are public: never fund them elsewhere.

use types::Keypair;

use crate::{Phrase, WalletError};

/// The words from which development accounts are derived unless others are given.
pub const DEVELOPMENT_MNEMONIC: &str =
    "test test test test test test test test test test test junk";

/// The key of development account `index`.
///
/// # Errors
/// When the index is 2^31 or more.
pub fn development_account(index: u32) -> Result<Keypair, WalletError> {
    Phrase::parse(DEVELOPMENT_MNEMONIC)?.derive(index)
}

/// The keys of accounts `0..count` of a mnemonic.
///
/// # Errors
/// When `count` is above 2^31.
pub fn first_accounts(phrase: &Phrase, count: u32) -> Result<Vec<Keypair>, WalletError> {
    let keys = phrase.keys()?;
    (0..count).map(|index| keys.at(index)).collect()
}

#[cfg(test)]
mod tests {
    //! The accounts that documents and tests name by address.

    use super::{DEVELOPMENT_MNEMONIC, development_account, first_accounts};
    use crate::Phrase;

    #[test]
    fn the_development_accounts_are_those_of_the_python_sdk() {
        let phrase = Phrase::parse(DEVELOPMENT_MNEMONIC).unwrap();
        let addresses: Vec<String> = first_accounts(&phrase, 10)
            .unwrap()
            .iter()
            .map(|keypair| keypair.address().to_string())
            .collect();
        let expected = [
            "de133ca6f509c74f6e2e849403cc461d2d5b3e3c",
            "69779141b27f1fb5062164ab88e27a4d00e34862",
            "af451b0caec39fbe78d06df438fbf693350ed13c",
            "135151701fb060be16c737a0803e1259bb247f1e",
            "b44b53c16e13321f92ae9478ca67740a1c5d0cf4",
            "0e057138a7e97c9a8e3198f3eca519748907175f",
            "1bb4ab0ba2ca832d6b14510ed196d98ee6374cc8",
            "dcb5eebfeb7d2f79638589627cb604416715ed71",
            "d12c073efc51530c967aa85d3baee31b4dd02439",
            "a8771d443751bbb4d5adcd88ec3bdb605920fb7b",
        ];
        assert_eq!(expected.as_slice(), addresses);
        assert_eq!(expected[7], development_account(7).unwrap().address().to_string());
    }
}
