use std::cmp::Ordering;

use proptest::prelude::*;

use super::order::NAMES;
use super::*;
use crate::record::ifile::{push_vlong, vlong};

fn order(description: &str) -> WritableOrder {
    description.parse().expect(description)
}

/// Checks that `keys` ascend, each group of them being equal, under `description`, and descend under
/// its reverse.
fn check(description: &str, keys: &[&[Vec<u8>]]) {
    // A field of no bytes in front makes it several fields, which are encoded.
    for prefix in ["", "null,"] {
        let up = order(&format!("{prefix}{description}"));
        let down = order(&format!("{prefix}{description}:desc"));
        for (i, group) in keys.iter().enumerate() {
            for (j, other) in keys.iter().enumerate() {
                for (a, b) in group.iter().flat_map(|a| other.iter().map(move |b| (a, b))) {
                    let what = format!("{up}: {a:x?} and {b:x?}");
                    assert_eq!(up.compare(a, b), Ok(i.cmp(&j)), "{what}");
                    assert_eq!(down.compare(a, b), Ok(j.cmp(&i)), "{what}, descending");
                }
            }
        }
    }
}

/// Each of `keys` before the next.
fn check_each(description: &str, keys: &[Vec<u8>]) {
    let groups: Vec<&[Vec<u8>]> = keys.chunks(1).collect();
    check(description, &groups);
}

fn text(bytes: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    push_vlong(bytes.len() as i64, &mut key);
    key.extend_from_slice(bytes);
    key
}

fn vlong_key(value: i64) -> Vec<u8> {
    let mut key = Vec::new();
    push_vlong(value, &mut key);
    key
}

/// Byte strings in the order of memcmp, the shorter first: short and long, with all that an
/// encoding could trip over.
fn strings() -> Vec<Vec<u8>> {
    let long = |byte: u8, len: usize| vec![byte; len];
    vec![
        vec![],
        vec![0],
        vec![0, 0],
        long(0, 17),
        vec![0, 1],
        vec![1],
        vec![1, 0],
        vec![1, 1],
        vec![1, 2],
        vec![2],
        b"a".to_vec(),
        b"a\0".to_vec(),
        b"aa".to_vec(),
        long(b'a', 15),
        long(b'a', 16),
        long(b'a', 17),
        long(b'a', 127),
        long(b'a', 128),
        long(b'a', 300),
        b"ab".to_vec(),
        vec![0x7f],
        vec![0x80],
        vec![0xff],
        vec![0xff, 0],
        long(0xff, 15),
        long(0xff, 16),
        long(0xff, 40),
    ]
}

#[test]
fn text_and_bytes_are_compared_behind_their_lengths() {
    let strings = strings();
    check_each("text", &strings.iter().map(|s| text(s)).collect::<Vec<_>>());
    let bytes = |s: &Vec<u8>| [&(s.len() as u32).to_be_bytes()[..], s].concat();
    check_each("bytes", &strings.iter().map(bytes).collect::<Vec<_>>());
    check_each("raw", &strings);
}

#[test]
fn bytes_behind_a_field_of_fixed_length_do_not_count() {
    check("fixed:2", &[&[b"aa".to_vec(), b"aab".to_vec()], &[b"ab".to_vec(), b"aba".to_vec()]]);
    check("boolean", &[&[vec![0]], &[vec![1]], &[vec![0xff]]]);
    check("null", &[&[vec![], vec![]]]);
}

#[test]
fn integers_are_signed() {
    let values =
        [i64::MIN, -1 << 40, -257, -256, -113, -112, -1, 0, 1, 127, 128, 1 << 40, i64::MAX];
    check_each("long", &values.map(|v| v.to_be_bytes().to_vec()));
    check_each("vlong", &values.map(vlong_key));
    let values = [i32::MIN, -70_000, -1, 0, 1, 255, 256, i32::MAX];
    check_each("int", &values.map(|v| v.to_be_bytes().to_vec()));
    check_each("vint", &values.map(|v| vlong_key(i64::from(v))));
}

