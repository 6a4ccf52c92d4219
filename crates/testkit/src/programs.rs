//! Programs of others that tests run.

use std::io::Write;
use std::process::{Command, Stdio};

/// Whether BLAST+ is installed. If it is not, a line says that the test is left out; in continuous integration (the
/// variable `CI` is set) it must be there, unless the system has no package of it.
///
/// # Panics
/// If continuous integration could have installed it and has not.
#[must_use]
pub fn has_blast() -> bool {
    if runs("makeblastdb", &["-version"]) {
        return true;
    }
    let is_ci = std::env::var_os("CI").is_some();
    assert!(
        !is_ci || !runs("apt-cache", &["show", "ncbi-blast+"]),
        "BLAST+ is missing: .ci/setup blast"
    );
    // What `eprintln` prints is not seen if the test succeeds.
    let _ = writeln!(std::io::stderr(), "skipped: BLAST+ is not installed (.ci/setup blast)");
    false
}

fn runs(program: &str, words: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
