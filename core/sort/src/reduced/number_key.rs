//! Numbers as keys.
//!
//! Keys are compared byte by byte. A number is therefore stored big-endian, and its bits are changed so
//! that byte order is the order of numbers:
//!
//! ```text
//!   i64   the sign bit is flipped                    negative  0....    others  1....
//!   f64   the sign bit is flipped, and all other bits too where the number is negative
//! ```

/// The key of a whole number.
#[must_use]
pub fn key_of_i64(number: i64) -> [u8; 8] {
    (number as u64 ^ SIGN).to_be_bytes()
}

/// The number of a key of [`key_of_i64`]; `None` if it has not 8 bytes.
#[must_use]
pub fn i64_of_key(key: &[u8]) -> Option<i64> {
    key.try_into().ok().map(|key| (u64::from_be_bytes(key) ^ SIGN) as i64)
}

/// The key of a floating-point number. The order is that of [`f64::total_cmp`].
#[must_use]
pub fn key_of_f64(number: f64) -> [u8; 8] {
    let bits = number.to_bits();
    let flipped = if bits & SIGN == 0 { SIGN } else { u64::MAX };
    (bits ^ flipped).to_be_bytes()
}

/// The number of a key of [`key_of_f64`]; `None` if it has not 8 bytes.
#[must_use]
pub fn f64_of_key(key: &[u8]) -> Option<f64> {
    let bits = u64::from_be_bytes(key.try_into().ok()?);
    let flipped = if bits & SIGN == 0 { u64::MAX } else { SIGN };
    Some(f64::from_bits(bits ^ flipped))
}

const SIGN: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_is_the_order_of_numbers() {
        let floats =
            [f64::NEG_INFINITY, -1e300, -1.5, -1.0, -0.0, 0.0, 5e-324, 1.0, 2.0, f64::INFINITY];
        assert!(floats.map(key_of_f64).is_sorted());
        for float in floats {
            let again = f64_of_key(&key_of_f64(float)).expect("8 bytes");
            assert_eq!(again.to_bits(), float.to_bits());
        }
        let numbers = [i64::MIN, -2, -1, 0, 1, 255, 256, i64::MAX];
        assert!(numbers.map(key_of_i64).is_sorted());
        for number in numbers {
            assert_eq!(i64_of_key(&key_of_i64(number)), Some(number));
        }
        assert_eq!((i64_of_key(b"1"), f64_of_key(b"123456789")), (None, None));
    }
}
