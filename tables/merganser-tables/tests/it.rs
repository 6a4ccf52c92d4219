//! The program by itself. `python/tests/test_tables.py` has its commands on the files of other programs.

use std::process::Command;

#[test]
fn a_file_that_is_no_table_is_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("in");
    std::fs::write(&file, "a line\n").expect("written");
    let mut sort = Command::new(env!("CARGO_BIN_EXE_merganser-tables"));
    let ended = sort.args(["table", "sort", "--key", "a"]).arg(&file).output().expect("it starts");
    let told = String::from_utf8(ended.stderr).expect("text");
    let expected = format!("merganser: {}: is neither Parquet nor Arrow\n", file.display());
    assert_eq!((told, ended.status.code()), (expected, Some(2)));
}
