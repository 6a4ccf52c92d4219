//! Texts as Java has them: `Text.toString()` decodes bytes, and what is not UTF-8 becomes U+FFFD.
//!
//! Java's decoder replaces the same pieces as Unicode recommends ("maximal subparts"), which is what
//! [`String::from_utf8_lossy`] does, with one exception. Encoded surrogates (`ED A0..BF ..`) are to Java one
//! wrong character of two or three bytes, and to Unicode as many as they have bytes.
//!
//! ```text
//!   bytes            Java            from_utf8_lossy
//!   ED A0 80         FFFD            FFFD FFFD FFFD
//!   ED A0 41         FFFD A          FFFD FFFD A
//!   F0 9F 98 41      FFFD A          FFFD A
//! ```
//! No piece spans an ASCII byte. So a word may be decoded by itself, with the same result as its line.

/// U+FFFD in UTF-8.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// `bytes`, or in `room` the text that Java makes of them where they are not UTF-8; `None` if that has more than
/// `most` bytes. It has at least as many as `bytes`, and at most three times as many.
pub(super) fn decoded<'a>(bytes: &'a [u8], room: &'a mut Vec<u8>, most: usize) -> Option<&'a [u8]> {
    if str::from_utf8(bytes).is_ok() {
        return Some(bytes);
    }
    room.clear();
    let mut rest = bytes;
    while let Err(error) = str::from_utf8(rest) {
        let (valid, wrong) = rest.split_at(error.valid_up_to());
        room.extend_from_slice(valid);
        room.extend_from_slice(REPLACEMENT);
        rest = &wrong[wrong_bytes(wrong, error.error_len())..];
        if room.len() + rest.len() > most {
            return None;
        }
    }
    room.extend_from_slice(rest);
    Some(room)
}

/// Bytes at the start of `wrong` that are one wrong character; `unicode` is what the standard library says,
/// `None` where the text ends within a character.
fn wrong_bytes(wrong: &[u8], unicode: Option<usize>) -> usize {
    let is_continuation = |byte: &&u8| matches!(byte, 0x80..=0xbf);
    match wrong {
        [0xed, 0xa0..=0xbf, rest @ ..] => 2 + rest.iter().take(1).filter(is_continuation).count(),
        _ => unicode.unwrap_or(wrong.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_bytes(bytes: &[u8]) -> String {
        let mut room = Vec::new();
        let text = decoded(bytes, &mut room, 100).expect("it is short").to_vec();
        String::from_utf8(text).expect("decoded")
    }

    /// What `Text.decode` of Hadoop 3.4.2 gives on Java 17, for pieces that decoders disagree about.
    #[test]
    fn wrong_bytes_are_replaced_as_java_does() {
        const R: &str = "\u{fffd}";
        let cases: [(&[u8], usize, &str); 16] = [
            (b"\x80", 1, ""),
            (b"\xc0\x80", 2, ""),
            (b"\xc1a", 1, "a"),
            (b"\xe0\x80\x80", 3, ""),
            (b"\xe2\x82", 1, ""),
            (b"\xe2\x82a", 1, "a"),
            (b"\xed\xa0\x80", 1, ""),
            (b"\xed\xbf\xbf", 1, ""),
            (b"\xed\xa0a", 1, "a"),
            (b"\xed\xa0", 1, ""),
            (b"\xeda", 1, "a"),
            (b"\xf0\x80\x80\x80", 4, ""),
            (b"\xf0\x9f\x98", 1, ""),
            (b"\xf0\x9f\x98a", 1, "a"),
            (b"\xf4\x90\x80\x80", 4, ""),
            (b"\xf5\x80\x80\x80", 4, ""),
        ];
        for (bytes, replaced, rest) in cases {
            assert_eq!(of_bytes(bytes), R.repeat(replaced) + rest, "{bytes:02x?}");
            let within = [b"x", bytes, b" y"].concat();
            assert_eq!(
                of_bytes(&within),
                format!("x{}{rest} y", R.repeat(replaced)),
                "{bytes:02x?}"
            );
        }
        assert_eq!(of_bytes(b"\xed\xa0\x80\xed\xb0\x80"), R.repeat(2), "a pair of surrogates");
        assert_eq!(of_bytes("\u{d7ff}\u{e000}\u{10ffff}".as_bytes()), "\u{d7ff}\u{e000}\u{10ffff}");
    }

    /// All texts of `len` bytes of a few that decoders disagree about.
    fn texts(len: u32) -> impl Iterator<Item = Vec<u8>> {
        let alphabet = b"a\x80\x8f\x9f\xa0\xbf\xc2\xe0\xe2\xed\xf0\xf4\xff";
        let n = alphabet.len();
        (0..n.pow(len)).map(move |code| (0..len).map(|at| alphabet[code / n.pow(at) % n]).collect())
    }

    /// The CRC-32 of what the decoder of Java 17 made of all texts of up to 4 bytes, a line each.
    #[test]
    fn all_texts_are_decoded_as_java_did() {
        let mut crc = crc32fast::Hasher::new();
        for bytes in (0..=4).flat_map(texts) {
            crc.update(of_bytes(&bytes).as_bytes());
            crc.update(b"\n");
        }
        assert_eq!(crc.finalize(), 0x7e50_4eda);
    }

    #[test]
    fn long_texts_are_not_decoded() {
        let mut room = Vec::new();
        assert_eq!(decoded(b"ab\xff", &mut room, 5), Some("ab\u{fffd}".as_bytes()));
        assert_eq!(decoded(b"ab\xff", &mut room, 4), None);
        assert_eq!(decoded(&[0xff; 1000], &mut room, 1000), None);
        assert!(room.capacity() <= 2000, "{}", room.capacity());
        assert_eq!(decoded(b"abc", &mut room, 2), Some(&b"abc"[..]), "nothing is copied");
    }

    #[test]
    fn only_surrogates_differ_from_the_standard_library() {
        for bytes in texts(4) {
            let surrogate =
                bytes.windows(2).any(|two| two[0] == 0xed && two[1] >= 0xa0 && two[1] < 0xc0);
            let lossy = String::from_utf8_lossy(&bytes);
            if surrogate {
                assert!(of_bytes(&bytes).len() < lossy.len(), "{bytes:02x?}");
            } else {
                assert_eq!(of_bytes(&bytes), lossy, "{bytes:02x?}");
            }
        }
    }
}
