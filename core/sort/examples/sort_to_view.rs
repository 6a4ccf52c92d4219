//! A csv file sorted into a view by a column, and a range of it read.

use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::{SortOptions, files};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let (file, folder) = (place.path().join("fruit.csv"), place.path().join("by-name.view"));
    std::fs::write(&file, "kg,name\n7,pear\n30,fig\n2,apple\n5,plum\n")?;

    let order = OrderSpec::new(Format::csv_rows(b',', true)).key("name");
    let options = SortOptions::new(order).memory(64 << 20);
    files::sort_file_to_view(&file, &folder, &options)?;
    // Any number of programs can read the view now, and each any part of it.
    let view = files::open_view(&folder, &options.budget, options.threads)?;
    let mut stream = view.stream(view.range_of_keys(Some(b"b"), Some(b"pi"))?)?;
    let mut found = Vec::new();
    while let Some(bytes) = stream.next_bytes()? {
        found.extend_from_slice(bytes);
    }
    assert_eq!(found, b"30,fig\n7,pear\n");
    Ok(())
}
