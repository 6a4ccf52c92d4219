//! Random csv through `sort`, `verify` and, where it is built, `map filter`, `map project` and `map histogram`, judged by
//! Python's `csv`.

use std::process::Command;

use crate::harness::{Chance, Folder, asked, binary, output_with};

/// Stray quotes, all line ends, byte order marks, line ends in quotes, empty fields, NUL and short rows.
#[test]
fn python_reads_the_same_rows() {
    let cases = asked("MERGANSER_CSV_CASES", 40);
    let seed = Chance::new().below(1 << 40);
    eprintln!("seed {seed}, {cases} cases");
    let folder = Folder::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system/csv_oracle.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(binary()).args([seed, cases].map(|n| n.to_string())).arg(folder.path());
    if cfg!(feature = "near") {
        python.arg("map");
    }
    let output = output_with(&mut python, b"");
    let told = String::from_utf8_lossy(&output.stderr);
    eprintln!("{told}");
    assert!(output.status.success(), "{told}");
}
