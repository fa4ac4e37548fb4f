use std::collections::HashMap;
use std::hash::Hash;

pub(crate) type Slot = usize;

/// Manages the assignment of stable slots (0..N) to entries.
///
/// Ensures O(1) allocation, deallocation, and lookup.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    assigned: HashMap<T, Slot>,
    free: Vec<Slot>,
}

impl<T> Slots<T>
where
    T: Hash + Eq,
{
    pub fn new(capacity: usize) -> Self {
        Self {
            assigned: HashMap::with_capacity(capacity),
            // Initialize in reverse so we pop 0 first
            free: (0..capacity).rev().collect(),
        }
    }

    /// Returns the slot for a entry if it exists.
    pub fn get(&self, entry: &T) -> Option<Slot> {
        self.assigned.get(entry).copied()
    }

    /// Assigns a slot to a entry.
    /// Returns:
    /// - Some(slot): The newly assigned slot, or the existing slot if already present.
    /// - None: If the allocator is full.
    pub fn assign(&mut self, entry: T) -> Option<Slot> {
        // If already assigned, return existing slot
        if let Some(&slot) = self.assigned.get(&entry) {
            return Some(slot);
        }

        // Try to pop a free slot
        // If none are available, return None
        let slot = self.free.pop()?;
        self.assigned.insert(entry, slot);
        Some(slot)
    }

    /// Frees the slot for a entry.
    /// Returns the freed slot number if the entry was present.
    pub fn release(&mut self, entry: &T) -> Option<Slot> {
        if let Some(slot) = self.assigned.remove(entry) {
            self.free.push(slot);
            return Some(slot);
        }
        None
    }

    /// Returns the number of assigned slots.
    pub fn assigned(&self) -> usize {
        self.assigned.len()
    }

    /// Returns the number of available slots.
    pub fn available(&self) -> usize {
        self.free.len()
    }
}

/// Maximum number of input Unicode scalar values `sanitize_moniker` considers.
/// Disallowed characters in that window are dropped, so the output can be shorter.
pub(crate) const MAX_MONIKER_INPUT_CHARS: usize = 128;

/// Parsed information from a peer's agent_version string
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInfo {
    pub moniker: String,
}

/// Sanitize a peer-supplied moniker for safe use as a Prometheus label value.
///
/// Keeps ASCII alphanumeric characters plus `-`, `_`, and `.`. Drops everything
/// else. Considers at most [`MAX_MONIKER_INPUT_CHARS`] Unicode scalar values.
/// Empty results become `"unknown"`.
pub(crate) fn sanitize_moniker(moniker: &str) -> String {
    let sanitized: String = moniker
        .chars()
        .take(MAX_MONIKER_INPUT_CHARS)
        .filter(|character| {
            character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.')
        })
        .collect();

    if sanitized.is_empty() {
        String::from("unknown")
    } else {
        sanitized
    }
}

/// Parse agent_version string to extract moniker.
///
/// Expected format: "moniker=<name>"
///
/// Returns `AgentInfo` with a sanitized moniker. Defaults to "unknown" if not found.
pub fn parse_agent_version(agent_version: &str) -> AgentInfo {
    let mut moniker = String::from("unknown");

    for part in agent_version.split(',') {
        let part = part.trim();
        if let Some(mon) = part.strip_prefix("moniker=") {
            moniker = sanitize_moniker(mon);
        }
    }

    AgentInfo { moniker }
}
