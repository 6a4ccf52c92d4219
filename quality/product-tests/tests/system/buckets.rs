//! A view of buckets reads like a view of runs, and both like the sorted file: every pattern of
//! keys of the test kit in every format, and the inputs that are special.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use merganser_testkit::patterns::{Pattern, RecordLayout, SampleInput};

use crate::harness::{Chance, Folder, fails, merganser, prints, small_memory};

const STRATEGIES: [&str; 2] = ["merge", "distribute"];

/// An input, the options to sort it with, and the expected result.
struct Case {
    what: String,
    options: Vec<String>,
    input: Vec<u8>,
    sorted: Vec<u8>,
    /// Where each record of `sorted` begins, and its end.
    starts: Vec<usize>,
    /// A key to look for, and where the first record that is not below it begins.
    key: Option<(String, usize)>,
}

fn options(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn starts(records: &[&[u8]]) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend(records.iter().scan(0, |end, record| {
        *end += record.len();
        Some(*end)
    }));
    starts
}

impl Case {
    /// `sample`, whose records these options sort by its key.
    fn of_sample(sample: &SampleInput, words: &[&str]) -> Self {
        let mut records: Vec<&[u8]> = sample.records.iter().map(|record| &**record).collect();
        records.sort_by(|a, b| sample.layout.key(a).cmp(&sample.layout.key(b)));
        let starts = starts(&records);
        let key = records.get(records.len() / 2).map(|record| sample.layout.key(record));
        // Only keys that can be typed.
        let key = key.and_then(|key| String::from_utf8(key.into_owned()).ok());
        let key = key.filter(|key| key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b' '));
        let key = key.map(|key| {
            let below = |record: &&[u8]| *sample.layout.key(record) < *key.as_bytes();
            let at = starts[records.iter().take_while(|record| below(record)).count()];
            (key, at)
        });
        Case {
            what: sample.to_string(),
            options: options(words),
            input: sample.bytes(),
            sorted: records.concat(),
            starts,
            key,
        }
    }

    /// Lines, judged by their bytes.
    fn of_lines(what: &str, input: Vec<u8>) -> Self {
        let mut records: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
        records.sort();
        let (starts, sorted) = (starts(&records), records.concat());
        Case { what: what.to_owned(), options: Vec::new(), input, sorted, starts, key: None }
    }
}

/// Makes both views of `case` in `folder`.
fn views(case: &Case, folder: &Folder, memory: &str) -> [PathBuf; 2] {
    let input = folder.write("input", &case.input);
    STRATEGIES.map(|strategy| {
        let view = folder.at(&format!("{strategy}.view"));
        let _ = std::fs::remove_dir_all(&view);
        let mut sort = merganser(["sort", memory, "--strategy", strategy]);
        prints(sort.args(&case.options).arg(&input).arg("--view").arg(&view));
        view
    })
}

fn cat(view: &Path, part: &[&str]) -> Vec<u8> {
    prints(merganser(["cat"]).arg(view).args(part))
}

fn fact(view: &Path, name: &str) -> u64 {
    let told = prints(merganser(["info", "--json"]).arg(view));
    let told: serde_json::Value = serde_json::from_slice(&told).expect("JSON");
    told[name].as_u64().unwrap_or_else(|| panic!("{name}: {told}"))
}

