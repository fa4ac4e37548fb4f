//! The binary `ombra`.

/// Many small values live and die on several threads; docs/performance.md has what this allocator
/// is worth against the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    node::cli::main()
}
