//! Tells the linker to keep one of several functions with the same code: generic code is compiled once for each crate.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|found| found == value);
    // Where Rust links with its own LLD; other linkers may not know the flag.
    if is("TARGET", "x86_64-unknown-linux-gnu")
        && is("PROFILE", "release")
        && std::env::var("RUSTC_LINKER").is_err()
    {
        println!("cargo::rustc-link-arg-bin=atoll=-Wl,--icf=all");
    }
}
