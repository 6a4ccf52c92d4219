//! Files that released versions wrote are read as they were then: docs/formats.md ("What later versions read") promises it.
//!
//! `kept/make` made each archive, with the program of that version. It is never made again once the version is released.

use std::path::Path;
use std::process::Command;

use crate::{folder, prints};

/// All that were released, and the one that will be.
const VERSIONS: [&str; 1] = ["0.1.0"];

#[test]
fn files_of_released_versions_are_read_as_they_were() {
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/kept");
    for version in VERSIONS {
        let dir = folder();
        let mut unpack = Command::new("tar");
        unpack
            .arg("-C")
            .arg(dir.path())
            .arg("-xzf")
            .arg(archives.join(format!("{version}.tar.gz")));
        assert!(unpack.status().expect("tar starts").success(), "{version}");
        let kept = dir.path().join("kept");
        let expected = std::fs::read_to_string(kept.join("expected")).expect("it was packed");
        let mut seen = 0;
        for line in expected.lines() {
            let (digest, command) = line.split_once(' ').expect("a digest and a command");
            let words: Vec<_> = command.split(' ').collect();
            let mut read = prints(&kept, &words);
            if words.contains(&"-o") {
                read = std::fs::read(kept.join("volume.img")).expect("written");
            }
            assert_eq!(sha256(&read), digest, "{version}: {command}");
            if words[0] == "cat" && words[1] != "table.view" {
                prints(&kept, &["verify", words[1]]);
            }
            seen += 1;
        }
        assert!(seen >= 10, "{version}: {seen}");
        prints(&kept, &["array", "check", "volume.json"]);
    }
}

/// By another program than ours.
fn sha256(bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), bytes).expect("written");
    let said = Command::new("sha256sum").arg("-b").arg(file.path()).output().expect("it starts");
    String::from_utf8(said.stdout).expect("UTF-8").chars().take(64).collect()
}
