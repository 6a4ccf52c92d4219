//! Guests in C, Rust and AssemblyScript: against plain Rust, in two engines, however the input is cut.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::interpreter::interpreted;
use crate::*;

/// Cuts `input` into chunks of about `piece` bytes that end where lines end.
fn lines(input: &[u8], piece: usize) -> Vec<&[u8]> {
    let (mut chunks, mut from) = (Vec::new(), 0);
    for (at, byte) in input.iter().enumerate() {
        if *byte == b'\n' && at + 1 - from >= piece {
            chunks.push(&input[from..=at]);
            from = at + 1;
        }
    }
    chunks.push(&input[from..]);
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}

/// What both engines give, which must be the same.
fn both(module: &[u8], args: &[u8], chunks: &[&[u8]]) -> CollectedOutput {
    let found = run(module, args, WasmLimits::default(), chunks).expect("a good guest");
    let is_ordered = !found.ordered.is_empty();
    let again = interpreted(module, args, chunks, is_ordered);
    assert!(found == again, "wasmtime and wasmi differ");
    found
}

/// Lines of short words, and now and then one with other bytes.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        8 => "[a-e]{1,3}".prop_map(String::into_bytes),
        2 => "[a-z]{1,40}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    let space = prop_oneof![8 => Just(b' '), 2 => Just(b'\n'), 1 => 9u8..14];
    prop::collection::vec((word, space), 0..200).prop_map(|words| {
        let mut text: Vec<u8> =
            words.into_iter().flat_map(|(word, space)| [word, vec![space]].concat()).collect();
        text.push(b'\n');
        text
    })
}

fn for_all<S: Strategy>(cases: u32, of: S, check: impl Fn(S::Value)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let tested = TestRunner::new(config).run(&of, |value| {
        check(value);
        Ok(())
    });
    tested.unwrap_or_else(|error| panic!("{error}"));
}

fn words(text: &[u8]) -> BTreeMap<Vec<u8>, i64> {
    let mut counts = BTreeMap::new();
    let is_space = |byte: &u8| matches!(byte, b' ' | 9..=13);
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        *counts.entry(word.to_vec()).or_default() += 1;
    }
    counts
}

#[test]
fn words_in_c() {
    let Some((_kept, folder)) = built("c") else { return };
    let guests = ["wordcount.wasm", "fold.wasm", "fold-bytes.wasm"].map(|name| read(&folder, name));
    for_all(24, (text(), 1usize..300), |(text, piece)| {
        let chunks = lines(&text, piece);
        for guest in &guests {
            let found = run(guest, b"", WasmLimits::default(), &chunks).expect("a good guest");
            assert_eq!(sums(&found), words(&text));
        }
        both(&guests[0], b"", &chunks);
    });
    // The interpreter takes seconds for the large tables of the others.
    let text = b"one two\tone\n\n   a-longer-word-of-27-letters x one\r\n".repeat(5);
    for guest in &guests[1..] {
        assert_eq!(sums(&both(guest, b"", &lines(&text, 60))), words(&text));
    }
}

/// The table of the folding guest is emptied when it is full.
#[test]
fn a_full_table_is_handed_over() {
    let Some((_kept, folder)) = built("c") else { return };
    let mut text = Vec::new();
    for i in 0..450_000 {
        text.extend(format!("{i} ").bytes());
        if i % 10 == 9 {
            text.push(b'\n');
        }
    }
    let chunks = lines(&text, 100_000);
    let found =
        run(&read(&folder, "fold.wasm"), b"", WasmLimits::default(), &chunks).expect("good");
    assert_eq!(found.keyed.len(), 450_000);
    assert!(sums(&found).values().all(|count| *count == 1));
}

#[test]
fn grep_in_c() {
    let Some((_kept, folder)) = built("c") else { return };
    let guests = ["grep.wasm", "grep-bytes.wasm"].map(|name| read(&folder, name));
    for_all(48, (text(), 1usize..300, "[a-e ]{1,4}|[a-z]{17,20}"), |(text, piece, wanted)| {
        let has = |line: &&[u8]| line.windows(wanted.len()).any(|at| at == wanted.as_bytes());
        let naive =
            text.split_inclusive(|byte| *byte == b'\n').filter(has).collect::<Vec<_>>().concat();
        for guest in &guests {
            assert_eq!(both(guest, wanted.as_bytes(), &lines(&text, piece)).ordered, naive);
        }
    });
    let told = |args: &[u8]| {
        run(&guests[0], args, WasmLimits::default(), &[]).expect_err("refused").to_string()
    };
    assert_eq!(told(b""), "grep: give the text to look for");
    assert_eq!(told(b"a\nb"), "grep: a line end is never inside of a line");
    assert_eq!(told(&[b'x'; 4097]), "grep: the text is longer than 4096 bytes");
}