/// Everything that reads a view, on both.
fn check(case: &Case, folder: &Folder, memory: &str, chance: &mut Chance) {
    let what = &case.what;
    let (size, records) = (case.sorted.len(), case.starts.len() - 1);
    for view in views(case, folder, memory) {
        assert!(cat(&view, &[]) == case.sorted, "{what}: {}", view.display());
        let two = |chance: &mut Chance, upto: usize| {
            let (a, b) =
                (chance.below(upto as u64 + 1) as usize, chance.below(upto as u64 + 1) as usize);
            (a.min(b), a.max(b))
        };
        let (a, b) = two(chance, size);
        let part = cat(&view, &["--bytes", &format!("{a}..{b}")]);
        assert!(part == case.sorted[a..b], "{what}: --bytes {a}..{b} of {}", view.display());
        let (a, b) = two(chance, records);
        let part = cat(&view, &["--records", &format!("{a}..{b}")]);
        let (from, to) = (case.starts[a], case.starts[b]);
        assert!(part == case.sorted[from..to], "{what}: --records {a}..{b} of {}", view.display());
        if let Some((key, at)) = &case.key {
            let above = cat(&view, &["--from-key", key]);
            let below = cat(&view, &["--to-key", key]);
            assert!(above == case.sorted[*at..], "{what}: --from-key {key} of {}", view.display());
            assert!(below == case.sorted[..*at], "{what}: --to-key {key} of {}", view.display());
        }
        let found = [fact(&view, "records"), fact(&view, "bytes")];
        assert_eq!(found, [records as u64, size as u64], "{what}");
        prints(merganser(["verify"]).arg(&view));
        prints(merganser(["info", "--verify"]).arg(&view));
        let out = folder.at("out");
        prints(merganser(["materialize", "--consume"]).arg(&view).arg("-o").arg(&out));
        assert!(std::fs::read(&out).expect("there") == case.sorted, "{what}: materialize");
        assert!(!view.exists(), "{what}: a consumed view is gone");
    }
}

/// Checks many cases, two at a time.
fn check_all(cases: &[Case], memory: &str) {
    let (chance, next) = (Chance::new(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (chance, next) = (&chance, &next);
            scope.spawn(move || {
                let folder = Folder::new();
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let number = case.input.len() as u64;
                    check(case, &folder, memory, &mut chance.of_case(number));
                }
            });
        }
    });
}

#[test]
fn every_pattern_in_every_format() {
    let memory = small_memory();
    let formats: [(RecordLayout, &[&str]); 4] = [
        (RecordLayout::Fixed { bytes: 40, key_bytes: 10 }, &["--format=fixed:40", "--key=0:10"]),
        (RecordLayout::Numbered { delimiter: b'\n' }, &["-t\t", "-k1,1", "-s"]),
        (RecordLayout::Csv, &["--format=csv", "--key=1"]),
        (RecordLayout::Keyed, &["--format=keyed"]),
    ];
    let mut cases = Vec::new();
    for (number, pattern) in Pattern::ALL.into_iter().enumerate() {
        for (format, (layout, words)) in formats.iter().enumerate() {
            // Every pattern in two formats, every format with half of the patterns.
            if (number + format) % 2 == 1 && number > 0 {
                continue;
            }
            // Enough data that not all buckets fit into memory together.
            let bytes = (memory / 3) as usize;
            let of_one: usize = SampleInput::new(pattern, *layout, 100, 5).bytes().len() / 100;
            let sample =
                SampleInput::new(pattern, *layout, bytes / of_one, (number * 4 + format) as u64);
            cases.push(Case::of_sample(&sample, words));
        }
    }
    check_all(&cases, &format!("--memory={memory}"));
}

