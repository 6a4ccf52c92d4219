//! Programs that tests run: `merganser`, and those of others.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The program `merganser` that was built with this test. The programs of its other commands are next to it.
///
/// # Panics
/// If it was not built.
#[must_use]
pub fn program() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let test = std::env::current_exe().expect("this test has a file");
        // target/debug/deps/TEST
        let built = test.parent().and_then(Path::parent).expect("a folder of builds");
        let path = built.join("merganser");
        assert!(path.is_file(), "{}: build it first: cargo build --bins", path.display());
        path.into_os_string().into_string().expect("the name of a checkout is text")
    })
}

/// Whether BLAST+ is installed, as [`has`] says.
///
/// # Panics
/// As [`has`] does.
#[must_use]
pub fn has_blast() -> bool {
    has("makeblastdb", "-version", "ncbi-blast+")
}

/// Whether `program` is installed, which ends well with `word` as its only word. If it is not, a line says that the test
/// is left out; in continuous integration (the variable `CI` is set) it must be there, unless the system has no `package`
/// of it.
///
/// # Panics
/// If continuous integration could have installed it and has not.
#[must_use]
pub fn has(program: &str, word: &str, package: &str) -> bool {
    if runs(program, &[word]) {
        return true;
    }
    let is_ci = std::env::var_os("CI").is_some();
    let can_be_installed = is_ci && runs("apt-cache", &["show", package]);
    assert!(!can_be_installed, "{program} is missing: `.ci/setup` installs {package}");
    // Output of `eprintln` is hidden if the test succeeds.
    let _ = writeln!(std::io::stderr(), "skipped: {program} ({package}) is not installed");
    false
}

/// Copies the program or script `from` to `to`, for all users to run.
///
/// Another process writes the copy. The system refuses to run a file that is open for writing (`ETXTBSY`), and while this
/// process had it open, children that other threads are starting would get the open file, too.
///
/// # Panics
/// If it can't be copied.
pub fn install_program(from: impl AsRef<OsStr>, to: &Path) {
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(from.as_ref()).arg(to);
    assert!(install.status().expect("install starts").success(), "{install:?}");
}

fn runs(program: &str, words: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
