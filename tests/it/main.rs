//! The tests that need several crates, or the whole repository. One module per suite.

#[cfg(test)]
mod alone;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod dashboard;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod fake_peer;
#[cfg(test)]
mod javascript;
#[cfg(test)]
mod network;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod sdk;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod subscribers;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod validators;
