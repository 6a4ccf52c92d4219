//! The templates compile, and count words.

use merganser_wasm::template::{Language, project};

use crate::*;

/// Builds a new project; gives its module.
fn module(language: Language, environment: &[(&str, String)]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    for file in project(language, "my-words").expect("a name") {
        let path = folder.path().join(file.path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, file.text).expect("written");
    }
    let build = Command::new("sh")
        .arg("build.sh")
        .current_dir(folder.path())
        .envs(environment.iter().cloned())
        .output();
    let output = build.expect("it starts");
    assert!(output.status.success(), "{language:?}: {}", String::from_utf8_lossy(&output.stderr));
    read(folder.path(), "my-words.wasm")
}

fn counts_words(module: &[u8]) {
    let chunks = [&b"a b\ta\n"[..], b"\n", b"  ccc a\r\nb"];
    let found = run(module, b"", WasmLimits::default(), &chunks).expect("a good guest");
    let expected = [("a", 3), ("b", 2), ("ccc", 1)].map(|(key, n)| (key.as_bytes().to_vec(), n));
    assert_eq!(sums(&found), expected.into());
    let checked = merganser_wasm::check(module, b"", WasmLimits::default(), None).expect("good");
    assert_eq!(checked.declared.name, "my-words");
}

// `built` says whether the compilers are there.

#[test]
fn the_project_in_c() {
    if built("c").is_some() {
        counts_words(&module(Language::C, &[]));
    }
}

#[test]
fn the_project_in_rust() {
    if built("rust").is_some() {
        // Cargo is not to see the settings of this test's own build.
        counts_words(&module(Language::Rust, &[("RUSTFLAGS", String::new())]));
    }
}

#[test]
fn the_project_in_assemblyscript() {
    if built("assemblyscript").is_some() {
        let asc = "../../target/guests/assemblyscript/node_modules/.bin/asc";
        let asc = Path::new(env!("CARGO_MANIFEST_DIR")).join(asc).display().to_string();
        counts_words(&module(Language::AssemblyScript, &[("ASC", asc)]));
    }
}
