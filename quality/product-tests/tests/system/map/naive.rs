//! Each built-in SSDlet on odd texts, through the command, against a naive model: any line ends, NUL, a byte order mark,
//! no final newline, no byte at all, and random bytes. The result depends on neither threads nor partitions.

use std::collections::BTreeMap;
use std::path::Path;

use crate::harness::{Chance, Folder, merganser};

/// Texts whose beginnings and ends are odd.
fn odd_texts(chance: &mut Chance) -> Vec<Vec<u8>> {
    let fixed: [&[u8]; 14] = [
        b"",
        b"\n",
        b"\n\n",
        b"\r\n",
        b"\r",
        b"a b a",
        b"a b\n\nb a\n",
        b"a b\r\nb\r\n",
        b"a\rb\rc",
        b"a\0b\n\0\n",
        b"\xef\xbb\xbfa b\nb\n",
        b"7\n07\n7.0\r\n",
        b"\xfe\xfd\n\x80 a\n",
        b" \t a\x0bb\x0cc \n",
    ];
    let mut texts: Vec<_> = fixed.map(<[u8]>::to_vec).into();
    // Random bytes may begin as a compressed file or UTF-16 does, which are not read as text, so a letter is in front.
    let random =
        |make: &mut dyn FnMut() -> u8| [b'a'].into_iter().chain((0..300).map(|_| make())).collect();
    for _ in 0..2 {
        let bytes = b"ab' \t\n\n\r\0\xef\xbb\xbf\xff7.";
        texts.push(random(&mut || bytes[chance.below(bytes.len() as u64) as usize]));
    }
    texts.push(random(&mut || chance.below(256) as u8));
    texts
}

/// The result of one call, which is the same for one thread and three, and for small partitions.
fn result(words: &[&str], input: &Path) -> Vec<u8> {
    let run = |more: &[&str]| {
        let output = merganser([&["map"], words, more].concat()).arg(input).output().expect("runs");
        assert!(output.status.success(), "{words:?} {more:?}: {output:?}");
        output.stdout
    };
    let first = run(&["--threads", "1"]);
    for more in [&["--threads", "3"][..], &["--threads", "1", "--partition-size", "64"]] {
        // An SSDlet that gives records has no spills.
        let is_keyed = !matches!(words[0], "match" | "sample" | "project" | "filter")
            || words.contains(&"--count");
        if is_keyed || more.len() == 2 {
            assert_eq!(run(more), first, "{words:?} {more:?} {}", input.display());
        }
    }
    first
}

/// Lines with their ends; the last one gets a newline.
fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> =
        text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with(b"\n")) {
        last.push(b'\n');
    }
    lines
}

/// A line without its end.
fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn words_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| b" \t\n\x0c\r".contains(byte)).filter(|word| !word.is_empty())
}

fn count<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts
}

fn tsv(rows: &BTreeMap<Vec<u8>, u64>) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in rows {
        for byte in key {
            match byte {
                b'\t' => out.extend(b"\\t"),
                b'\n' => out.extend(b"\\n"),
                b'\r' => out.extend(b"\\r"),
                b'\\' => out.extend(b"\\\\"),
                byte => out.push(*byte),
            }
        }
        out.extend(format!("\t{value}\n").bytes());
    }
    out
}

fn has(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|part| part == text)
}

