//! The binary `ombra`.

use allocator as _;

fn main() -> std::process::ExitCode {
    cli::main()
}
