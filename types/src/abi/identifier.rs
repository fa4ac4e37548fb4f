//! Solidity's identifiers and reserved words.

use super::name::TypeName;

/// Keywords and reserved words, sorted, without those of [`is_sized`].
const RESERVED: &[&str] = &[
    "abstract",
    "address",
    "after",
    "alias",
    "anonymous",
    "apply",
    "as",
    "assembly",
    "auto",
    "bool",
    "break",
    "byte",
    "bytes",
    "calldata",
    "case",
    "catch",
    "constant",
    "constructor",
    "continue",
    "contract",
    "copyof",
    "days",
    "default",
    "define",
    "delete",
    "do",
    "else",
    "emit",
    "enum",
    "ether",
    "event",
    "external",
    "fallback",
    "false",
    "final",
    "fixed",
    "for",
    "function",
    "gwei",
    "hex",
    "hours",
    "if",
    "immutable",
    "implements",
    "import",
    "in",
    "indexed",
    "inline",
    "int",
    "interface",
    "internal",
    "is",
    "let",
    "library",
    "macro",
    "mapping",
    "match",
    "memory",
    "minutes",
    "modifier",
    "mutable",
    "new",
    "null",
    "of",
    "override",
    "partial",
    "payable",
    "pragma",
    "private",
    "promise",
    "public",
    "pure",
    "receive",
    "reference",
    "relocatable",
    "return",
    "returns",
    "sealed",
    "seconds",
    "sizeof",
    "static",
    "storage",
    "string",
    "struct",
    "supports",
    "switch",
    "throw",
    "true",
    "try",
    "type",
    "typedef",
    "typeof",
    "ufixed",
    "uint",
    "unchecked",
    "unicode",
    "using",
    "var",
    "view",
    "virtual",
    "weeks",
    "wei",
    "while",
    "years",
];

/// Whether a text has the form of an identifier: letters, digits, `_` and `$`, and no digit at the
/// beginning.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$';
    text.bytes().next().is_some_and(is_letter)
        && text.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// Whether Solidity reserves the word, so that it cannot be used as a name. `from`, `error`,
/// `revert`, `global`, `layout`, `transient` and `at` are not reserved.
#[must_use]
pub fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok() || is_sized(word)
}

/// Names of types with their size: `bytes1` to `bytes32`, `int8` to `int256`, `uint8` to `uint256`.
fn is_sized(word: &str) -> bool {
    word.ends_with(|last: char| last.is_ascii_digit())
        && TypeName::parse(word).is_ok_and(|name| name.dimensions().is_empty())
}