#[test]
fn inputs_that_are_special() {
    let memory = small_memory() * 2;
    let mut chance = Chance::new();
    let mut small = chance.lines(memory as usize);
    let mut cases = vec![
        Case::of_lines("nothing", Vec::new()),
        Case::of_lines("one record", b"alone\n".to_vec()),
        Case::of_lines("an empty record", b"\n".to_vec()),
        Case::of_lines("one key", b"the same\n".repeat(memory as usize / 9)),
        Case::of_lines("two keys", b"yes\nno\n".repeat(memory as usize / 7)),
    ];
    // As long as a distribution takes.
    small.extend(std::iter::repeat_n(b'm', memory as usize / 60));
    small.push(b'\n');
    small.extend(chance.lines(10_000));
    cases.push(Case::of_lines("one huge record among small ones", small));
    let of = |options: &[&str], case: Case| Case {
        options: options.iter().map(|word| (*word).to_owned()).collect(),
        ..case
    };
    let bytes = |of: &[&[u8]]| of.concat();
    cases.extend([
        of(
            &["--format=csv", "--header", "--key=k"],
            Case {
                what: "a header alone".to_owned(),
                input: b"k,v\n".to_vec(),
                sorted: b"k,v\n".to_vec(),
                starts: vec![4],
                ..Case::of_lines("", Vec::new())
            },
        ),
        of(
            &["--format=fixed:2"],
            Case {
                what: "one fixed record".to_owned(),
                input: b"xy".to_vec(),
                sorted: b"xy".to_vec(),
                starts: vec![0, 2],
                ..Case::of_lines("", Vec::new())
            },
        ),
        of(
            &["--format=fixed:3", "--key=1:2:i16le:r"],
            Case {
                what: "descending numbers".to_owned(),
                input: bytes(&[b"a\x01\0", b"b\xff\xff", b"c\x01\0", b"d\0\x01"]),
                sorted: bytes(&[b"d\0\x01", b"a\x01\0", b"c\x01\0", b"b\xff\xff"]),
                starts: vec![0, 3, 6, 9, 12],
                ..Case::of_lines("", Vec::new())
            },
        ),
    ]);
    for case in cases {
        let folder = Folder::new();
        check(&case, &folder, &format!("--memory={memory}"), &mut chance);
    }
}

/// Every kind of key gives the same result: GNU's options and typed numbers, with repeats.
#[test]
fn every_kind_of_key() {
    let memory = small_memory();
    let mut chance = Chance::new();
    let folder = Folder::new();
    let words =
        ["apple", "Apple", "  pear", "-12", "3.5", "1e3", "10K", "JAN", "feb", "v1.10", "", "x y"];
    let mut lines = Vec::new();
    while lines.len() < memory as usize / 2 {
        let (a, b) = (chance.pick(&words), chance.pick(&words));
        lines.extend_from_slice(format!("{a} {b}\t{}\n", chance.below(90)).as_bytes());
    }
    let fixed: Vec<u8> = std::iter::repeat_with(|| (chance.next() % 5000).to_le_bytes())
        .take(memory as usize / 16)
        .flatten()
        .collect();
    let of_lines =
        ["-n", "-g", "-h", "-M", "-V", "-f", "-b", "-d", "-i", "-r", "-k2", "-k2,2nr", "-rn -s"];
    let of_fixed = [
        "0:8",
        "0:8:u64le",
        "0:8:i64be:r",
        "0:4:u32be",
        "0:2:i16le",
        "0:8:f64le",
        "0:1:u8 --key=1:1:i8:r",
    ];
    let cases = of_lines.iter().map(|words| (&lines, (*words).to_owned()));
    let cases =
        cases.chain(of_fixed.iter().map(|key| (&fixed, format!("--format=fixed:8 --key={key}"))));
    for (input, words) in cases {
        let case = Case {
            what: words.clone(),
            options: words.split(' ').map(ToOwned::to_owned).collect(),
            input: input.clone(),
            sorted: Vec::new(),
            starts: Vec::new(),
            key: None,
        };
        let [merged, buckets] = views(&case, &folder, &format!("--memory={memory}"));
        let read = cat(&merged, &[]);
        assert!(read.len() == input.len() && read == cat(&buckets, &[]), "{words}");
        assert!(fact(&buckets, "buckets") > 1, "{words}: several buckets");
        let part = ["--bytes", "100000..200001"];
        assert!(cat(&merged, &part) == cat(&buckets, &part), "{words}");
        prints(merganser(["verify"]).arg(&buckets));
    }
}

#[test]
fn a_record_too_long_to_be_distributed_says_what_to_do() {
    let memory = small_memory();
    let folder = Folder::new();
    let mut input = vec![b'm'; memory as usize / 8];
    input.extend_from_slice(b"\nb\na\n");
    let input = folder.write("input", &input);
    let mut sort = merganser(["sort", "--strategy=distribute", &format!("--memory={memory}")]);
    let sentence = fails(sort.arg(&input).arg("--view").arg(folder.at("x.view")));
    assert!(sentence.contains("input") && sentence.contains("memory"), "{sentence}");
    assert_eq!(folder.names(), ["input"], "no debris");
}
