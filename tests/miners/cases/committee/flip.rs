//! Flips one bit of the model in the memory of a miner that runs, as a bad memory chip would.
//!
//! The manifest of a model has the hash of its file, so a miner with another file would not be
//! wrong but a miner of another model. The miner hashes the file while it reads it, and computes
//! with what it has in memory from then on: private pages, which `/proc/PID/mem` lets its parent
//! process write. Matrices are laid out anew there, but the numbers with which each layer scales
//! what it reads are kept as they stand in the file. So those of the first layer are searched for
//! in all pages that the miner can write, and of the largest of them, through which everything goes
//! that the model reads, the sign is changed: 1 bit of some 100 million bytes. No number becomes
//! infinite or none, and every score of the model is another one.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

/// The numbers that are searched for.
const TENSOR: &[u8] = b"blk.0.attn_norm.weight";
/// Where tensors begin in a file that says nothing of it: at multiples of this.
const ALIGNMENT: usize = 32;
/// The number of the form of 32-bit floats.
const F32: u32 = 0;
/// Bytes of a float.
const WIDTH: usize = 4;
/// The sign is the highest bit of the last byte.
const SIGN: u8 = 0x80;
/// Memory that is read at a time.
const CHUNK: usize = 16 * 1024 * 1024;

/// Flips the bit wherever the numbers are in the memory of a process; answers at how many places.
pub(super) fn one_bit(pid: u32, model: &Path) -> anyhow::Result<usize> {
    let numbers = tensor(&std::fs::read(model)?).context("the numbers in the model's file")?;
    let (floats, _) = numbers.as_chunks::<WIDTH>();
    let size = |it: &(usize, f32)| it.1.abs();
    let floats = floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).enumerate();
    let largest = floats.max_by(|one, other| size(one).total_cmp(&size(other)));
    let (place, _) = largest.context("no numbers")?;
    let at = place * WIDTH + WIDTH - 1;
    let byte = numbers.get(at).context("the byte of the sign")? ^ SIGN;

    let path = format!("/proc/{pid}/mem");
    let memory = File::options().read(true).write(true).open(&path).context(path)?;
    let found = places(pid, &memory, &numbers)?;
    ensure!(!found.is_empty(), "the model is not in the memory of the miner");
    for begin in &found {
        memory.write_all_at(&[byte], begin + u64::try_from(at)?)?;
    }
    let after = places(pid, &memory, &numbers)?;
    ensure!(after.is_empty(), "the numbers are still in {} places", after.len());
    Ok(found.len())
}

/// Where these bytes are in the pages that the process can write.
fn places(pid: u32, memory: &File, wanted: &[u8]) -> anyhow::Result<Vec<u64>> {
    let mut found = Vec::new();
    let mut buffer = vec![0; CHUNK];
    for line in std::fs::read_to_string(format!("/proc/{pid}/maps"))?.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        if !rights.starts_with("rw") {
            continue;
        }
        let (from, to) = range.split_once('-').context("a range of addresses")?;
        let (mut from, to) = (u64::from_str_radix(from, 16)?, u64::from_str_radix(to, 16)?);
        while from < to {
            let most = usize::try_from(to - from)?.min(CHUNK);
            let Some(part) = buffer.get_mut(..most) else { bail!("a short buffer") };
            // What was given back meanwhile cannot be read.
            let read = memory.read_at(part, from).unwrap_or(0);
            let part = part.get(..read).unwrap_or_default();
            for at in starts(part, wanted) {
                found.push(from + u64::try_from(at)?);
            }
            // The next part begins so that what lies across the end is in it.
            let overlap = if read == CHUNK { wanted.len() } else { 0 };
            if read == 0 {
                break;
            }
            from += u64::try_from(read - overlap)?;
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Where the wanted bytes begin; floats begin at multiples of their width.
fn starts(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    let Some(first) = wanted.first_chunk::<WIDTH>() else { return Vec::new() };
    let (words, _) = bytes.as_chunks::<WIDTH>();
    let alike = words.iter().enumerate().filter(|(_, word)| *word == first);
    let begins = alike.map(|(place, _)| place * WIDTH);
    begins.filter(|at| bytes.get(*at..).is_some_and(|rest| rest.starts_with(wanted))).collect()
}

/// The bytes of the tensor in a model file (GGUF): behind the header with its settings and the
/// directory of tensors, at the tensor's own distance.
fn tensor(file: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut source = Source(file);
    ensure!(source.take(4)? == b"GGUF", "no GGUF");
    ensure!(source.u32()? == 3, "another version of GGUF");
    let (tensors, settings) = (source.u64()?, source.u64()?);
    for _ in 0..settings {
        source.text()?;
        let form = source.u32()?;
        source.skip(form)?;
    }
    let mut found = None;
    for _ in 0..tensors {
        let name = source.text()?;
        let dimensions = source.u32()?;
        let mut count = 1_usize;
        for _ in 0..dimensions {
            let length = usize::try_from(source.u64()?)?;
            count = count.checked_mul(length).context("an odd size")?;
        }
        let (form, offset) = (source.u32()?, usize::try_from(source.u64()?)?);
        if name == TENSOR {
            ensure!(form == F32, "the numbers are no floats of 32 bits");
            found = Some((offset, count));
        }
    }
    let (offset, count) = found.context("there is no such tensor")?;
    let begin = (file.len() - source.0.len()).next_multiple_of(ALIGNMENT) + offset;
    let bytes = file.get(begin..begin + count * WIDTH).context("the file is cut off")?;
    Ok(bytes.to_vec())
}

/// What is left of a file.
struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn take(&mut self, count: usize) -> anyhow::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).context("the file is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> anyhow::Result<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into()?))
    }

    fn u64(&mut self) -> anyhow::Result<u64> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into()?))
    }

    fn text(&mut self) -> anyhow::Result<&'a [u8]> {
        let length = usize::try_from(self.u64()?)?;
        self.take(length)
    }

    /// Steps over the value of a setting.
    fn skip(&mut self, form: u32) -> anyhow::Result<()> {
        let bytes = match form {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            8 => return self.text().map(drop),
            9 => {
                let (form, count) = (self.u32()?, self.u64()?);
                return (0..count).try_for_each(|_| self.skip(form));
            }
            form => bail!("a setting of the form {form}"),
        };
        self.take(bytes).map(drop)
    }
}
