//! Records that GNU `sort` does not know: fixed, csv and keyed, judged by a naive stable sort.

use std::cmp::Ordering;

use crate::harness::{Chance, Folder, asked, merganser, output_with, prints, view_of};

fn cases() -> u64 {
    asked("MERGANSER_GNU_CASES", 400).div_ceil(8)
}

/// Sorts `input` by the command, printed or through a view, and compares.
fn check(chance: &mut Chance, options: &[String], input: &[u8], expected: &[u8]) {
    let folder = Folder::new();
    let path = folder.write("input", input);
    let options: Vec<&str> = options.iter().map(|o| &**o).collect();
    let ours = if chance.once_in(2) {
        prints(merganser(["sort"]).args(&options).arg(&path))
    } else {
        prints(merganser(["cat"]).arg(view_of(&folder, &path, &options)))
    };
    assert!(
        ours == expected,
        "{options:?}\n input    b\"{}\"\n output   b\"{}\"\n expected b\"{}\"",
        input.escape_ascii(),
        ours.escape_ascii(),
        expected.escape_ascii()
    );
}

/// The types of a fixed key and how two values of each compare.
type Compare = fn(&[u8], &[u8]) -> Ordering;

macro_rules! by {
    ($number:ty, $from:ident) => {
        |a: &[u8], b: &[u8]| {
            let number = |x: &[u8]| <$number>::$from(x.try_into().expect("its length"));
            number(a).partial_cmp(&number(b)).expect("no NaN is made")
        }
    };
}

const TYPES: [(&str, usize, Compare); 14] = [
    ("bytes", 3, |a, b| a.cmp(b)),
    ("u8", 1, by!(u8, from_le_bytes)),
    ("i8", 1, by!(i8, from_le_bytes)),
    ("u16le", 2, by!(u16, from_le_bytes)),
    ("u16be", 2, by!(u16, from_be_bytes)),
    ("i32le", 4, by!(i32, from_le_bytes)),
    ("i32be", 4, by!(i32, from_be_bytes)),
    ("u32be", 4, by!(u32, from_be_bytes)),
    ("u64le", 8, by!(u64, from_le_bytes)),
    ("u64be", 8, by!(u64, from_be_bytes)),
    ("i64le", 8, by!(i64, from_le_bytes)),
    ("i64be", 8, by!(i64, from_be_bytes)),
    ("f64le", 8, by!(f64, from_le_bytes)),
    ("f32be", 4, by!(f32, from_be_bytes)),
];

#[test]
fn fixed_records_by_typed_keys() {
    let chance = Chance::new();
    for case in 0..cases() {
        let chance = &mut chance.of_case(case);
        let mut keys = Vec::new();
        let mut length = chance.below(5) as usize;
        for _ in 0..1 + chance.below(3) {
            let (name, size, compare) = TYPES[chance.below(TYPES.len() as u64) as usize];
            keys.push((name, length, size, compare, chance.once_in(2)));
            length += size + chance.below(3) as usize;
        }
        let mut records: Vec<Vec<u8>> = (0..chance.below(80))
            .map(|_| {
                let mut record: Vec<u8> = (0..length).map(|_| chance.next() as u8).collect();
                for &(name, offset, size, ..) in &keys {
                    let place = &mut record[offset..offset + size];
                    // Few values, so that the next key matters; no NaN and no -0.
                    let small = chance.below(5) as i32 - 2;
                    match name {
                        "f64le" => place.copy_from_slice(&(f64::from(small) + 0.5).to_le_bytes()),
                        "f32be" => place.copy_from_slice(&(small as f32 + 0.5).to_be_bytes()),
                        _ if chance.once_in(2) => {
                            place.fill(if small < 0 { 0xff } else { 0 });
                            place[0] = small as u8;
                        }
                        _ => {}
                    }
                }
                record
            })
            .collect();
        let mut options = vec![format!("--format=fixed:{length}")];
        for (name, offset, size, _, descending) in &keys {
            let r = if *descending { ":r" } else { "" };
            options.push(format!("--key={offset}:{size}:{name}{r}"));
        }
        let input = records.concat();
        records.sort_by(|a, b| {
            keys.iter().fold(Ordering::Equal, |so_far, &(_, at, size, compare, descending)| {
                let order = compare(&a[at..at + size], &b[at..at + size]);
                so_far.then(if descending { order.reverse() } else { order })
            })
        });
        check(chance, &options, &input, &records.concat());
    }
}

/// A field as it is written in a row, and its value.
fn random_field(chance: &mut Chance, numeric: bool) -> (String, String) {
    if numeric {
        let value = format!("{}.{}", chance.below(40) as i64 - 20, chance.below(3));
        return (value.clone(), value);
    }
    let mut value = String::new();
    for _ in 0..chance.below(4) {
        value += chance.pick(&["a", "b", "B", " ", ",", "\"", "\n", "ü"]);
    }
    let quoted = chance.once_in(4) || value.contains([',', '"', '\n']);
    (if quoted { format!("\"{}\"", value.replace('"', "\"\"")) } else { value.clone() }, value)
}

