//! The partition of a key, as Hadoop's `HashPartitioner` finds it for a `Text`.

/// The partition of `key` among `partitions`.
#[inline]
pub(super) fn partition(key: &[u8], partitions: u32) -> u32 {
    (hash_code(key) & i32::MAX).cast_unsigned() % partitions
}

/// `Text.hashCode()`: bytes are signed.
fn hash_code(key: &[u8]) -> i32 {
    let step = |hash: i32, byte: &u8| hash.wrapping_mul(31).wrapping_add(byte.cast_signed().into());
    key.iter().fold(1, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_codes_are_those_of_hadoop() {
        assert_eq!(hash_code(b""), 1);
        assert_eq!(hash_code(b"a"), 31 + 97);
        // "hello".hashCode() is 99162322, and the hash of bytes begins with 1 and not with 0.
        assert_eq!(hash_code(b"hello"), 99_162_322 + 31_i32.pow(5));
        assert_eq!(hash_code(b"\xff"), 30, "bytes are signed");
        assert_eq!(partition(b"zzzzzzz", 7), 4);
        assert_eq!(partition(b"", 3), 1);
        let negative =
            (0_u32..100).map(|n| n.to_string()).find(|key| hash_code(key.repeat(4).as_bytes()) < 0);
        let key = negative.expect("half of all are").repeat(4);
        let code = hash_code(key.as_bytes());
        assert_eq!(partition(key.as_bytes(), 5), ((i64::from(code) + (1 << 31)) % 5) as u32);
    }
}
