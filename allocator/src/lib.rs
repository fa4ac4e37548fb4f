//! The allocator of the program `ombra`: jemalloc, which gives freed memory back.
//!
//! A program that names this crate allocates with it, and so does RocksDB inside it, which is C++. It is a crate
//! of its own because `cli` is compiled without optimisation, while this is called for everything that a node
//! allocates.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
