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

/// Terminals know these as controls; and the ones that turn the direction of text, or end a line, can
/// make a name look like another.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}')
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
            c if is_control(c) => {
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

/// The name of a file as one word of a shell's command, so that a command in a message can be pasted with
/// any names in it. The word has no characters that control the terminal.
pub fn shell_word(name: impl AsRef<OsStr>) -> String {
    let name = name.as_ref().as_bytes();
    // It is no option.
    quoted(if name.starts_with(b"-") { "./" } else { "" }, name)
}

/// A word of a command line.
pub fn command_word(word: impl AsRef<OsStr>) -> String {
    quoted("", word.as_ref().as_bytes())
}

fn quoted(lead: &str, word: &[u8]) -> String {
    let text = std::str::from_utf8(word).ok().filter(|text| !text.contains(is_control));
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    match text {
        Some(text) if !text.is_empty() && text.chars().all(plain) => format!("{lead}{text}"),
        Some(text) => format!("'{lead}{}'", text.replace('\'', "'\\''")),
        None => quoted_bytes(lead, word),
    }
}

/// A word with bytes that are no text, or that control a terminal.
fn quoted_bytes(lead: &str, word: &[u8]) -> String {
    let mut out = format!("$'{lead}");
    // Three digits, so that the next character is not part of the number.
    let number = |byte: &u8| format!("\\{byte:03o}");
    for chunk in word.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                c if is_control(c) => {
                    let mut bytes = [0; 4];
                    out.extend(c.encode_utf8(&mut bytes).as_bytes().iter().map(number));
                }
                c => out.push(c),
            }
        }
        out.extend(chunk.invalid().iter().map(number));
    }
    out.push('\'');
    out
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

    #[test]
    fn a_name_that_is_no_text_is_named_exactly() {
        assert_eq!(shell_word(OsStr::from_bytes(b"-a\xff7'")), r"$'./-a\3777\''");
        assert_eq!(command_word(OsStr::from_bytes(b"\xe2\x80")), r"$'\342\200'");
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
            ("a\u{202e}b", r"$'a\342\200\256b'"),
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
