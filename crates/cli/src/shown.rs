//! Shows text from outside (names of files, bytes of records, the manifest of a view) without
//! characters that control the terminal.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The longest sentence that is shown, in bytes; two names of files, each as long as the system
/// allows, fit into it.
const SENTENCE_BYTES_MAX: usize = 10_000;

/// `text` on one line, with control characters as escapes: `\n`, `\x1b`, `\u{202e}`. Characters of
/// `kept` stay as they are. A text that is too long loses its middle.
pub fn escaped(text: &str, kept: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    let (front, back) = match text.len() > SENTENCE_BYTES_MAX {
        true => {
            let front = text.floor_char_boundary(SENTENCE_BYTES_MAX / 2);
            let back = text.ceil_char_boundary(text.len() - SENTENCE_BYTES_MAX / 2);
            (&text[..front], Some(&text[back..]))
        }
        false => (text, None),
    };
    escape(front, kept, &mut out);
    if let Some(back) = back {
        out.push_str(" ... ");
        escape(back, kept, &mut out);
    }
    out
}

fn escape(text: &str, kept: &[char], out: &mut String) {
    for c in text.chars() {
        if kept.contains(&c) {
            out.push(c);
            continue;
        }
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' | '\x7f' => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            // Terminals know these as controls, too; and the ones that turn the direction of text,
            // or end a line, can make a name look like another.
            '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// The name of a file: bytes that are no UTF-8 as `\xNN`, so that two names do not look alike.
pub fn name(path: &Path) -> String {
    let mut out = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// `text` as one word of a shell's command, so that a command in a message can be pasted with any
/// names in it. The word has no characters that control the terminal.
pub fn shell_word(text: &str) -> String {
    // It is no option.
    quoted(if text.starts_with('-') { "./" } else { "" }, text)
}

/// A word of a command line as it was typed.
pub fn command_word(word: &OsStr) -> String {
    quoted("", &name(Path::new(word)))
}

fn quoted(lead: &str, text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
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
            // Three digits, so that the next character is not part of the number.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFETY finding F28.
    #[test]
    fn f28_no_control_character_is_shown() {
        let all: String = (0..=0x3000).filter_map(char::from_u32).collect();
        let shown = escaped(&all, &[]);
        assert!(shown.chars().all(|c| !c.is_control()));
        assert!(!shown.contains(['\u{202e}', '\u{2066}', '\u{2028}']));
        assert_eq!(
            escaped("\x1b[2Ja\nb\u{9b}1mc\u{202e}d", &[]),
            "\\x1b[2Ja\\nb\\u{9b}1mc\\u{202e}d"
        );
        assert_eq!(escaped("a\tb\n", &['\t']), "a\tb\\n");
        assert_eq!(escaped("Größe ≠ 大", &[]), "Größe ≠ 大");
    }

    #[test]
    fn f28_a_long_text_loses_its_middle() {
        let long = format!("a{}z", "ö".repeat(70_000));
        let shown = escaped(&long, &[]);
        assert!(shown.len() < 10_100 && shown.starts_with("aö") && shown.ends_with("öz"));
        assert!(shown.contains(" ... "));
    }

    #[test]
    fn f28_names_that_are_no_utf8_differ() {
        let named = |bytes| name(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(named(b"a\xffb"), "a\\xffb");
        assert_ne!(named(b"a\xff"), named(b"a\xfe"));
        assert_eq!(named("plain/ö".as_bytes()), "plain/ö");
    }

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