#[test]
fn each_ssdlet_on_odd_texts_is_its_naive_model() {
    let folder = Folder::new();
    let mut chance = Chance::new();
    for (number, text) in odd_texts(&mut chance).iter().enumerate() {
        let input = folder.write(&format!("t{number}"), text);
        let shown = String::from_utf8_lossy(text);
        let check = |words: &[&str], expected: Vec<u8>| {
            let found = result(words, &input);
            let (found, expected) =
                (String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected));
            assert_eq!(found, expected, "{words:?} on {shown:?}");
        };
        check(&["wordcount"], tsv(&count(words_of(text).map(<[u8]>::to_vec))));
        let lines = lines(text);
        let upper = text.to_ascii_uppercase();
        let letters =
            upper.split(|byte| !byte.is_ascii_alphabetic() && *byte != b'\'').map(|word| {
                let quotes = word.iter().take_while(|byte| **byte == b'\'').count();
                word[quotes..].to_vec()
            });
        let letters = count(letters.filter(|word| !word.is_empty()));
        check(&["wordcount", "--rule", "letters"], tsv(&letters));

        let matching = |wanted: bool| {
            lines
                .iter()
                .filter(|line| has(content(line), b"b") == wanted)
                .flatten()
                .copied()
                .collect()
        };
        check(&["match", "--key", "b"], matching(true));
        check(&["match", "--key", "b", "-v"], matching(false));
        let hits = lines.iter().filter(|line| has(content(line), b"b")).count() as u64;
        let counted = BTreeMap::from([(b"b".to_vec(), hits)]);
        check(
            &["match", "--key", "b", "--count"],
            if hits > 0 { tsv(&counted) } else { Vec::new() },
        );
        // For a regular expression, each carriage return ends a line.
        let ends_in_b = |line: &&Vec<u8>| {
            content(line).split(|byte| *byte == b'\r').any(|part| part.ends_with(b"b"))
        };
        let ends = lines.iter().filter(ends_in_b).flatten().copied();
        check(&["match", "--regex", "(?-u)b$"], ends.collect());

        // A last line without a newline gets one, which counts.
        let bytes = count(lines.iter().flatten().map(|byte| u32::from(*byte)));
        let rows =
            bytes.iter().map(|(byte, times)| format!("{byte}\t{times}\n")).collect::<String>();
        check(&["histogram", "--of", "bytes"], rows.into_bytes());
        let numbers = lines.iter().filter_map(|line| {
            let text = std::str::from_utf8(content(line).trim_ascii()).ok()?;
            let number: f64 = text.parse().ok()?;
            (number.is_finite() && number >= 0.0).then(|| number.to_string().into_bytes())
        });
        let rows: Vec<(Vec<u8>, u64)> = count(numbers).into_iter().collect();
        if rows.len() < 2 {
            check(&["histogram", "--invalid", "skip"], tsv(&rows.into_iter().collect()));
        }

        let pairs = lines.iter().flat_map(|line| {
            let words: Vec<_> = words_of(line).collect();
            words.windows(2).map(|pair| pair.join(&b' ')).collect::<Vec<_>>()
        });
        check(&["sequence-count", "--length", "2"], tsv(&count(pairs)));
        let name = input.display().to_string();
        let terms = words_of(text).map(|word| [word, b"\t", name.as_bytes()].concat());
        check(&["terms"], tsv(&count(terms)));

        check(&["sample", "--fraction", "1"], lines.concat());
        check(&["sample", "--fraction", "0"], Vec::new());
        let mut sampled = split(&result(&["sample", "--records", "100000"], &input));
        let mut all = lines.clone();
        sampled.sort();
        all.sort();
        assert_eq!(sampled, all, "sample of {shown:?}");
    }
}

fn split(text: &[u8]) -> Vec<Vec<u8>> {
    text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Tables without quotes, whose rows are lines: what quotes mean has tests of its own.
#[test]
fn tables_without_quotes_are_lines() {
    let folder = Folder::new();
    let mut chance = Chance::new();
    for round in 0..12 {
        let end = ["\n", "\r\n"][round % 2];
        let mut text = String::new();
        for _ in 0..chance.below(40) {
            let number = ["1", "1.0", "0.30", "12345678901234567", "12345678901234568", "x", ""];
            let of = |chance: &mut Chance| number[chance.below(7) as usize];
            text += &format!("{},{}{end}", of(&mut chance), of(&mut chance));
        }
        let input = folder.write(&format!("c{round}"), text.as_bytes());
        let lines = split(text.as_bytes());
        let field = |line: &Vec<u8>, at: usize| {
            let text = String::from_utf8(content(line).to_vec()).expect("ASCII");
            text.split(',').nth(at).expect("two fields").to_owned()
        };
        let kept = lines.iter().filter(|line| field(line, 0) == "12345678901234567").flatten();
        let found =
            result(&["filter", "--format", "csv", "--where", "1 = 12345678901234567"], &input);
        assert!(found == kept.copied().collect::<Vec<_>>(), "{text:?}");
        let turned = lines.iter().map(|line| format!("{},{}{end}", field(line, 1), field(line, 0)));
        let found = result(&["project", "--format", "csv", "--columns", "2,1"], &input);
        assert!(found == turned.collect::<String>().into_bytes(), "{text:?}");
        let counted = count(
            lines
                .iter()
                .map(|line| field(line, 0))
                .filter(|f| f.starts_with(|c: char| c.is_ascii_digit()))
                .map(|f| {
                    (match &*f {
                        "1.0" => "1",
                        "0.30" => "0.3",
                        other => other,
                    })
                    .to_owned()
                }),
        );
        let rows =
            counted.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect::<String>();
        let words = ["histogram", "--format", "csv", "--column", "1", "--invalid", "skip"];
        assert_eq!(String::from_utf8_lossy(&result(&words, &input)), rows, "{text:?}");
    }
}
