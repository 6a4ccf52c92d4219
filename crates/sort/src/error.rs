//! Everything that can go wrong in the engine.

use std::fmt::Write as _;
use std::io;

/// The engine's errors. The texts are whole sentences for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A storage failed; its own text names file, operation and offset.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Bytes on storage are not what was written there.
    #[error("{file}: damaged at byte {offset}: {detail}; restore it from a copy or sort again")]
    Corrupt {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What was found, what was expected.
        detail: String,
    },
    /// An input is not what its format says.
    #[error("{file}: at byte {offset}: {detail}")]
    Input {
        /// The input's name.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong and what to do.
        detail: String,
    },
    /// The budget cannot hold what is needed.
    #[error(
        "--memory {limit_bytes} is too small for {owner}: at least {least_bytes} bytes are needed"
    )]
    Memory {
        /// What needed it.
        owner: &'static str,
        /// The least budget that would do.
        least_bytes: u64,
        /// The budget.
        limit_bytes: u64,
    },
    /// Temporary space would exceed its cap.
    #[error(
        "temporary runs need more than --temp-limit {limit_bytes} bytes; raise it or sort to a view"
    )]
    TempLimit {
        /// The cap.
        limit_bytes: u64,
    },
    /// What was asked cannot be done; the text says what to do instead.
    #[error("{0}")]
    Unsupported(String),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// A failed read of an input, with the input's name. The cause stays its source, so that a caller
/// finds an error of its own reader in it.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {cause}")]
pub struct InputError {
    /// What to call the input.
    pub name: String,
    /// What its reader failed with.
    #[source]
    pub cause: io::Error,
}

impl Error {
    /// A failed read of the input `name`.
    pub(crate) fn reading(name: &str, cause: io::Error) -> Self {
        let kind = cause.kind();
        Error::Io(io::Error::new(kind, InputError { name: name.to_owned(), cause }))
    }
}

/// `text` as one word of a shell's command, so that a command in a message can be pasted whatever
/// names are in it. Nothing in it speaks to a terminal.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    // It is no option.
    let lead = if text.starts_with('-') { "./" } else { "" };
    if !text.is_empty() && text.chars().all(plain) {
        return format!("{lead}{text}");
    }
    if !text.chars().any(char::is_control) {
        return format!("'{lead}{}'", text.replace('\'', "'\\''"));
    }
    let mut word = format!("$'{lead}");
    for c in text.chars() {
        match c {
            '\'' | '\\' => word.extend(['\\', c]),
            // Three digits, so that what follows is no part of it.
            c if c.is_control() => {
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).bytes();
                bytes.for_each(|byte| {
                    let _ = write!(word, "\\{byte:03o}");
                });
            }
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// The engine's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFETY finding F28.
    #[test]
    fn f28_a_name_in_a_command_is_one_word() {
        for (name, word) in [
            ("/tmp/x.view", "/tmp/x.view"),
            ("-o", "./-o"),
            ("", "''"),
            ("a b;c", "'a b;c'"),
            ("it's", r"'it'\''s'"),
            ("a\x1b[2J\n'", r"$'a\033[2J\012\''"),
            ("\u{9b}1", r"$'\302\2331'"),
        ] {
            assert_eq!(shell_word(name), word);
            let mut shell = std::process::Command::new("bash");
            let printed = shell.args(["-c", &format!("printf %s {word}")]).output();
            if let Ok(printed) = printed {
                let lead = if name.starts_with('-') { "./" } else { "" };
                assert_eq!(printed.stdout, format!("{lead}{name}").as_bytes());
            }
        }
    }
}
