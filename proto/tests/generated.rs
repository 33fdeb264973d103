//! The generated code is that of the protocol.
//!
//! It is committed, with the digests of everything that belongs together, so that neither building nor testing Atoll
//! compiles a protocol compiler. After a change of `atoll.proto`, this writes all of it again:
//!
//! ```sh
//! GOLDEN_WRITE=1 cargo test -p proto --features generate --test generated
//! ```

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use codec::Digest;
use std::fs;
use std::path::{Path, PathBuf};

const FILES: [&str; 3] = ["atoll/v1/atoll.proto", "src/generated/atoll.v1.rs", "src/generated/atoll.v1.bin"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The digests of the protocol and of what was made of it.
fn digests() -> String {
    FILES.map(|name| format!("{} {name}\n", Digest::of(&fs::read(path(name)).unwrap()))).concat()
}

#[test]
fn the_generated_code_belongs_to_the_protocol() {
    let recorded = fs::read_to_string(path("src/generated/digests")).unwrap();
    assert_eq!(recorded, digests(), "generate the code anew, as this file says");
}

/// The code and the descriptors that `atoll.proto` stands for.
#[cfg(feature = "generate")]
fn generate() -> [Vec<u8>; 2] {
    let mut compiler = protox::Compiler::new([path("")]).unwrap();
    compiler.include_source_info(true).include_imports(true).open_file(FILES[0]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .bytes(".")
        .out_dir(folder.path())
        .compile_fds(compiler.file_descriptor_set())
        .unwrap();
    [fs::read(folder.path().join("atoll.v1.rs")).unwrap(), compiler.encode_file_descriptor_set()]
}

#[cfg(feature = "generate")]
#[test]
fn the_generated_code_is_what_the_compiler_makes() {
    for (name, expected) in FILES[1..].iter().zip(generate()) {
        if std::env::var_os("GOLDEN_WRITE").is_some() {
            fs::write(path(name), &expected).unwrap();
            fs::write(path("src/generated/digests"), digests()).unwrap();
        }
        let found = fs::read(path(name)).unwrap_or_default();
        assert!(found == expected, "{name} is older than atoll.proto");
    }
}
