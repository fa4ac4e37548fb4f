//! The binary `ombra`.

/// For the whole process: RocksDB, which is C++, allocates with it as well.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
