//! What `info`, `report` and `check` print as JSON, and the description of a volume: the documentation names each field, and
//! each field that it names is printed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{Client, FLUSH, PAGE, WRITE, create, end, json, page, serve};
use crate::harness::{Folder, merganser, prints, stderr};

/// The fields in the first column of the table under `heading` of docs/array/array.md.
fn documented(heading: &str) -> BTreeSet<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/array/array.md");
    let text = fs::read_to_string(docs).expect("there");
    let from = text.find(heading).unwrap_or_else(|| panic!("no {heading}"));
    let rows = text[from..].lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|'));
    let first = rows.map(|line| line.split('|').nth(1).expect("a column").to_owned());
    let named: Vec<String> = first.collect();
    let names = named.iter().flat_map(|column| column.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

fn fields(of: &serde_json::Value) -> BTreeSet<String> {
    of.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn every_field_is_documented_and_every_documented_field_is_there() {
    let folder = Folder::new();
    create(&folder, &[]);
    for command in ["info", "report", "check"] {
        let heading = format!("**`array {command} --json`**");
        assert_eq!(fields(&json(&folder, command)), documented(&heading), "{command}");
    }
}

/// Unique pages, each twice, and zeros: how full everything is, before pages moved and after.
#[test]
fn space_and_amplification_are_those_of_what_was_written() {
    let folder = Folder::new();
    create(&folder, &[]);
    let server = serve(&folder, &["--migration", "high-water"]);
    let mut client = Client::new(&folder).expect("it talks");
    for at in 0..200_u64 {
        let seed = if at < 20 { 0 } else { 1 + at / 2 };
        client.ask(WRITE, at * PAGE as u64, PAGE as u32, &page(seed)).expect("written");
    }
    for at in 0..100_u64 {
        client.ask(0, at * PAGE as u64, PAGE as u32, &[]).expect("read");
    }
    client.ask(FLUSH, 0, 0, &[]).expect("flushed");
    // As of the opening's checkpoint, but for the buffer.
    let served = json(&folder, "info");
    assert_eq!((&served["pages_used"], &served["mapped_bytes"]), (&0.into(), &0.into()));
    assert!(served["buffer_bytes_used"].as_u64() > Some(200 * PAGE as u64), "{served}");
    end(server);
    let report = json(&folder, "report");
    // The last record gets its second copy, a block, when no request has come for a while, or at the end.
    let used = |found: &serde_json::Value| found["buffer_bytes_used"].as_u64().expect("bytes");
    let grown = used(&report) - used(&served);
    assert!([0, PAGE as u64].contains(&grown), "{served}, then {report}");
    assert_eq!(report["read_amplification"], 1.0, "all are in the buffer: {report}");
    move_all(&folder);

    let (info, report) = (json(&folder, "info"), json(&folder, "report"));
    assert_eq!((&info["pages_used"], &info["mapped_bytes"]), (&90.into(), &(180 * 4096).into()));
    assert_eq!(info["pages_free"].as_u64(), info["pages"].as_u64().map(|pages| pages - 90));
    assert_eq!(info["buffer_bytes_used"], 0);
    for field in ["pages_used", "pages_free", "mapped_bytes", "buffer_bytes_used"] {
        assert_eq!(info[field], report[field], "{field}");
    }
    let number = |field: &str| report[field].as_f64().expect("a number");
    assert!((number("write_amplification") + number("pe_cycles_saved") - 1.0).abs() < 1e-9);
    assert!((number("dedup_rate") - 0.55).abs() < 1e-9, "90 shared and 20 zeros of 200");
    let text = prints(merganser(["array", "report"]).arg(folder.at("vol.json")));
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("pe cycles saved") && text.contains("read amplification"), "{text}");
    let page = folder.at("page.html");
    prints(merganser(["array", "report"]).arg(folder.at("vol.json")).arg("--page").arg(&page));
    let html = fs::read_to_string(page).expect("a page");
    for figure in ["P/E cycles saved", "Read amplification", "Data members in use", "Buffer in use"]
    {
        assert!(html.contains(figure), "{figure}");
    }
}

/// Serves the volume until all pages have moved, which the members say once it is closed.
fn move_all(folder: &Folder) {
    for _ in 0..100 {
        let server = serve(folder, &[]);
        std::thread::sleep(std::time::Duration::from_millis(50));
        end(server);
        if json(folder, "info")["buffer_bytes_used"] == 0 {
            return;
        }
    }
    panic!("pages stay in the buffer");
}

/// docs/array/array.md, "Formats".
#[test]
fn the_description_is_as_documented() {
    let folder = Folder::new();
    create(&folder, &[]);
    let text = fs::read_to_string(folder.at("vol.json")).expect("there");
    let id = text.split_once("\"id\": \"").and_then(|(_, rest)| rest.get(..32)).expect("an id");
    assert!(id.bytes().all(|digit| digit.is_ascii_hexdigit()), "{text}");
    let text = text.replace(id, "ID");
    let golden = "\
{
  \"format\": \"merganser-array\",
  \"version\": 2,
  \"id\": \"ID\",
  \"data\": [
    \"ssd0\",
    \"ssd1\"
  ],
  \"buffer\": [
    \"hdd0\",
    \"hdd1\"
  ]
}
";
    assert_eq!(text, golden);
}

/// A volume of format 2 has no room for checksums of its table blocks, also after this version has opened it: it is said.
#[test]
fn a_volume_that_does_not_find_lost_map_writes_says_so() {
    let folder = Folder::new();
    let dump = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../array/array/tests/golden/volume-2-closed.txt");
    // For each member its name and size, and then its bytes but zeros.
    let mut member = None;
    for line in fs::read_to_string(dump).expect("there").lines() {
        let Some((at, bytes)) = line.split_once("  ") else {
            let (name, size) = line.split_once(' ').expect("a name and a size");
            let file = File::create(folder.at(name)).expect("made");
            file.set_len(size.parse().expect("a number")).expect("sized");
            member = Some(file);
            continue;
        };
        let bytes = bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("a byte"));
        let at = u64::from_str_radix(at, 16).expect("hexadecimal");
        let file = member.as_ref().expect("a member");
        file.write_all_at(&bytes.collect::<Vec<u8>>(), at).expect("written");
    }
    let description = r#"{"format": "merganser-array", "version": 1, "data": ["ssd0", "ssd1"], "buffer": ["hdd0", "hdd1"]}"#;
    fs::write(folder.at("vol.json"), description).expect("written");
    // The first check opens it, which makes it one of version 3.
    for _ in 0..2 {
        let output = merganser(["array", "check", "--json"]).arg(folder.at("vol.json")).output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("before tables had checksums"), "{said}");
        let checked: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(checked["table_checksums"], false);
        assert_eq!(json(&folder, "info")["table_checksums"], false);
    }
    let folder = Folder::new();
    create(&folder, &[]);
    let output = merganser(["array", "check"]).arg(folder.at("vol.json")).output();
    assert_eq!(stderr(&output.expect("it starts")), "");
    assert_eq!(json(&folder, "info")["table_checksums"], true);
}
