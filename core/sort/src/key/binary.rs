//! Integers and floats of fixed-length records, turned into bytes that sort in their order.
//!
//! Big-endian, with the sign bit flipped for signed integers. Floats are in IEEE 754 total order:
//! negative NaN, -inf, ..., -0, +0, ..., +inf, positive NaN; a float with its sign bit is
//! complemented, any other gets it set.

use std::str::FromStr;

/// The type of a key's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Binary {
    pub(super) kind: NumberKind,
    pub(super) little_endian: bool,
    /// Bytes of the value: 1, 2, 4 or 8.
    pub(super) width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberKind {
    Unsigned,
    Signed,
    Float,
}

impl FromStr for Binary {
    type Err = ();

    /// `u8`, `i8`, or a letter of `u`, `i`, `f`, a width in bits and `le` or `be`.
    fn from_str(name: &str) -> Result<Self, ()> {
        let (bits, little_endian) = match (name.strip_suffix("le"), name.strip_suffix("be")) {
            (Some(rest), _) => (rest, true),
            (_, Some(rest)) => (rest, false),
            _ if matches!(name, "u8" | "i8") => (name, false),
            _ => return Err(()),
        };
        let (kind, width) = match bits {
            "u8" if bits == name => (NumberKind::Unsigned, 1),
            "i8" if bits == name => (NumberKind::Signed, 1),
            "u16" => (NumberKind::Unsigned, 2),
            "u32" => (NumberKind::Unsigned, 4),
            "u64" => (NumberKind::Unsigned, 8),
            "i16" => (NumberKind::Signed, 2),
            "i32" => (NumberKind::Signed, 4),
            "i64" => (NumberKind::Signed, 8),
            "f32" => (NumberKind::Float, 4),
            "f64" => (NumberKind::Float, 8),
            _ => return Err(()),
        };
        Ok(Binary { kind, little_endian, width })
    }
}

impl Binary {
    /// Whether the bytes sort unchanged.
    pub(super) fn is_bytes(self) -> bool {
        self.kind == NumberKind::Unsigned && (!self.little_endian || self.width == 1)
    }

    /// Appends the value that is all of `bytes`.
    #[inline]
    pub(super) fn encode(self, bytes: &[u8], out: &mut Vec<u8>) {
        let mark = out.len();
        out.extend_from_slice(bytes);
        let value = &mut out[mark..];
        if self.little_endian {
            value.reverse();
        }
        let negative = value[0] & 0x80 != 0;
        match self.kind {
            NumberKind::Unsigned => {}
            NumberKind::Float if negative => super::numeric::complement(value),
            NumberKind::Signed | NumberKind::Float => value[0] ^= 0x80,
        }
    }
}
