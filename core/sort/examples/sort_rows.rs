//! Rows pushed in any order and pulled in the order of their keys.

use std::cmp::Reverse;

use merganser_sort::rows::{KeepAll, RowSorter, RowsBy};
use merganser_sort::{Budget, Error, files};

fn main() -> Result<(), Error> {
    // Rows that don't fit into 64 MiB wait in files in the system's folder for temporary files.
    let memory = Budget::new(64 << 20);
    let mut sorter = RowSorter::new(RowsBy::Key, &memory, KeepAll).temp(vec![files::system_temp()]);
    for (city, sold) in [("Oslo", 3_u64), ("Bonn", 7), ("Bonn", 90), ("Oslo", 12)] {
        sorter.push_key(&(city, Reverse(sold)), b"any bytes")?;
    }
    let mut rows = sorter.finish()?;
    let mut found = Vec::new();
    while let Some(((city, Reverse(sold)), _value)) = rows.next_as::<(String, Reverse<u64>)>()? {
        found.push(format!("{city} {sold}"));
    }
    assert_eq!(found, ["Bonn 90", "Bonn 7", "Oslo 12", "Oslo 3"]);
    Ok(())
}
