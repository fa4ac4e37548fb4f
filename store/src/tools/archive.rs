//! Blocks in a file.
//!
//! ```text
//! "OMBRABLK" | version u32 | genesis hash, 32 bytes | first height u64 | last height u64
//! for each block: length of the block u32 | length of its certificate u32 | block | certificate
//! SHA-256 of everything before, 32 bytes
//! ```
//! Integers are little-endian; a block is [`types::Block::encode`].

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use state::error::StorageError;
use types::Hash;

use super::error::ToolError;
use super::execution::{EncodedBlock, Replay};
use super::{Progress, ahead};
use crate::database::Store;
use crate::meta::Tip;

const MAGIC: &[u8; 8] = b"OMBRABLK";
const VERSION: u32 = 1;

/// No block and no certificate is longer.
const PART_BYTES_MAX: u32 = 256 << 20;

/// Writes the blocks `first..=last` (the tip if `None` or higher) into the file `to`, which must not
/// exist. Answers how many. The file gets its name when all of it is on the disk; until then it is
/// beside it with `.part` appended, and an export that fails deletes that.
///
/// # Errors
/// [`ToolError::Exists`], [`ToolError::File`], [`ToolError::NoBlocks`] if there is no height from
/// `first` to `last`, or [`ToolError::Missing`] for a height that is not there.
pub fn export(
    store: &Store,
    to: &Path,
    (first, last): (u64, Option<u64>),
    progress: Progress<'_>,
) -> Result<u64, ToolError> {
    let tip = store.tip()?.height;
    let (first, last) = (first.max(1), last.unwrap_or(tip).min(tip));
    if first > last {
        return Err(ToolError::NoBlocks { first, last });
    }
    if to.exists() {
        return Err(ToolError::Exists { path: to.to_path_buf() });
    }
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let file = |source| ToolError::File { path: to.to_path_buf(), source };
    let exported = write_blocks(store, part, (first, last), progress)
        .and_then(|()| fs::rename(part, to).map_err(file))
        .and_then(|()| sync_folder_of(to).map_err(file));
    if let Err(error) = exported {
        // The first error is the one to tell.
        drop(fs::remove_file(part));
        return Err(error);
    }
    Ok(last.saturating_sub(first).saturating_add(1))
}

/// A new name is on the disk when its folder is.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

/// Writes the file of an export, synced. One of an earlier attempt is replaced.
fn write_blocks(
    store: &Store,
    to: &Path,
    (first, last): (u64, u64),
    progress: Progress<'_>,
) -> Result<(), ToolError> {
    let file = |source| ToolError::File { path: to.to_path_buf(), source };
    let genesis = store.genesis_hash()?.ok_or(StorageError::Empty)?;
    let out = File::create(to).map_err(file)?;
    let mut out = Hashed { inner: BufWriter::new(out), hasher: Sha256::new() };
    let head = [MAGIC.as_slice(), &VERSION.to_le_bytes(), genesis.as_bytes()].concat();
    out.write_all(&head).map_err(file)?;
    out.write_all(&[first.to_le_bytes(), last.to_le_bytes()].concat()).map_err(file)?;
    for height in first..=last {
        progress(height.saturating_sub(first), last.saturating_sub(first).saturating_add(1));
        let snapshot = store.snapshot();
        let block = snapshot.block_bytes(height)?.ok_or(ToolError::Missing { height })?;
        let certificate = snapshot.certificate(height)?.ok_or(ToolError::Missing { height })?;
        for part in [&block, &certificate] {
            let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            out.write_all(&length.to_le_bytes()).map_err(file)?;
        }
        out.write_all(&block).map_err(file)?;
        out.write_all(&certificate).map_err(file)?;
    }
    let Hashed { mut inner, hasher } = out;
    inner.write_all(&hasher.finalize()).map_err(file)?;
    let out = inner.into_inner().map_err(|error| file(error.into_error()))?;
    out.sync_all().map_err(file)
}

