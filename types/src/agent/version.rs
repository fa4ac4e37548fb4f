//! Versions of agents: Semantic Versioning 2.0.0, with numbers of any size.

use std::cmp::Ordering;
use std::fmt;

/// The most bytes of a version.
const BYTES_MAX: usize = 64;

/// A version in the complete grammar of Semantic Versioning 2.0.0, at most 64 bytes.
///
/// Two versions that differ only in build metadata are different but have the same precedence, so
/// there is no `Ord`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(String);

/// The text is not a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a version of Semantic Versioning 2.0.0 like 1.4.0 or 2.0.0-rc.1, at most 64 bytes")]
pub struct VersionError;

/// A version taken apart.
struct Parts<'a> {
    core: [&'a str; 3],
    pre_release: Option<&'a str>,
}

impl Version {
    /// Parses a version.
    ///
    /// # Errors
    /// [`VersionError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let is_whole = text.len() <= BYTES_MAX && is_version(text);
        is_whole.then(|| Self(text.to_owned())).ok_or(VersionError)
    }

    /// The version as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares the precedence of two versions. Build metadata does not count.
    #[must_use]
    pub fn precedence(&self, other: &Self) -> Ordering {
        let (left, right) = (parts(&self.0), parts(&other.0));
        let core = || {
            let pairs = left.core.iter().zip(right.core.iter());
            pairs.map(|(left, right)| numbers(left, right)).find(|order| order.is_ne())
        };
        core().unwrap_or_else(|| match (left.pre_release, right.pre_release) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(left), Some(right)) => pre_releases(left, right),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Core and pre-release of a text; missing numbers are empty.
fn parts(text: &str) -> Parts<'_> {
    let without_build = text.split_once('+').map_or(text, |(before, _)| before);
    let (core, pre_release) = match without_build.split_once('-') {
        Some((core, pre_release)) => (core, Some(pre_release)),
        None => (without_build, None),
    };
    let mut numbers = core.splitn(3, '.');
    let core = [(); 3].map(|()| numbers.next().unwrap_or_default());
    Parts { core, pre_release }
}

fn is_version(text: &str) -> bool {
    let Parts { core, pre_release } = parts(text);
    let build = text.split_once('+').map(|(_, build)| build);
    core.into_iter().all(is_number)
        && pre_release.is_none_or(|it| {
            identifiers_are(it, |identifier| !is_digits(identifier) || is_number(identifier))
        })
        && build.is_none_or(|it| identifiers_are(it, |_| true))
}

/// Whether all identifiers between dots are made of letters, digits and hyphens, and are good.
fn identifiers_are(text: &str, is_good: impl Fn(&str) -> bool) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    text.split('.').all(|identifier| {
        !identifier.is_empty() && identifier.bytes().all(is_part) && is_good(identifier)
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number without leading zeros.
fn is_number(text: &str) -> bool {
    is_digits(text) && (text == "0" || !text.starts_with('0'))
}

/// The order of numbers without leading zeros.
fn numbers(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

fn pre_releases(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(left), Some(right)) => match (is_digits(left), is_digits(right)) {
                (true, true) => numbers(left, right),
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => left.cmp(right),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests;
