//! The common types of the ABI of contracts: `string`, `bytes`, `bool`, numbers of up to 64 bits, arrays of
//! strings. Everything else can be read and written as words of 32 bytes.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Fault;

const WORD: usize = 32;
const SELECTOR: usize = 4;

/// The arguments of a call, or the outputs of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a>(&'a [u8]);

impl<'a> Arguments<'a> {
    /// Those of a payload, behind the selector of its method.
    ///
    /// # Errors
    /// When there is no selector.
    pub fn of(payload: &'a [u8]) -> Result<Self, Fault> {
        payload.get(SELECTOR..).map(Self).ok_or_else(|| Fault::from("the payload has no selector"))
    }

    /// The outputs that another agent gave.
    #[must_use]
    pub const fn outputs(result: &'a [u8]) -> Self {
        Self(result)
    }

    /// The word at a place.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn word(&self, place: usize) -> Result<[u8; WORD], Fault> {
        let start = place.checked_mul(WORD).ok_or_else(short)?;
        let word = self.0.get(start..).and_then(|rest| rest.first_chunk());
        word.copied().ok_or_else(short)
    }

    /// A number that is not negative.
    ///
    /// # Errors
    /// When it is not there, or has more than 64 bits.
    pub fn uint(&self, place: usize) -> Result<u64, Fault> {
        let word = self.word(place)?;
        let (high, low) = word.split_at(WORD - 8);
        if high.iter().any(|byte| *byte != 0) {
            return Err("a number has more than 64 bits".into());
        }
        Ok(low.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A yes or no.
    ///
    /// # Errors
    /// When it is not there, or neither.
    pub fn bool(&self, place: usize) -> Result<bool, Fault> {
        match self.uint(place)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("neither yes nor no".into()),
        }
    }

    /// Bytes of any length.
    ///
    /// # Errors
    /// When they are not there.
    pub fn bytes(&self, place: usize) -> Result<&'a [u8], Fault> {
        self.tail(place)?.counted()
    }

    /// A text.
    ///
    /// # Errors
    /// When it is not there, or no UTF-8.
    pub fn string(&self, place: usize) -> Result<&'a str, Fault> {
        core::str::from_utf8(self.bytes(place)?).map_err(|_| Fault::from("a text is no UTF-8"))
    }

    /// An array of texts.
    ///
    /// # Errors
    /// When it is not there, or one is none.
    pub fn strings(&self, place: usize) -> Result<Vec<&'a str>, Fault> {
        let array = self.tail(place)?;
        let count = usize::try_from(array.uint(0)?).map_err(|_| short())?;
        let items = Self(array.0.get(WORD..).ok_or_else(short)?);
        // As many as there are offsets for, whatever the count says.
        if count > items.0.len() / WORD {
            return Err(short());
        }
        (0..count).map(|index| items.string(index)).collect()
    }

    /// What the offset at a place points to.
    fn tail(&self, place: usize) -> Result<Self, Fault> {
        let offset = usize::try_from(self.uint(place)?).map_err(|_| short())?;
        self.0.get(offset..).map(Self).ok_or_else(short)
    }

    fn counted(&self) -> Result<&'a [u8], Fault> {
        let length = usize::try_from(self.uint(0)?).map_err(|_| short())?;
        self.0.get(WORD..).and_then(|rest| rest.get(..length)).ok_or_else(short)
    }
}

fn short() -> Fault {
    "the arguments are cut off".into()
}

/// Collects values; `finish` gives their encoding.
#[derive(Clone, Debug, Default)]
pub struct Outputs(Vec<Value>);

#[derive(Clone, Debug)]
enum Value {
    Word([u8; WORD]),
    Tail(Vec<u8>),
}

impl Outputs {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a word.
    #[must_use]
    pub fn word(mut self, word: [u8; WORD]) -> Self {
        self.0.push(Value::Word(word));
        self
    }

    /// Adds a number that is not negative.
    #[must_use]
    pub fn uint(self, number: u64) -> Self {
        self.word(number_word(number))
    }

    /// Adds a signed number.
    #[must_use]
    pub fn int(self, number: i64) -> Self {
        let mut word = [if number < 0 { 0xff } else { 0 }; WORD];
        word[WORD - 8..].copy_from_slice(&number.to_be_bytes());
        self.word(word)
    }

    /// Adds a yes or no.
    #[must_use]
    pub fn bool(self, value: bool) -> Self {
        self.uint(value.into())
    }

    /// Adds bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut tail = number_word(bytes.len() as u64).to_vec();
        tail.extend_from_slice(bytes);
        tail.resize(tail.len().next_multiple_of(WORD), 0);
        self.0.push(Value::Tail(tail));
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn string(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// The encoding.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        let offset = self.0.len() * WORD;
        for value in self.0 {
            match value {
                Value::Word(word) => head.extend_from_slice(&word),
                Value::Tail(bytes) => {
                    head.extend_from_slice(&number_word((offset + tail.len()) as u64));
                    tail.extend_from_slice(&bytes);
                }
            }
        }
        head.extend_from_slice(&tail);
        head
    }

    /// The payload of a call with these arguments: the first bytes name the method.
    #[must_use]
    pub fn payload(self, selector: [u8; SELECTOR]) -> Vec<u8> {
        let mut payload = selector.to_vec();
        payload.extend_from_slice(&self.finish());
        payload
    }
}

fn number_word(number: u64) -> [u8; WORD] {
    let mut word = [0; WORD];
    word[WORD - 8..].copy_from_slice(&number.to_be_bytes());
    word
}

/// `0x` and hex.
#[must_use]
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::from("0x");
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
    text
}

/// The bytes of `0x` and hex.
#[must_use]
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> =
        text.strip_prefix("0x")?.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}
