//! The generated code is what the protocol says. It is committed so that building Atoll compiles neither a protocol
//! compiler nor its parser; after a change of `atoll.proto`, `GOLDEN_WRITE=1 cargo test -p proto --test generated`
//! writes it anew.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

/// The code and the descriptors that `atoll.proto` stands for.
fn generate() -> (Vec<u8>, Vec<u8>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = protox::Compiler::new([root]).unwrap();
    compiler.include_source_info(true).include_imports(true).open_file("atoll/v1/atoll.proto").unwrap();
    let folder = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .bytes(".")
        .out_dir(folder.path())
        .compile_fds(compiler.file_descriptor_set())
        .unwrap();
    (fs::read(folder.path().join("atoll.v1.rs")).unwrap(), compiler.encode_file_descriptor_set())
}

#[test]
fn the_generated_code_is_that_of_the_protocol() {
    let (code, descriptors) = generate();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generated");
    for (name, expected) in [("atoll.v1.rs", code), ("atoll.v1.bin", descriptors)] {
        let path = folder.join(name);
        if std::env::var_os("GOLDEN_WRITE").is_some() {
            fs::write(&path, &expected).unwrap();
        }
        let found = fs::read(&path).unwrap_or_default();
        assert!(found == expected, "{name} is older than atoll.proto: run with GOLDEN_WRITE=1");
    }
}