#[test]
fn filter_in_c() {
    let Some((_kept, folder)) = built("c") else { return };
    let guest = read(&folder, "filter.wasm");
    let records = prop::collection::vec(prop::array::uniform16(0u8..4), 1..100);
    for_all(24, (records, 0usize..13, 1usize..9), |(records, offset, step)| {
        let in_range = |record: &&[u8; 16]| {
            let value = u32::from_le_bytes(record[offset..offset + 4].try_into().expect("4 bytes"));
            (0x0100_0000..=0x0200_0000).contains(&value)
        };
        let naive = records.iter().filter(in_range).copied().collect::<Vec<_>>().concat();
        let all = records.concat();
        let chunks: Vec<&[u8]> = all.chunks(16 * step).collect();
        let args = format!("{offset} 16777216 33554432");
        assert_eq!(both(&guest, args.as_bytes(), &chunks).ordered, naive);
    });
    let told = |args: &str| {
        run(&guest, args.as_bytes(), WasmLimits::default(), &[]).expect_err("refused").to_string()
    };
    assert_eq!(told("13 0 1"), "filter: OFFSET is 12 at most: a record has 16 bytes");
    assert_eq!(told("1 2"), "filter: give three numbers: OFFSET LEAST MOST");
    assert_eq!(told("1 2 3 4"), "filter: give OFFSET LEAST MOST and no more");
    assert_eq!(told("1 2 4294967296"), "filter: a number is larger than 4294967295");
}

#[test]
fn histogram_in_c() {
    let Some((_kept, folder)) = built("c") else { return };
    let guest = read(&folder, "histogram.wasm");
    let numbers = prop::collection::vec(
        prop_oneof![-50i64..50, -999_999_999_999_999_999i64..=999_999_999_999_999_999],
        1..200,
    );
    for_all(24, (numbers, 1i64..40, 1usize..200), |(numbers, width, piece)| {
        let mut naive: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        for number in &numbers {
            let bin = number.div_euclid(width) * width;
            *naive.entry(bin.to_le_bytes().to_vec()).or_default() += 1;
        }
        let text: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        let found = both(&guest, width.to_string().as_bytes(), &lines(text.as_bytes(), piece));
        assert_eq!(sums(&found), naive);
    });
    let error = run(&guest, b"10", WasmLimits::default(), &[b"1\n2\n", b"3\nfour\n"])
        .expect_err("no number");
    assert_eq!(error.to_string(), "at byte 6: histogram: the line is no whole number");
}

#[test]
fn sales_in_rust() {
    let Some((_kept, folder)) = built("rust") else { return };
    let guest = read(&folder, "sales.wasm");
    let rows = prop::collection::vec(("[A-D]{0,2}", -1000i64..1000), 1..200);
    for_all(24, (rows, 1usize..300), |(rows, piece)| {
        let mut naive: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        for (name, amount) in &rows {
            *naive.entry(name.clone().into_bytes()).or_default() += amount;
        }
        let text: String =
            rows.iter().map(|(name, amount)| format!("{name},{amount},x\n")).collect();
        assert_eq!(sums(&both(&guest, b"", &lines(text.as_bytes(), piece))), naive);
    });
    let error =
        run(&guest, b"", WasmLimits::default(), &[b"a,1\n", b"a,2\nb;3\n"]).expect_err("bad");
    assert_eq!(error.to_string(), "at byte 8: sales: the row is no NAME,AMOUNT");
}

#[test]
fn lengths_in_assemblyscript() {
    let Some((_kept, folder)) = built("assemblyscript") else { return };
    let guest = read(&folder, "lengths.wasm");
    for_all(24, (text(), 1usize..300), |(text, piece)| {
        let mut naive: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            *naive.entry((line.len() - 1).to_string().into_bytes()).or_default() += 1;
        }
        assert_eq!(sums(&both(&guest, b"", &lines(&text, piece))), naive);
    });
}

#[test]
fn all_of_them_pass_their_check() {
    for (language, count) in [("c", 7), ("rust", 1), ("assemblyscript", 1)] {
        let Some((_kept, folder)) = built(language) else { continue };
        let mut seen = 0;
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let module = std::fs::read(&path).expect("there");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let (args, sample) = match name.split('-').next().expect("a name") {
                "grep" => (&b"ab"[..], None),
                "filter" => (&b"0 0 2147483647"[..], None),
                "histogram" => (&b"10"[..], Some(&b"1\n22\n-7\n22"[..])),
                _ => (&b""[..], None),
            };
            let checked = merganser_wasm::check(&module, args, WasmLimits::default(), sample);
            let checked = checked.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(checked.rows > 0 && checked.fuel > 0, "{name}: {checked:?}");
            assert!(checked.declared.name == name.split('-').next().expect("a name"));
            seen += 1;
        }
        assert_eq!(seen, count, "{language}");
    }
}

/// A guest that keeps something from one chunk to the next is found out.
#[test]
fn a_guest_that_remembers_does_not_pass() {
    let body = "(i32.store (i32.const 0) (i32.load (i32.const 8))) (i32.store (i32.const 4) (i32.const 1)) (i32.store (i32.const 8) (i32.const 1)) (call $spans (i32.const 0) (i32.const 1))";
    let grow = r#"(func (export "mgs_open") (result i32) (i32.eq (memory.grow (i32.const 12)) (i32.const -1)))"#;
    let told = merganser_wasm::check(&guest(KEYED, body, grow), b"", WasmLimits::default(), None);
    let told = told.expect_err("it remembers").to_string();
    assert!(told.starts_with("guest: its result (key '"), "{told}");
    assert!(told.contains("depends on how the input is cut into chunks"), "{told}");
}