#[test]
fn floats_are_compared_as_java_does() {
    let [nan, odd, negative] =
        [0x7fc0_0000_u32, 0x7f80_0001, 0xffc0_1234].map(|v| v.to_be_bytes().to_vec());
    let of = |v: f32| vec![v.to_be_bytes().to_vec()];
    let values =
        [f32::NEG_INFINITY, f32::MIN, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.5, f32::MAX, f32::INFINITY];
    let mut groups: Vec<Vec<Vec<u8>>> = values.into_iter().map(of).collect();
    groups.push(vec![nan, odd, negative]);
    check("float", &groups.iter().map(|group| &group[..]).collect::<Vec<_>>());

    let nans = [0x7ff8_0000_0000_0000_u64, 0x7ff0_0000_0000_0001, 0xfff8_0000_0000_1234];
    let of = |v: f64| vec![v.to_be_bytes().to_vec()];
    let values = [
        f64::NEG_INFINITY,
        f64::MIN,
        -1.5,
        -5e-324,
        -0.0,
        0.0,
        5e-324,
        1.5,
        f64::MAX,
        f64::INFINITY,
    ];
    let mut groups: Vec<Vec<Vec<u8>>> = values.into_iter().map(of).collect();
    groups.push(nans.map(|v| v.to_be_bytes().to_vec()).to_vec());
    check("double", &groups.iter().map(|group| &group[..]).collect::<Vec<_>>());
}

#[test]
fn fields_are_compared_one_after_the_other() {
    let key = |word: &str, number: i32, rest: &[u8]| {
        [&text(word.as_bytes())[..], &number.to_be_bytes(), rest].concat()
    };
    let keys = [
        key("a", 2, b""),
        key("a", 2, b"x"),
        key("a", -1, b""),
        key("ab", 9, b"y"),
        key("b", i32::MIN, b""),
    ];
    let order = order("text,int:desc,raw");
    for (i, a) in keys.iter().enumerate() {
        for (j, b) in keys.iter().enumerate() {
            assert_eq!(order.compare(a, b), Ok(i.cmp(&j)), "{i} {j}");
        }
    }
}

#[test]
fn a_key_shorter_than_its_fields_is_an_error() {
    let told = |description: &str, key: &[u8]| {
        order(description).compare(key, key).expect_err(description).to_string()
    };
    for (description, key) in [
        ("text", &b""[..]),
        ("text", b"\x8f"),
        ("bytes", b"\0\0\0"),
        ("int", b"\0\0\0"),
        ("long", b"\0\0\0\0\0\0\0"),
        ("vint", b""),
        ("vlong", b"\x88\0"),
        ("boolean", b""),
        ("float", b"\0\0\0"),
        ("double", b"\0"),
        ("fixed:3", b"ab"),
    ] {
        let expected =
            format!("a key of {} bytes, which ends inside its field 1 ({description})", key.len());
        assert_eq!(told(description, key), expected);
        let second = told(&format!("null,{description}"), key);
        assert_eq!(second, expected.replace("field 1", "field 2"));
    }
    for (description, key) in [("text", &b"\x02a"[..]), ("bytes", b"\0\0\0\x02a")] {
        let second = told(&format!("null,{description}"), key);
        assert!(second.contains("ends inside its field 2"), "{second}");
    }
    let negative = told("null,text", b"\xfe");
    assert_eq!(negative, "a key whose field 2 (text) has -2 where that can't be");
    assert!(told("null,bytes", b"\xff\xff\xff\xff").contains("has -1"));
    assert!(told("vint", b"\x8c\x80\0\0\0").contains("has 2147483648"));
}

