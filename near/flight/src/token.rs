//! The token that clients show.

use std::fmt;

use sha2::{Digest, Sha256};

/// The shortest token, in bytes: 128 bits in hexadecimal digits have 32.
const BYTES_MIN: usize = 16;
/// The longest one.
const BYTES_MAX: usize = 1024;

/// A secret that client and server share. Only its hash is kept by a server.
#[derive(Clone)]
pub struct Token {
    text: String,
    hash: [u8; 32],
}

/// Why a text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is too short or too long.
    #[error(
        "a token has {BYTES_MIN} to {BYTES_MAX} characters; `openssl rand -hex 32` makes a good one"
    )]
    Length,
    /// It has blanks or characters that a header can't carry.
    #[error("a token has visible ASCII characters only, in one line")]
    Characters,
}

impl Token {
    /// The token in `text`, which may end with a newline.
    ///
    /// # Errors
    /// Why it is no token.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim_end_matches(['\n', '\r']);
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        if !(BYTES_MIN..=BYTES_MAX).contains(&text.len()) {
            return Err(TokenError::Length);
        }
        Ok(Token { text: text.to_owned(), hash: Sha256::digest(text).into() })
    }

    /// Whether a client showed this token, in a header `Bearer TOKEN`. The time does not depend on how
    /// much of it is right: hashes are compared, and all of their bytes.
    pub(crate) fn is_shown_by(&self, header: Option<&[u8]>) -> bool {
        let shown = header.and_then(|header| header.strip_prefix(b"Bearer ")).unwrap_or_default();
        let shown: [u8; 32] = Sha256::digest(shown).into();
        let different = self.hash.iter().zip(&shown).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(different) == 0
    }

    /// The header of a client.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_right() {
        let token = Token::new("0123456789abcdef\n").expect("a token");
        assert!(token.is_shown_by(Some(b"Bearer 0123456789abcdef")));
        for wrong in [
            &b"Bearer 0123456789abcdeF"[..],
            b"Bearer ",
            b"",
            b"0123456789abcdef",
            b"bearer 0123456789abcdef",
        ] {
            assert!(!token.is_shown_by(Some(wrong)));
        }
        assert!(!token.is_shown_by(None));
        assert!(!format!("{token:?}").contains("0123"));
        assert_eq!(Token::new("short").err(), Some(TokenError::Length));
        assert_eq!(Token::new("0123456789 abcdef").err(), Some(TokenError::Characters));
    }
}
