//! Values of Rust's types as keys of rows, and back.
//!
//! | type | bytes |
//! |---|---|
//! | unsigned integers | big-endian |
//! | signed integers | the same, with the sign bit flipped |
//! | floats | the sign bit flipped, and all other bits where it was set: the order of `total_cmp` |
//! | `bool`, `char` | as the integer |
//! | `str`, `String`, `[u8]`, `Vec<u8>` | escaped and ended, as `text` has it |
//! | `Option` | 0, or 1 and the value: `None` comes first |
//! | tuples | one after the other |
//! | `std::cmp::Reverse` | the complement: the order is reversed |
//!
//! No encoding is a proper prefix of another one of its type. So they can follow one another, and complements are in the
//! reversed order.

use std::cmp::Reverse;

use super::{numeric, text};

/// A value with an encoding in bytes whose order is that of the value: what
/// [`RowSorter::push_key`](crate::rows::RowSorter::push_key) takes.
///
/// A record type of your own encodes its fields, most important first:
///
/// ```
/// use std::cmp::Reverse;
/// use merganser_sort::key::{RowKey, key_of};
///
/// struct Sale { city: String, cents: u64 }
///
/// impl RowKey for Sale {
///     fn push_to(&self, key: &mut Vec<u8>) {
///         (self.city.as_str(), Reverse(self.cents)).push_to(key);
///     }
/// }
///
/// let large = Sale { city: "Bonn".to_owned(), cents: 900 };
/// let small = Sale { city: "Bonn".to_owned(), cents: 5 };
/// assert!(key_of(&large) < key_of(&small));
/// ```
pub trait RowKey {
    /// Appends the encoding.
    fn push_to(&self, key: &mut Vec<u8>);
}

/// A [`RowKey`] that its bytes give back.
pub trait FromRowKey: RowKey + Sized {
    /// Takes the value from the front of a key; `None` if that has another encoding.
    fn take(key: &mut KeyBytesReader<'_>) -> Option<Self>;
}

/// The bytes of a key. Values are taken from its front.
#[derive(Debug)]
pub struct KeyBytesReader<'a> {
    left: &'a [u8],
    /// 255 where the bytes are complements, else 0.
    mask: u8,
}

impl KeyBytesReader<'_> {
    /// The next `N` bytes.
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, left) = self.left.split_first_chunk()?;
        self.left = left;
        Some(bytes.map(|byte| byte ^ self.mask))
    }

    /// The next text.
    fn text(&mut self) -> Option<Vec<u8>> {
        let len = memchr::memchr(self.mask, self.left)?;
        let (text, left) = self.left.split_at(len);
        self.left = &left[1..];
        let mut bytes = Vec::with_capacity(len);
        if self.mask == 0 {
            text::decode(text, &mut bytes)?;
        } else {
            let text: Vec<u8> = text.iter().map(|byte| byte ^ self.mask).collect();
            text::decode(&text, &mut bytes)?;
        }
        Some(bytes)
    }
}

/// The encoding of `value`.
#[must_use]
pub fn key_of<K: RowKey + ?Sized>(value: &K) -> Vec<u8> {
    let mut key = Vec::new();
    value.push_to(&mut key);
    key
}

/// The value whose encoding `key` is; `None` if no value of this type has it.
#[must_use]
pub fn value_of<K: FromRowKey>(key: &[u8]) -> Option<K> {
    let mut key = KeyBytesReader { left: key, mask: 0 };
    let value = K::take(&mut key)?;
    key.left.is_empty().then_some(value)
}

impl<K: RowKey + ?Sized> RowKey for &K {
    #[inline]
    fn push_to(&self, key: &mut Vec<u8>) {
        (**self).push_to(key);
    }
}

macro_rules! integers {
    ($($number:ty, $flipped:expr;)*) => {$(
        impl RowKey for $number {
            #[inline]
            fn push_to(&self, key: &mut Vec<u8>) {
                key.extend_from_slice(&(*self ^ $flipped).to_be_bytes());
            }
        }
        impl FromRowKey for $number {
            #[inline]
            fn take(key: &mut KeyBytesReader<'_>) -> Option<Self> {
                Some(<$number>::from_be_bytes(key.array()?) ^ $flipped)
            }
        }
    )*};
}

integers! {
    u8, 0; u16, 0; u32, 0; u64, 0; u128, 0;
    i8, i8::MIN; i16, i16::MIN; i32, i32::MIN; i64, i64::MIN; i128, i128::MIN;
}

macro_rules! floats {
    ($($number:ty, $bits:ty;)*) => {$(
        impl RowKey for $number {
            #[inline]
            fn push_to(&self, key: &mut Vec<u8>) {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                (bits ^ if bits & SIGN == 0 { SIGN } else { <$bits>::MAX }).push_to(key);
            }
        }
        impl FromRowKey for $number {
            #[inline]
            fn take(key: &mut KeyBytesReader<'_>) -> Option<Self> {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = <$bits>::take(key)?;
                Some(<$number>::from_bits(bits ^ if bits & SIGN == 0 { <$bits>::MAX } else { SIGN }))
            }
        }
    )*};
}

floats! { f32, u32; f64, u64; }

impl RowKey for bool {
    fn push_to(&self, key: &mut Vec<u8>) {
        key.push(u8::from(*self));
    }
}