/// Orders that the merge in Java reads too.
#[test]
fn keys_compare_as_the_shared_table_says() {
    let bytes = |hex: &str| -> Vec<u8> {
        let digit = |digit: u8| (digit as char).to_digit(16).expect("a digit") as u8;
        hex.trim_matches('-').as_bytes().chunks(2).map(|d| digit(d[0]) << 4 | digit(d[1])).collect()
    };
    let mut rows = 0;
    for row in include_str!("keys.txt").lines().filter(|row| !row.starts_with('#')) {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [description, a, b, expected] = words[..] else { panic!("{row}") };
        for (a, b, turned) in [(a, b, false), (b, a, true)] {
            let told = match order(description).compare(&bytes(a), &bytes(b)) {
                Ok(found) if turned => Ok(found.reverse()),
                told => told,
            };
            let told = match told {
                Ok(Ordering::Less) => "<",
                Ok(Ordering::Equal) => "=",
                Ok(Ordering::Greater) => ">",
                Err(_) => "error",
            };
            assert_eq!(told, expected, "{row}");
        }
        rows += 1;
    }
    assert!(rows > 40, "{rows} rows");
}

#[test]
fn descriptions_round_trip_and_bad_ones_are_errors() {
    for description in ["text", "text,int:desc", "fixed:10,raw:desc", "null", "vint,vlong,boolean"]
    {
        assert_eq!(order(description).to_string(), description);
    }
    for (description, told) in [
        ("", "order '': '' is no field; fields are text, bytes"),
        ("txt", "'txt' is no field"),
        ("text,", "'' is no field"),
        ("text:asc", "'text:asc' is no field"),
        ("Text", "'Text' is no field"),
        ("raw,int", "raw is all that is left of a key, so it is the last field"),
        ("fixed:0", "fixed:N takes the bytes"),
        ("fixed:+1", "fixed:N takes the bytes"),
        ("fixed:2147483648", "fixed:N takes the bytes"),
        (&["int"; 65].join(","), "at most 64 fields"),
    ] {
        let error = description.parse::<WritableOrder>().expect_err(description).to_string();
        assert!(error.contains(told), "{error}");
    }
}

fn naive(fields: &[(&str, bool)], a: &[u8], b: &[u8]) -> Ordering {
    let (mut a, mut b) = (a, b);
    for (kind, descending) in fields {
        let next = |bytes: &mut &[u8]| -> (i64, Vec<u8>) {
            let len = match *kind {
                "text" => {
                    let (len, size) = vlong(bytes).expect("a length");
                    *bytes = &bytes[size..];
                    len as usize
                }
                "int" => 4,
                _ => bytes.len(),
            };
            let (field, rest) = bytes.split_at(len);
            *bytes = rest;
            match field.first_chunk() {
                Some(four) if *kind == "int" => (i64::from(i32::from_be_bytes(*four)), Vec::new()),
                _ => (0, field.to_vec()),
            }
        };
        let (x, y) = (next(&mut a), next(&mut b));
        let order = if *descending { y.cmp(&x) } else { x.cmp(&y) };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

proptest! {
    #[test]
    fn composites_agree_with_field_by_field(
        descending in prop::array::uniform3(any::<bool>()),
        keys in prop::collection::vec(
            (prop::collection::vec(0_u8..3, 0..4), -2_i32..3, prop::collection::vec(0_u8..3, 0..3)), 2),
    ) {
        let fields = [("text", descending[0]), ("int", descending[1]), ("raw", descending[2])];
        let described: Vec<String> = fields.iter()
            .map(|(kind, desc)| format!("{kind}{}", if *desc { ":desc" } else { "" }))
            .collect();
        let keys: Vec<Vec<u8>> = keys.iter()
            .map(|(word, number, rest)| [&text(word)[..], &number.to_be_bytes(), rest].concat())
            .collect();
        let expected = naive(&fields, &keys[0], &keys[1]);
        prop_assert_eq!(order(&described.join(",")).compare(&keys[0], &keys[1]), Ok(expected));
    }

    #[test]
    fn any_bytes_are_a_key_or_an_error(
        key in prop::collection::vec(any::<u8>(), 0..24),
        fields in prop::collection::vec(0..NAMES.len(), 1..5),
    ) {
        let names: Vec<&str> = fields.iter().map(|at| NAMES[*at].0).collect();
        if let Ok(order) = names.join(",").parse::<WritableOrder>()
            && let Ok(compared) = order.compare(&key, &key)
        {
            prop_assert!(compared.is_eq());
        }
    }
}
