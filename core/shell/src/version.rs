//! The lines of `--version` after the name: which sources the program was made of, for which machines, and what it finds
//! here. Reports of faults begin with it.
//!
//! The commit comes from the variable `MERGANSER_COMMIT`, which `make build` and `make dist` set while they compile
//! (`packaging/identity`). A build script could ask git itself; but then each commit would compile all programs again, and
//! sources without git would need another way.

use std::env::consts::{ARCH, OS};

use merganser_storage::file::check_ring;

/// The commit of the sources, and its date.
const COMMIT: Option<&str> = option_env!("MERGANSER_COMMIT");

/// The library of C.
const LIBRARY: &str = if cfg!(target_env = "musl") { "musl" } else { "gnu" };

/// All that is said: `first` is the name of the program and its version. `programs` are those that it runs, if it runs
/// others.
pub(crate) fn text(first: &str, programs: Option<&[&str]>) -> String {
    let commit = COMMIT.filter(|commit| !commit.is_empty()).unwrap_or("commit unknown");
    let ring = check_ring()
        .map_or_else(|why| format!("not available ({why})"), |()| "available".to_owned());
    let mut text = format!("{first} ({commit})\ntarget: {ARCH}-{OS}-{LIBRARY}\nio_uring: {ring}\n");
    match programs {
        None => {}
        Some([]) => text.push_str("other programs: none\n"),
        Some(names) => text.push_str(&format!("other programs: {}\n", names.join(", "))),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_has_the_version_as_its_second_word() {
        let text = text("merganser 0.1.0", None);
        let words: Vec<_> = text.lines().next().expect("a line").split(' ').collect();
        assert_eq!(words[..2], ["merganser", "0.1.0"]);
        assert!(words[2].starts_with('('), "{text}");
        assert!(text.contains("\nio_uring: ") && !text.contains("other programs"), "{text}");
    }

    #[test]
    fn other_programs_are_named() {
        assert!(text("merganser 0.1.0", Some(&[])).ends_with("\nother programs: none\n"));
        let two = text("merganser 0.1.0", Some(&["merganser-near", "merganser-lab"]));
        assert!(two.ends_with("\nother programs: merganser-near, merganser-lab\n"), "{two}");
    }
}