#[test]
fn csv_rows_with_quotes_and_newlines() {
    let chance = Chance::new();
    for case in 0..cases() {
        let chance = &mut chance.of_case(case);
        let columns = ["name", "amount", "a note"];
        let header = chance.once_in(2);
        let row = |chance: &mut Chance| {
            let fields: Vec<_> = (0..3).map(|c| random_field(chance, c == 1)).collect();
            let raw: Vec<_> = fields.iter().map(|(raw, _)| &**raw).collect();
            let values: Vec<_> = fields.iter().map(|(_, value)| value.clone()).collect();
            (raw.join(",") + "\n", values)
        };
        let mut rows: Vec<_> = (0..chance.below(60)).map(|_| row(chance)).collect();
        let mut options = vec!["--format=csv".to_owned()];
        let mut keys = Vec::new();
        for _ in 0..1 + chance.below(2) {
            let (column, descending) = (chance.below(3) as usize, chance.once_in(3));
            let name = if header && chance.once_in(2) {
                columns[column].to_owned()
            } else {
                (column + 1).to_string()
            };
            let n = if column == 1 { ":n" } else { "" };
            let r = if descending { ":r" } else { "" };
            options.push(format!("--key={name}{n}{r}"));
            keys.push((column, descending));
        }
        let first = if header { columns.join(",") + "\n" } else { String::new() };
        options.extend(header.then(|| "--header".to_owned()));
        let all = |rows: &[(String, Vec<String>)]| {
            rows.iter().fold(first.clone(), |text, (raw, _)| text + raw)
        };
        let input = all(&rows);
        rows.sort_by(|(_, a), (_, b)| {
            keys.iter().fold(Ordering::Equal, |so_far, &(column, descending)| {
                let (a, b) = (&a[column], &b[column]);
                let number = |text: &str| text.parse::<f64>().expect("a number");
                let order = if column == 1 { number(a).total_cmp(&number(b)) } else { a.cmp(b) };
                so_far.then(if descending { order.reverse() } else { order })
            })
        });
        check(chance, &options, input.as_bytes(), all(&rows).as_bytes());
    }
}

#[test]
fn the_header_of_every_input_is_known_and_written_once() {
    let folder = Folder::new();
    folder.write("a.csv", b"k,v\nb,1\na,2\n");
    folder.write("b.csv", b"k,v\nc,3\na,4\n");
    let mut sort = merganser(["sort", "--format=csv", "--header", "--key=k", "a.csv", "b.csv"]);
    let sorted = prints(sort.current_dir(folder.path()));
    assert_eq!(String::from_utf8(sorted).expect("UTF-8"), "k,v\na,2\na,4\nb,1\nc,3\n");
}

#[test]
fn keyed_records_by_their_keys() {
    let chance = Chance::new();
    for case in 0..cases() {
        let chance = &mut chance.of_case(case);
        let mut records: Vec<(Vec<u8>, Vec<u8>)> = (0..chance.below(50))
            .map(|_| {
                let key: Vec<u8> =
                    (0..chance.below(5)).map(|_| *chance.pick(&[&0, &1, &0xff, &b'a'])).collect();
                let value: Vec<u8> = (0..chance.below(9)).map(|_| chance.next() as u8).collect();
                let mut record = Vec::from((key.len() as u32).to_le_bytes());
                record.extend((value.len() as u32).to_le_bytes());
                record.extend(&key);
                record.extend(value);
                (key, record)
            })
            .collect();
        let all = |records: &[(Vec<u8>, Vec<u8>)]| -> Vec<u8> {
            records.iter().flat_map(|(_, record)| record.clone()).collect()
        };
        let input = all(&records);
        records.sort_by(|(a, _), (b, _)| a.cmp(b));
        check(chance, &["--format=keyed".into()], &input, &all(&records));
    }
}

/// The figures that the Sort Benchmark's own tools give.
#[test]
fn generated_records_are_verified_as_valsort_does() {
    let folder = Folder::new();
    let records = prints(&mut merganser(["generate", "--format", "gensort", "--records", "1000"]));
    assert_eq!(records.len(), 100_000);
    let verify = ["verify", "--format=fixed:100", "--key=0:10", "--json", "-"];
    let unsorted = output_with(&mut merganser(verify), &records);
    assert_eq!(unsorted.status.code(), Some(1), "random records are not in order");
    let input = folder.write("input", &records);
    let sorted = prints(merganser(["sort", "--format=fixed:100", "--key=0:10"]).arg(&input));
    let verified = output_with(&mut merganser(verify), &sorted);
    let said = String::from_utf8_lossy(&verified.stdout);
    assert_eq!(verified.status.code(), Some(0), "{said}");
    assert!(said.contains("1000") && said.to_lowercase().contains("1ea6370b955"), "{said}");
}
