//! What a program may take of this machine.

use wasmi::ResourceLimiter;
use wasmi::errors::{MemoryError, TableError};
use wasmi_core::LimiterError;

use super::bounds::{MEMORY_BYTES_MAX, TABLE_ELEMENTS_MAX};

/// What a program may take of this machine.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Whether this machine could not give what the rules allow.
    pub(super) is_short: bool,
}

impl ResourceLimiter for Room {
    fn memory_growing(
        &mut self,
        _: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, LimiterError> {
        Ok(desired <= MEMORY_BYTES_MAX && maximum.is_none_or(|most| desired <= most))
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> Result<bool, LimiterError> {
        Ok(desired as u64 <= TABLE_ELEMENTS_MAX)
    }

    fn memory_grow_failed(&mut self, error: &MemoryError) -> Result<(), LimiterError> {
        self.is_short = self.is_short || matches!(error, MemoryError::OutOfSystemMemory);
        // A member that is short of memory must stop: continuing with less than others have could change the answer.
        if self.is_short { Err(LimiterError::ResourceLimiterDeniedAllocation) } else { Ok(()) }
    }

    fn table_grow_failed(&mut self, error: &TableError) -> Result<(), LimiterError> {
        self.is_short = self.is_short || matches!(error, TableError::OutOfSystemMemory);
        if self.is_short { Err(LimiterError::ResourceLimiterDeniedAllocation) } else { Ok(()) }
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }
}
