//! Pairs of tokens that are merged into one, the most frequent of the training text first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::token::Token;
use crate::error::FileError;

/// The merges by pair: how early, and into what.
#[derive(Debug)]
pub(super) struct Merges(BTreeMap<(Token, Token), Merge>);

#[derive(Clone, Copy, Debug)]
struct Merge {
    rank: u32,
    into: Token,
}

impl Merges {
    /// `lines` have two tokens each, with a space between.
    pub(super) fn read(lines: &[String], texts: &BTreeMap<&str, Token>) -> Result<Self, FileError> {
        let mut merges = BTreeMap::new();
        for (rank, line) in (0..).zip(lines) {
            let unknown = || FileError::Merge { rank, line: line.clone() };
            let (left, right) = line.split_once(' ').ok_or_else(unknown)?;
            let find = |text: &str| texts.get(text).copied().ok_or_else(unknown);
            let into = find(&format!("{left}{right}"))?;
            if merges.insert((find(left)?, find(right)?), Merge { rank, into }).is_some() {
                return Err(unknown());
            }
        }
        Ok(Self(merges))
    }

    /// Appends what becomes of a piece's single tokens: the earliest merge first, of equal ones the
    /// leftmost. Takes time in proportion to `n log n`, so that a long piece costs no more than
    /// many short ones.
    pub(super) fn apply(&self, singles: impl Iterator<Item = Token>, out: &mut Vec<Token>) {
        let mut chain = TokenChain(singles.map(Some).collect());
        if chain.0.len() < 2 {
            return out.extend(chain.0.into_iter().flatten());
        }
        let mut parts: Vec<Part> = (0..chain.0.len()).map(Part::alone).collect();
        let mut queue = BinaryHeap::new();
        for left in 0..parts.len() - 1 {
            self.offer(&chain, &mut queue, left, left + 1);
        }
        while let Some(Reverse(Candidate { left, right, pair, .. })) = queue.pop() {
            // One of the two may have been merged with something else since.
            let is_current = parts[left].next == right && chain.pair(left, right) == Some(pair);
            let Some(merge) = self.0.get(&pair).filter(|_| is_current) else { continue };
            chain.0[left] = Some(merge.into);
            chain.0[right] = None;
            let next = parts[right].next;
            parts[left].next = next;
            if next < parts.len() {
                parts[next].previous = Some(left);
                self.offer(&chain, &mut queue, left, next);
            }
            if let Some(previous) = parts[left].previous {
                self.offer(&chain, &mut queue, previous, left);
            }
        }
        out.extend(chain.0.into_iter().flatten());
    }

    fn offer(
        &self,
        chain: &TokenChain,
        queue: &mut BinaryHeap<Reverse<Candidate>>,
        left: usize,
        right: usize,
    ) {
        let Some(pair) = chain.pair(left, right) else { return };
        if let Some(merge) = self.0.get(&pair) {
            queue.push(Reverse(Candidate { rank: merge.rank, left, right, pair }));
        }
    }
}

/// The tokens of a piece; a place is empty after its token was merged into one further left.
struct TokenChain(Vec<Option<Token>>);

impl TokenChain {
    fn pair(&self, left: usize, right: usize) -> Option<(Token, Token)> {
        Some(((*self.0.get(left)?)?, (*self.0.get(right)?)?))
    }
}

/// The neighbours of a place that is not empty.
struct Part {
    previous: Option<usize>,
    next: usize,
}

impl Part {
    const fn alone(at: usize) -> Self {
        Self { previous: at.checked_sub(1), next: at + 1 }
    }
}

/// A merge that may be made; ordered by rank, then from left to right.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    left: usize,
    right: usize,
    pair: (Token, Token),
}