/// Executes the blocks of an export over the tip of `store`, which may be empty or have some of
/// them already. The file's checksum is verified before the first block. Answers the new tip.
///
/// # Errors
/// [`ToolError::Archive`] if the file is damaged, of another chain or begins too late; else what
/// [`super::rebuild`] says.
pub fn import(
    store: &Store,
    from: &Path,
    replay: &Replay<'_>,
    progress: Progress<'_>,
) -> Result<Tip, ToolError> {
    let file = |source| ToolError::File { path: from.to_path_buf(), source };
    let wrong = |what| ToolError::Archive { path: from.to_path_buf(), what };
    let mut tip = replay.begin(store)?;
    check(from)?.map_err(wrong)?;

    let mut input = BufReader::new(File::open(from).map_err(file)?);
    let head = read_head(&mut input).map_err(file)?.map_err(wrong)?;
    let expected = replay.genesis_hash;
    if head.genesis != expected {
        return Err(StorageError::Genesis { found: head.genesis, expected }.into());
    }
    if head.first > tip.height.saturating_add(1) {
        return Err(wrong("the file begins above the height after the tip"));
    }
    let (present, first, total) = (tip.height, head.first, head.last.saturating_sub(head.first));
    let blocks = (head.first..=head.last).map(|height| {
        let (bytes, certificate) = read_block(&mut input).map_err(file)?.map_err(wrong)?;
        Ok(EncodedBlock { height, bytes, certificate, stated_hash: None })
    });
    let is_new = |block: &Result<EncodedBlock, _>| {
        block.as_ref().map_or(true, |block| block.height > present)
    };
    ahead::run(replay, blocks.filter(is_new), |block| {
        progress(tip.height.saturating_add(1).saturating_sub(first), total);
        tip = replay.step(store, &tip, block)?;
        Ok(())
    })?;
    store.sync()?;
    Ok(tip)
}

struct Head {
    genesis: Hash,
    first: u64,
    last: u64,
}

/// What the file itself can be blamed for.
type Checked<T> = Result<T, &'static str>;

/// Verifies the checksum: everything but the last 32 bytes.
fn check(path: &Path) -> Result<Checked<()>, ToolError> {
    let file = |source| ToolError::File { path: path.to_path_buf(), source };
    let input = File::open(path).map_err(file)?;
    let bytes = input.metadata().map_err(file)?.len();
    let Some(covered) = bytes.checked_sub(32) else { return Ok(Err("the file is too short")) };
    let mut input = BufReader::with_capacity(1 << 20, input);
    let mut hashed = Hashed { inner: io::sink(), hasher: Sha256::new() };
    io::copy(&mut (&mut input).take(covered), &mut hashed).map_err(file)?;
    let mut stated = [0_u8; 32];
    input.read_exact(&mut stated).map_err(file)?;
    let found: [u8; 32] = hashed.hasher.finalize().into();
    Ok(if found == stated { Ok(()) } else { Err("the checksum is wrong: the file is damaged") })
}

fn read_head(input: &mut impl Read) -> io::Result<Checked<Head>> {
    if &read_array::<8>(input)? != MAGIC {
        return Ok(Err("the file is not an export of blocks"));
    }
    if u32::from_le_bytes(read_array(input)?) != VERSION {
        return Ok(Err("the file was written by another version of the program"));
    }
    let genesis = Hash::new(read_array(input)?);
    let first = u64::from_le_bytes(read_array(input)?);
    let last = u64::from_le_bytes(read_array(input)?);
    Ok(Ok(Head { genesis, first, last }))
}

fn read_block(input: &mut impl Read) -> io::Result<Checked<(Vec<u8>, Vec<u8>)>> {
    let block = u32::from_le_bytes(read_array(input)?);
    let certificate = u32::from_le_bytes(read_array(input)?);
    if block.max(certificate) > PART_BYTES_MAX {
        return Ok(Err("a block in the file is impossibly long"));
    }
    let mut part = |length: u32| {
        let mut bytes = Vec::new();
        let read = input.take(u64::from(length)).read_to_end(&mut bytes)?;
        let whole = usize::try_from(length).is_ok_and(|length| length == read);
        if whole { Ok(bytes) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    };
    Ok(Ok((part(block)?, part(certificate)?)))
}

fn read_array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A writer that hashes what goes through it.
struct Hashed<W> {
    inner: W,
    hasher: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
