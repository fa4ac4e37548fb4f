//! The allocator of the program `ombra`: jemalloc, which gives freed memory back.
//!
//! A program that depends on this crate uses jemalloc for all allocations, including those of
//! RocksDB, which is C++. This is a separate crate because `cli` is compiled without optimization,
//! and the allocator has to be fast.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
