//! Numbers as bytes whose order is theirs.

/// How the bits of a number are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberKind {
    Unsigned,
    Signed,
    /// −0.0 as 0.0, and each NaN as one that is greater than all.
    Float,
}

/// The bits of a float that has these, the highest first, where equal floats have equal bits.
fn one_of_equals<const WIDTH: usize>(bits: [u8; WIDTH]) -> [u8; WIDTH] {
    // Bits of the exponent behind the sign: 5, 8, 11.
    let exponent = match WIDTH {
        2 => 5,
        4 => 8,
        _ => 11,
    };
    let width = WIDTH.min(8);
    let mut magnitude = [0; 8];
    magnitude[8 - width..].copy_from_slice(&bits[..width]);
    let magnitude = u64::from_be_bytes(magnitude) & (u64::MAX >> (65 - 8 * width));
    let fraction = 8 * width - 1 - exponent;
    let infinite = ((1_u64 << exponent) - 1) << fraction;
    let one = if magnitude == 0 {
        0
    } else if magnitude > infinite {
        infinite | 1 << (fraction - 1)
    } else {
        return bits;
    };
    let mut found = [0; WIDTH];
    found[..width].copy_from_slice(&one.to_be_bytes()[8 - width..]);
    found
}

/// The bytes of a number, the lowest first, as a part of a key.
#[inline]
pub(crate) fn to_key<const WIDTH: usize>(
    kind: NumberKind,
    descending: bool,
    value: [u8; WIDTH],
) -> [u8; WIDTH] {
    let mut key = value;
    key.reverse();
    match kind {
        NumberKind::Unsigned => {}
        NumberKind::Signed => key[0] ^= 0x80,
        NumberKind::Float => {
            key = one_of_equals(key);
            if key[0] & 0x80 == 0 {
                key[0] ^= 0x80;
            } else {
                key = key.map(|byte| !byte);
            }
        }
    }
    if descending { key.map(|byte| !byte) } else { key }
}

/// The bytes of the number of a key, the lowest first, into `value`; not of a float.
pub(crate) fn from_key(kind: NumberKind, descending: bool, key: &[u8], value: &mut [u8]) {
    let turned = if descending { 0xFF } else { 0 };
    for (value, key) in value.iter_mut().rev().zip(key) {
        *value = key ^ turned;
    }
    if kind == NumberKind::Signed
        && let Some(highest) = value.last_mut()
    {
        *highest ^= 0x80;
    }
}
