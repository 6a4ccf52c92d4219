//! A line on standard error when memory may have run out: it takes none of the heap, and no lock.

use std::fmt::{self, Write as _};
use std::io;

use crate::failure;

/// Prints one line to stderr without memory of the heap, and without a lock.
pub(crate) fn tell(what: fmt::Arguments<'_>) {
    CrashLine::of_text(format_args!("{}: {what}", failure::called())).write();
}

/// One line of text that takes no memory of the heap.
pub(crate) struct CrashLine {
    bytes: [u8; 1024],
    len: usize,
}

impl CrashLine {
    /// As much of it as has room.
    pub(crate) fn of_text(text: fmt::Arguments<'_>) -> Self {
        let mut line = CrashLine { bytes: [0; 1024], len: 0 };
        let _ = line.write_fmt(text);
        line
    }

    pub(crate) fn is_in(&self, text: &str) -> bool {
        let number_ends = |at: usize| !text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
        let text = text.as_bytes().windows(self.len).enumerate();
        text.into_iter()
            .any(|(at, part)| *part == self.bytes[..self.len] && number_ends(at + self.len))
    }

    /// Writes it to stderr, with an end, at once.
    pub(crate) fn write(mut self) {
        self.bytes[self.len] = b'\n';
        // Past the lock of the standard library's handle. When even stderr is closed, the status still
        // tells.
        let _ = rustix::io::write(io::stderr(), &self.bytes[..=self.len]);
    }
}

impl fmt::Write for CrashLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // The last place is for the line's end.
            if self.len == self.bytes.len() - 1 {
                return Err(fmt::Error);
            }
            self.bytes[self.len] = if byte.is_ascii_control() { b' ' } else { byte };
            self.len += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_and_hold_no_controls() {
        let line = CrashLine::of_text(format_args!("a\x1b[2Jb\n{}", "x".repeat(5000)));
        assert_eq!(line.len, 1023);
        assert!(line.bytes.starts_with(b"a [2Jb x"));
        let found = |number, text| CrashLine::of_text(format_args!("code: {number}")).is_in(text);
        assert!(found(12, "Os { code: 12, kind }") && found(12, "code: 12"));
        assert!(!found(12, "code: 122") && !found(12, "code"));
    }
}
