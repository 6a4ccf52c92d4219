//! How fast rows go in and come out: `rows_speed ROWS MEMORY_MIB ordered|random|words|file=PATH [FOLDER]`. Rows have keys of 10
//! bytes and values of 90; those of a file are its records of 100 bytes. Without a folder, all of them have to fit.
//!
//! It prints the seconds until the last row was pushed, until the first one came, and until the last one came.
#![allow(clippy::print_stdout, reason = "a measurement")]

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use merganser_random::Random;
use merganser_sort::rows::{KeepAll, RowSorter, RowsBy};
use merganser_sort::{Budget, Error};
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;

const RECORD: usize = 100;
const KEY: usize = 10;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [count, memory_mib, kind, rest @ ..] = &arguments[..] else {
        panic!("rows_speed ROWS MEMORY_MIB ordered|random|words|file=PATH [FOLDER]")
    };
    let count: u64 = count.parse().expect("a number of rows");
    let budget = Budget::new(memory_mib.parse::<u64>().expect("a number") << 20);
    let temp = rest.iter().map(|folder| -> Arc<dyn Directory> {
        FileDirectory::open(Path::new(folder)).expect("a folder")
    });
    let threads = std::env::var("THREADS").map_or(2, |threads| threads.parse().expect("a number"));
    let mut sorter =
        RowSorter::new(RowsBy::Key, &budget, KeepAll).temp(temp.collect()).threads(threads);
    let begun = Instant::now();
    let mut record = [b'x'; RECORD];
    if let Some(path) = kind.strip_prefix("file=") {
        let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
        for _ in 0..count {
            file.read_exact(&mut record)?;
            sorter.push(&record[..KEY], &record[KEY..])?;
        }
    } else {
        let mut random = Random::new(1);
        for number in 0..count {
            match kind.as_str() {
                "ordered" => record[..8].copy_from_slice(&number.to_be_bytes()),
                "random" => record[..8].copy_from_slice(&random.bits().to_be_bytes()),
                _ => {
                    let word = format!("{:010}", random.below(9_999_999_999));
                    record[..KEY].copy_from_slice(word.as_bytes());
                }
            }
            sorter.push(&record[..KEY], &record[KEY..])?;
        }
    }
    let pushed = begun.elapsed().as_secs_f64();
    let mut rows = sorter.finish()?;
    let (mut found, mut sum) = (0, 0_u64);
    let mut first = None;
    while let Some((key, value)) = rows.next()? {
        first.get_or_insert_with(|| begun.elapsed().as_secs_f64());
        found += 1;
        sum = sum.wrapping_add(u64::from(key[0])).wrapping_add(u64::from(value[KEY]));
    }
    let ended = begun.elapsed().as_secs_f64();
    assert_eq!(found, count);
    let first = first.unwrap_or(ended);
    let speed = (count * RECORD as u64) as f64 / ended / 1e9;
    println!(
        "pushed {pushed:.3} s, first {first:.3} s, all {ended:.3} s: {speed:.2} GB/s; {:?}; {sum}",
        rows.report()
    );
    Ok(())
}
