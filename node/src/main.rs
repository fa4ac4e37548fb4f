//! The binary `ombra`.

fn main() -> std::process::ExitCode {
    node::cli::main()
}