impl FromRowKey for bool {
    fn take(key: &mut KeyBytesReader<'_>) -> Option<Self> {
        match u8::take(key)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl RowKey for char {
    fn push_to(&self, key: &mut Vec<u8>) {
        u32::from(*self).push_to(key);
    }
}

impl FromRowKey for char {
    fn take(key: &mut KeyBytesReader<'_>) -> Option<Self> {
        u32::take(key)?.try_into().ok()
    }
}

macro_rules! texts {
    ($($text:ty),*) => {$(
        impl RowKey for $text {
            #[inline]
            fn push_to(&self, key: &mut Vec<u8>) {
                text::encode(self.as_ref(), key);
            }
        }
    )*};
}

texts!(str, String, [u8], Vec<u8>);

impl FromRowKey for Vec<u8> {
    fn take(key: &mut KeyBytesReader<'_>) -> Option<Self> {
        key.text()
    }
}

impl FromRowKey for String {
    fn take(key: &mut KeyBytesReader<'_>) -> Option<Self> {
        String::from_utf8(key.text()?).ok()
    }
}

impl<K: RowKey> RowKey for Option<K> {
    fn push_to(&self, key: &mut Vec<u8>) {
        key.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.push_to(key);
        }
    }
}

impl<K: FromRowKey> FromRowKey for Option<K> {
    fn take(key: &mut KeyBytesReader<'_>) -> Option<Self> {
        Some(if bool::take(key)? { Some(K::take(key)?) } else { None })
    }
}

impl<K: RowKey> RowKey for Reverse<K> {
    fn push_to(&self, key: &mut Vec<u8>) {
        let mark = key.len();
        self.0.push_to(key);
        numeric::complement(&mut key[mark..]);
    }
}

impl<K: FromRowKey> FromRowKey for Reverse<K> {
    fn take(key: &mut KeyBytesReader<'_>) -> Option<Self> {
        key.mask = !key.mask;
        let value = K::take(key);
        key.mask = !key.mask;
        Some(Reverse(value?))
    }
}

macro_rules! tuples {
    ($(($($name:ident $at:tt),*);)*) => {$(
        impl<$($name: RowKey),*> RowKey for ($($name,)*) {
            #[inline]
            fn push_to(&self, key: &mut Vec<u8>) {
                $(self.$at.push_to(key);)*
            }
        }
        impl<$($name: FromRowKey),*> FromRowKey for ($($name,)*) {
            #[inline]
            fn take(key: &mut KeyBytesReader<'_>) -> Option<Self> {
                Some(($($name::take(key)?,)*))
            }
        }
    )*};
}

tuples! {
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::fmt::Debug;

    use super::*;

    /// All pairs of `values` are in the order of their encodings, and come back.
    fn check<K: FromRowKey + Debug>(values: &[K], compare: impl Fn(&K, &K) -> Ordering) {
        for a in values {
            let key = key_of(a);
            let again: K = value_of(&key).unwrap_or_else(|| panic!("{a:?} as {key:?}"));
            assert!(compare(a, &again).is_eq(), "{a:?} came back as {again:?}");
            for b in values {
                let (keys, reversed) =
                    (key.cmp(&key_of(b)), key_of(&Reverse(a)).cmp(&key_of(&Reverse(b))));
                assert_eq!((keys, reversed), (compare(a, b), compare(b, a)), "{a:?} {b:?}");
            }
            for len in 0..key.len() {
                assert!(value_of::<K>(&key[..len]).is_none(), "{a:?} cut to {len} bytes");
            }
        }
    }

    #[test]
    fn the_order_of_keys_is_that_of_values() {
        check(&[0_u8, 1, 127, 128, 255], Ord::cmp);
        check(&[i64::MIN, -256, -1, 0, 1, 255, i64::MAX], Ord::cmp);
        check(&[i128::MIN, -1, 0, i128::MAX], Ord::cmp);
        let floats = [f64::NAN, -f64::NAN, f64::NEG_INFINITY, -1.5, -0.0, 0.0, 5e-324, 1.0, 1e300];
        check(&floats, f64::total_cmp);
        check(&floats.map(|float| float as f32), f32::total_cmp);
        check(&[false, true], Ord::cmp);
        check(&['\0', 'a', 'ä', '\u{10ffff}'], Ord::cmp);
    }

    #[test]
    fn texts_may_have_any_bytes_and_follow_one_another() {
        let bytes = [0_u8, 1, 2, 254, 255];
        let mut texts = vec![vec![]];
        for a in bytes {
            texts.push(vec![a]);
            texts.extend(bytes.map(|b| vec![a, b]));
        }
        check(&texts, Ord::cmp);
        let pairs = texts.iter().flat_map(|a| texts.iter().map(move |b| (a.clone(), b.clone())));
        check(&pairs.collect::<Vec<_>>(), Ord::cmp);
        check(&["", "a", "a\0", "ab", "b"].map(str::to_owned), Ord::cmp);
    }

    #[test]
    fn values_combine() {
        let mut values = Vec::new();
        for name in ["", "a", "ab"] {
            for count in [None, Some(-1_i32), Some(7)] {
                values.push((name.to_owned(), Reverse(count), 3_u16));
            }
        }
        check(&values, Ord::cmp);
        assert!(key_of(&(1_u8, "x")) < key_of(&(2_u8, "a")));
        assert_eq!(value_of::<(u8, u8)>(&[1, 2, 3]), None, "a byte is left");
        assert_eq!(value_of::<bool>(&[2]), None);
        assert_eq!(value_of::<char>(&[0, 0, 0xd8, 0]), None, "half of a pair of UTF-16");
        assert_eq!(value_of::<String>(&[0xff, 0]), None, "no UTF-8");
        assert_eq!(value_of::<Vec<u8>>(&[1, 9, 0]), None, "no escape");
    }
}
