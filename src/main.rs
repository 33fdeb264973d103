//! The program. What it does is a library, so that it is compiled while the crates below it are still being optimised.

fn main() -> std::process::ExitCode {
    atoll::main()
}
