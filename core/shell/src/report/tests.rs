use merganser_sort::activity::{WorkerState, wait};
use merganser_sort::{Estimate, Explanation};

use super::*;

fn report(name: &str) -> ReportContent {
    let folder = tempfile::tempdir().expect("a folder");
    let config = ReportConfig {
        path: folder.path().join("report.html"),
        form: ReportForm::Html,
        price_dollars: Some(1000.0),
        power_watts: None,
        endurance_bytes: Some(600_000_000_000_000),
    };
    let watch = ReportWatch::start(Some(&config), || [], || vec![".".into()]).expect("a folder");
    {
        let activity = watch.activity();
        let _worker = activity.enroll("sort");
        let _waiting = wait(WorkerState::Reading);
    }
    watch.0.expect("a report is wanted").report(CommandFigures {
        command: "sort",
        inputs: vec![name.to_owned(); 5],
        output: name.to_owned(),
        input_bytes: Some(2_000_000_000),
        output_bytes: Some(2_000_000_000),
        records: Some(20_000_000),
        memory_limit_bytes: 1 << 28,
        memory: vec![OwnerPeak { owner: "sorting", peak_bytes: 1 << 27 }],
        io: vec![("output", format!("direct {name}"))],
        plan: Some(Explanation {
            strategy: "merge",
            reason: name.to_owned(),
            input_bytes: 2_000_000_000,
            input_bytes_assumed: false,
            record_bytes: 100.0,
            disk_read_rate: 2e9,
            disk_write_rate: 1e9,
            buffer_pages: None,
            merge: Estimate {
                pieces: 9,
                piece_bytes: 222_222_222,
                read_bytes: 4_000_000_000,
                written_bytes: 0,
                processor_seconds: 8.0,
                reader_processor_seconds: 0.0,
                seconds: 4.0,
            },
            distribute: None,
        }),
        detail: serde_json::json!({ "runs": 3, "chunk_bytes": 1 << 20, "compression": name }),
    })
}

/// Panics unless every tag is closed in its turn, attributes are quoted, and nothing else is `<`.
fn assert_well_formed(page: &str) {
    let mut open = Vec::new();
    let body = page.strip_prefix("<!DOCTYPE html>\n").expect("a document type");
    for part in body.split('<').skip(1) {
        let (tag, after) = part.split_once('>').unwrap_or_else(|| panic!("not ended: <{part}"));
        assert!(tag.matches('"').count() % 2 == 0, "quotes: <{tag}>");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in its turn: <{tag}>");
        } else if !tag.ends_with(" /") {
            open.push(tag.split(' ').next().expect("a name"));
        }
        assert!(!after.contains('>') || open.last() == Some(&"style"), "a stray >: {after}");
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}

#[test]
fn a_page_is_well_formed_whatever_files_are_called() {
    for name in ["plain", "<script>alert(1)</script>", "a\"b'c & d", "\u{202e}\n\u{1}]]>"] {
        let page = page::page(&report(name));
        assert_well_formed(&page);
        assert!(!page.contains("<script"), "{name}");
    }
}

#[test]
fn a_page_says_in_words_what_was_done() {
    let page = page::page(&report("in"));
    let lead = "Sorted 2 GB (20,000,000 records) of <bdi>in</bdi>, <bdi>in</bdi>, <bdi>in</bdi> and 2 more into <bdi>in</bdi>";
    assert!(page.contains(lead), "{page}");
    assert!(page.contains(r#"aria-label="sort: "#) && page.contains("waiting for reads"), "{page}");
    assert!(page.contains("of 600 TB"), "{page}");
    assert!(page.contains("More with <code>--power WATTS</code>."), "{page}");
    for outside in ["http:", "https:", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "nothing is fetched: {outside}");
    }
}

#[test]
fn data_has_the_fields_that_are_documented() {
    let text = data::data(&report("in"));
    let data: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let documented = include_str!("../../../../docs/core/report.md");
    for (field, value) in data.as_object().expect("an object") {
        assert!(documented.contains(&format!("`{field}`")), "docs/core/report.md lacks {field}");
        for field in value.as_object().into_iter().flat_map(|object| object.keys()) {
            let shown = ["io", "sort"].iter().any(|open| data[open].get(field).is_some());
            assert!(shown || documented.contains(&format!("`{field}`")), "it lacks {field}");
        }
    }
    assert_eq!(data["report_version"], 1);
    assert_eq!(data["sort"]["runs"], 3);
    assert_eq!(data["activity"]["workers"][0]["name"], "sort");
    let reading = &data["activity"]["workers"][0]["state_ns"]["reading"];
    assert_eq!(reading.as_array().expect("bins").len(), {
        let bins = &data["activity"]["reads"]["bytes"];
        bins.as_array().expect("bins").len()
    });
    assert!(text.lines().count() < 200, "lists of numbers are on one line");
}

#[test]
fn the_forecast_stands_beside_what_was_measured() {
    let report = report("in");
    let data: serde_json::Value = serde_json::from_str(&data::data(&report)).expect("JSON");
    let plan = &data["plan"];
    assert_eq!(plan["predicted"]["seconds"], 4.0);
    let ratio = plan["measured"]["seconds"].as_f64().expect("a number") / 4.0;
    assert_eq!(plan["ratio"]["seconds"].as_f64(), Some(ratio));
    assert_eq!(plan["ratio"]["read_bytes"], 0.0, "nothing was read");
    assert!(plan["ratio"]["written_bytes"].is_null(), "nothing to be written was predicted");
    let page = page::page(&report);
    let row = "<tr><th>Read</th><td>4 GB</td><td>0 bytes</td><td>0.00</td></tr>";
    assert!(page.contains("<h2>Plan and run</h2>") && page.contains(row), "{page}");
}

#[test]
fn nothing_is_watched_or_written_when_nobody_asks() {
    let watch =
        ReportWatch::start(None, || [], || panic!("nobody asked")).expect("nothing to refuse");
    assert!(watch.activity().report().is_none());
    assert!(watch.finish(|| panic!("nobody asked")).is_ok());
}
