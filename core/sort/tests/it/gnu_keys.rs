//! Random lines and options, ordered by us and by the system's GNU `sort`: the bytes must be the
//! same, and where GNU sort refuses options, so must we.
//!
//! `MERGANSER_GNU_CASES` sets how many cases each test tries, `MERGANSER_GNU_SEED` the first seed.
//! Without a GNU `sort` in the path there is nothing to compare with, and the tests say so.

#![expect(clippy::print_stderr, reason = "a test that has nothing to compare with says so")]

use std::io::Write;
use std::process::{Command, Stdio};

use merganser_sort::key::{KeyError, Order, OrderSpec};
use merganser_sort::record::Format;

/// Random cases: a seed is a case on every machine.
struct Random(merganser_random::Random);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.bits()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

fn environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn gnu_sort_exists() -> bool {
    let version = Command::new("sort").arg("--version").output();
    let exists = version.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).contains("GNU"));
    if !exists {
        eprintln!("no GNU sort in the path: nothing was compared");
    }
    exists
}

fn gnu_sort(arguments: &[String], input: &[u8]) -> Result<Vec<u8>, String> {
    let mut child = Command::new("sort")
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("GNU sort starts");
    // It may refuse its options and go without reading.
    let _ = child.stdin.take().expect("piped").write_all(input);
    let output = child.wait_with_output().expect("GNU sort ends");
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// The arguments of GNU sort for `spec`.
fn arguments(spec: &OrderSpec) -> Vec<String> {
    let mut arguments = Vec::new();
    if spec.format == (Format::Lines { delimiter: 0 }) {
        arguments.push("-z".to_owned());
    }
    if let Some(separator) = spec.separator {
        let separator = if separator == 0 { "\\0".to_owned() } else { (separator as char).into() };
        arguments.extend(["-t".to_owned(), separator]);
    }
    arguments.extend(spec.keys.iter().flat_map(|key| ["-k".to_owned(), key.clone()]));
    arguments.extend(spec.options.chars().map(|letter| format!("-{letter}")));
    arguments.extend(spec.stable.then(|| "-s".to_owned()));
    arguments.extend(spec.unique.then(|| "-u".to_owned()));
    arguments
}

/// Sorts by whole normalised keys and by comparing records, which must agree.
fn our_sort(order: &Order, input: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    let mut rest = input;
    while let Some(len) = order.format().record_len(rest) {
        records.push(&rest[..len]);
        rest = &rest[len..];
    }
    let key = |record: &[u8]| {
        let mut key = Vec::new();
        order.encode(record, &mut key);
        key
    };
    let full_key = |record: &[u8]| {
        let mut key = Vec::new();
        order.encode_full(record, &mut key);
        key
    };
    let mut by_comparison = records.clone();
    by_comparison.sort_by(|a, b| order.compare(a, b));
    records.sort_by_cached_key(|record| full_key(record));
    assert_eq!(records, by_comparison, "compare() and encode_full() disagree");
    if order.unique() {
        records.dedup_by_key(|record| key(record));
    }
    records.concat()
}

/// The words of a case's lines.
const WORDS: &[&[&str]] = &[
    // Text.
    &["a", "A", "b", "B", " ", "\t", ",", "z", "_", "\u{1}", "\u{2}", "~", "Z", "é"],
    // Numbers.
    &[
        "0",
        "1",
        "2",
        "9",
        "00",
        "10",
        "100",
        ".",
        "-",
        "-0",
        "-.",
        "+",
        " ",
        "\t",
        ",",
        "5",
        "12345678901234567890",
        "0.1",
        "0.10",
        "0.01",
        "x",
    ],
    // Numbers with suffixes.
    &[
        "0", "1", "9", "10", ".", "-", "k", "K", "M", "m", "G", "T", "P", "E", "Z", "Y", "g", " ",
        ",", "0.0", "i", "B",
    ],
    // Floating-point numbers, but no NaN: GNU sort 9.1 compares those by bytes it never set.
    &[
        "0",
        "1",
        "2",
        "9",
        ".",
        "-",
        "+",
        "e",
        "E",
        "0x",
        "p",
        "inf",
        "INFINITY",
        "e5",
        "e-3",
        "p3",
        "a",
        "f",
        " ",
        ",",
        "1e4932",
        "1e-4940",
        "123456789012345678901",
        "18446744073709551615",
        "(",
        "0000000000",
        "99999999999999999999",
        "e-20",
        "e31",
    ],
    // Months.
    &["jan", "Feb", "MAR", "apr", "may", "Jun", "july", "ja", "se", "dec", " ", "\t", ",", "1"],
    // Versions.
    &[
        "0", "1", "2", "9", "00", "10", "a", "b", "Z", "~", ".", "-", "_", " ", ".tar", ".gz",
        ".~", ".a1", "..", ",", "é", "1.2", "rc",
    ],
    // Fields.
    &["a", "b", " ", "  ", "\t", ",", ",,", ":", "1", "2", "10", "B"],
];

fn random_input(random: &mut Random, delimiter: u8) -> Vec<u8> {
    let words = random.pick(WORDS);
    let longest = 1 + random.below(9);
    let mut input = Vec::new();
    for _ in 0..random.below(40) {
        for _ in 0..random.below(longest + 1) {
            match random.below(60) {
                // By accident, GNU sort takes 80 for a thousands separator: 80 is the number that
                // stands for no separator.
                0 => input
                    .push(Some(random.next() as u8).filter(|&byte| byte != 0x80).unwrap_or(0xff)),
                1 => input.push(b'\n'),
                2 => input.push(0),
                _ => input.extend_from_slice(random.pick(words).as_bytes()),
            }
        }
        input.push(delimiter);
    }
    input
}

/// Mostly one kind, now and then several, which may contradict one another.
fn random_options(random: &mut Random) -> String {
    let mut options = String::new();
    if random.chance(70) {
        options.push(random.pick(&['n', 'g', 'h', 'M', 'V', 'd', 'i', 'f', 'V', 'n']));
    }
    for letter in "bdfgihMnrV".chars() {
        if random.chance(if "bfr".contains(letter) { 20 } else { 2 }) {
            options.push(letter);
        }
    }
    options
}

fn random_position(random: &mut Random, from: usize) -> String {
    let field = 1 + random.below(4);
    match random.below(4) {
        0 => format!("{field}.{}", from + random.below(4)),
        _ => field.to_string(),
    }
}

fn random_key(random: &mut Random) -> String {
    let mut key = random_position(random, 1);
    if random.chance(50) {
        key += &random_options(random);
    }
    if random.chance(70) {
        key.push(',');
        key += &random_position(random, 0);
        if random.chance(20) {
            key += &random_options(random);
        }
    }
    key
}

fn random_spec(random: &mut Random) -> OrderSpec {
    let delimiter = if random.chance(20) { 0 } else { b'\n' };
    let keys = match random.below(10) {
        0..4 => 0,
        4..8 => 1,
        8 => 2,
        _ => 3,
    };
    OrderSpec {
        keys: (0..keys).map(|_| random_key(random)).collect(),
        options: if random.chance(60) { random_options(random) } else { String::new() },
        separator: random.chance(40).then(|| random.pick(b",: \ta\0")),
        stable: random.chance(20),
        unique: random.chance(20),
        ..OrderSpec::new(Format::Lines { delimiter })
    }
}

#[test]
fn random_lines_and_options_sort_like_gnu_sort() {
    if !gnu_sort_exists() {
        return;
    }
    let first = environment("MERGANSER_GNU_SEED", 1);
    let cases = environment("MERGANSER_GNU_CASES", 600);
    for seed in first..first + cases {
        let mut random = Random(merganser_random::Random::new(seed << 32));
        let spec = random_spec(&mut random);
        let Format::Lines { delimiter } = spec.format else { unreachable!() };
        let mut input = random_input(&mut random, delimiter);
        let arguments = arguments(&spec);
        if arguments.iter().any(|argument| argument.contains('h')) {
            // Older versions of GNU sort do not know these suffixes.
            input.retain(|byte| !b"RrQq".contains(byte));
        }
        let context = || format!("seed {seed}: sort {arguments:?}\n{}", input.escape_ascii());
        match (gnu_sort(&arguments, &input), spec.compile(None)) {
            (Ok(theirs), Ok(order)) => {
                let ours = our_sort(&order, &input);
                assert!(
                    ours == theirs,
                    "{}\nours   {}\ntheirs {}",
                    context(),
                    ours.escape_ascii(),
                    theirs.escape_ascii()
                );
            }
            (Err(theirs), Err(ours)) => {
                if matches!(ours, KeyError::Incompatible(_)) {
                    assert_eq!(theirs, format!("sort: {ours}"), "{}", context());
                }
            }
            (theirs, ours) => panic!("{}\nours {ours:?}\ntheirs {theirs:?}", context()),
        }
    }
}

/// Floating-point numbers, most of them close to one another, to the edges of an 80-bit float, or
/// to the middle between two of them.
#[test]
fn close_floating_point_numbers_sort_like_gnu_sort() {
    if !gnu_sort_exists() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let first = environment("MERGANSER_GNU_SEED", 1);
    let cases = environment("MERGANSER_GNU_CASES", 600) / 20;
    let spec = OrderSpec { options: "g".to_owned(), stable: true, ..lines() };
    let order = spec.compile(None).expect("-g alone is an order");
    for seed in first..first + cases {
        let mut random = Random(merganser_random::Random::new(seed << 32));
        let mut input = Vec::new();
        for _ in 0..20 {
            let digits = 1 + random.below(30);
            let mut number: String =
                (0..digits).map(|_| random.pick(b"0123456789") as char).collect();
            number.insert(random.below(digits + 1), '.');
            let exponent = match random.below(4) {
                0 => random.below(60) as i64 - 30,
                1 => random.below(80) as i64 - 4980,
                2 => random.below(60) as i64 + 4890,
                _ => random.below(10_000) as i64 - 5000,
            };
            for ending in ["", "0", "1", "00000000000000000000001", "5", "49999999999999999999"] {
                input.extend(format!("{number}{ending}e{exponent}\n").bytes());
            }
            let (high, low) = (random.next(), random.next());
            for low in [low, low & 0x8000, 0x8000, 0x7fff, 0x8001] {
                let exponent = exponent * 4;
                input.extend(format!("0x{high:x}.{:04x}p{exponent}\n", low as u16).bytes());
            }
        }
        let theirs = gnu_sort(&arguments(&spec), &input).expect("GNU sort takes -g");
        let ours = our_sort(&order, &input);
        let lines = |bytes: &[u8]| -> Vec<String> {
            bytes.split(|&byte| byte == b'\n').map(|line| line.escape_ascii().to_string()).collect()
        };
        let differ = lines(&ours).into_iter().zip(lines(&theirs)).find(|(a, b)| a != b);
        assert_eq!(differ, None, "seed {seed}: (ours, theirs)");
    }
}

#[test]
fn a_nan_sorts_behind_no_number_like_gnu_sort() {
    if !gnu_sort_exists() {
        return;
    }
    let spec = OrderSpec { options: "g".to_owned(), ..lines() };
    let input = b"1\n-inf\nx\nnan\n\n-1e9999\n-5\n";
    let order = spec.compile(None).expect("-g alone is an order");
    assert_eq!(Ok(our_sort(&order, input)), gnu_sort(&arguments(&spec), input));
}

fn lines() -> OrderSpec {
    OrderSpec::new(Format::Lines { delimiter: b'\n' })
}

/// Keys at the edge of what GNU sort accepts: we accept and refuse the same ones.
#[test]
fn keys_are_refused_like_gnu_sort_does() {
    if !gnu_sort_exists() {
        return;
    }
    let many = "99999999999999999999999";
    let many_of_both = format!("1.{many},{many}.{many}");
    let keys = [
        "",
        "0",
        "a",
        ".1",
        "1.",
        "1.0",
        "1.1",
        "1,",
        "1,0",
        "1,1.",
        "1,1.0",
        "1,1.x",
        "1x",
        "1,2,3",
        "1 ",
        " 1",
        "-1",
        "+1",
        "1,-1",
        "1n,2g",
        "1nM",
        "1,1hn",
        "1dn",
        "1iV",
        "1dV",
        "1RV",
        "1bfrn",
        "1di",
        "1din",
        "1fgnhMdiRVr",
        many,
        &many_of_both,
    ];
    for key in keys {
        let spec = OrderSpec { keys: vec![key.to_owned()], ..lines() };
        let theirs = gnu_sort(&arguments(&spec), b"b 1 2\na 2 1\n");
        let ours = spec.compile(None);
        assert_eq!(ours.is_err(), theirs.is_err(), "{key:?}: ours {ours:?}, theirs {theirs:?}");
        if let (Err(ours @ KeyError::Incompatible(_)), Err(theirs)) = (ours, theirs) {
            assert_eq!(theirs, format!("sort: {ours}"), "{key:?}");
        }
    }
}
