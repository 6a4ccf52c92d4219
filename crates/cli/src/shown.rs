//! Text that others chose (names of files, bytes of records, what a view says of itself) as it is
//! shown: nothing in it may speak to the terminal.

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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

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
}
