//! The table of predictions in docs/hadoop/advise-job.md, held against what the command says today.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{folder, prints};

/// The words that `lab/bench/hadoop/study.py` asks with, by device; lab/bench/tests/test_study.py checks that it does.
const WORDS: &str = include_str!("../../../../lab/bench/tests/golden/advise-job.json");
const PAGE: &str = include_str!("../../../../docs/hadoop/advise-job.md");
/// The fan-in of the sweep.
const FACTOR: u64 = 200;
/// A tenth of a second, the last digit of the table.
const NEAR: f64 = 0.1;
/// The last digit of a ratio.
const NEAR_RATIO: f64 = 0.01;

/// Columns of the table by the beginning of their title, and the model that they are of.
const DEVICES: [(&str, &str); 2] =
    [("hard disk: predicted", "wd5000aakx"), ("SSD: predicted", "830")];

/// Block in MiB and buffer in MB.
type Settings = (u64, u64);

/// Predicted seconds, measured seconds and their ratio.
#[derive(Debug, Clone, Copy)]
struct Row {
    predicted: f64,
    measured: f64,
    over: f64,
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// `64 MiB, 100 MB`.
fn settings(cell: &str) -> Option<Settings> {
    let (block, sort) = cell.split_once(", ")?;
    Some((block.strip_suffix(" MiB")?.parse().ok()?, sort.strip_suffix(" MB")?.parse().ok()?))
}

/// The rows of a device in the page.
fn table(title: &str) -> BTreeMap<Settings, Row> {
    let mut lines = PAGE.lines().skip_while(|line| !line.starts_with("| blocks, buffer |"));
    let head = cells(lines.next().expect("a table of blocks and buffers"));
    let first = head.iter().position(|cell| cell.starts_with(title)).expect("a column");
    assert_eq!(head[first + 1..first + 3], ["measured", "over"], "{head:?}");
    lines
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let row = cells(line);
            let figure = |column: usize| row[column].trim_matches('*').parse().expect("a figure");
            let of = settings(row[0])?;
            let [predicted, measured, over] = [first, first + 1, first + 2].map(figure);
            Some((of, Row { predicted, measured, over }))
        })
        .collect()
}

/// What the command says of the job.
fn told(device: &str) -> Value {
    let words: BTreeMap<String, Vec<String>> = serde_json::from_str(WORDS).expect("words");
    serde_json::from_slice(&prints(folder().path(), &words[device])).expect("JSON")
}

/// What the command says of the sweep's settings.
fn predicted(device: &str) -> BTreeMap<Settings, f64> {
    let told = told(device);
    let combinations = told["combinations"].as_array().expect("combinations").iter();
    let of_sweep = combinations.filter(|one| one["factor"] == FACTOR && one["defer"] == false);
    let figure = |one: &Value, name: &str| one[name].as_f64().expect("a figure");
    of_sweep
        .map(|one| {
            let of = (figure(one, "block_mb") as u64, figure(one, "sort_mb") as u64);
            (of, figure(one, "seconds"))
        })
        .collect()
}

#[test]
fn the_table_of_the_page_has_todays_predictions() {
    for (title, device) in DEVICES {
        let (rows, today) = (table(title), predicted(device));
        assert_eq!(rows.len(), 9, "{title}: {rows:?}");
        for (of, row) in rows {
            let (block, sort) = of;
            let seconds = today[&of];
            assert!(
                (seconds - row.predicted).abs() <= NEAR,
                "{device}, {block} MiB, {sort} MB: {seconds:.2} s, but docs/hadoop/advise-job.md says {row:?}"
            );
            let over = row.predicted / row.measured;
            assert!(
                (over - row.over).abs() <= NEAR_RATIO,
                "{device}, {block} MiB, {sort} MB: {over:.3}, {row:?}"
            );
        }
    }
}

/// They are the cells of `study.py settings-advised`.
#[test]
fn the_page_has_the_settings_that_the_command_chooses() {
    for (of, device) in [("hard disk", "wd5000aakx"), ("SSD", "830")] {
        let told = told(device);
        let setting = |name: &str| told["advice"][name].as_str().expect("a setting").to_owned();
        let number = |name: &str| setting(name).parse::<u64>().expect("a number");
        let (sort, factor) =
            (number("mapreduce.task.io.sort.mb"), number("mapreduce.task.io.sort.factor"));
        let block = number("dfs.blocksize") >> 20;
        let deferred = if setting("merganser.shuffle.defer") == "true" { ", deferred" } else { "" };
        let row = format!(
            "| {block} MiB, {sort} MB, fan-in of {factor}{deferred} (chosen for the {of}) |"
        );
        assert!(PAGE.contains(&row), "docs/hadoop/advise-job.md has no row of {row}");
    }
}
