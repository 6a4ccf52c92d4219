//! The counts of a volume as one page that is complete in itself.

use std::fmt::Write;

use merganser_array::{Description, Hash};
use merganser_papers::Chart;

use crate::command::report::page::frame;
use crate::command::report::page::text::{self, Escaped};

/// Drawings of the plot module have a size of their own.
const PLOTS: &str = ".plot svg { height: auto; background: #ffffff; }\n";
const PAGE: u64 = 4096;

/// The page's text.
pub fn page(name: &str, found: &Description) -> String {
    let counters = &found.counters;
    let saved = (1. - counters.write_amplification()).max(0.);
    let figures = [
        ("Written by users", text::bytes(PAGE * counters.pages_written)),
        ("Written to the data members", text::bytes(counters.data_bytes_written())),
        ("Write amplification", format!("{:.3}", counters.write_amplification())),
        ("Program/erase cycles saved", text::percent(saved)),
        ("Duplicates of fingerprinted pages", text::percent(counters.dedup_rate())),
        ("Reads from the buffer", text::percent(buffer_share(found))),
    ];
    let mut body = format!(
        "<header>\n<h1>merganser array</h1>\n<p class=\"lead\"><bdi>{}</bdi>: {}</p>\n{}</header>\n<main>\n",
        Escaped(name),
        kind(found),
        frame::figures(&figures)
    );
    plot(&mut body, "Pages since the volume was made", "pages", &pages(found));
    plot(&mut body, "Bytes written to the members", "bytes", &bytes(found));
    body.push_str("<section>\n<h2>All counts</h2>\n<table>\n");
    for (name, count) in counters.each() {
        let name = name.replace('_', " ");
        let count = text::count(count);
        let _ = writeln!(body, "<tr><th scope=\"row\">{name}</th><td>{count}</td></tr>");
    }
    body.push_str(
        "</table>\n<p>Counts are those of the last checkpoint. Program/erase cycles saved are the bytes that did not \
         reach the data members, as a share of the bytes that users wrote.</p>\n</section>\n</main>\n",
    );
    let as_data = "merganser array report --json";
    frame::document(&format!("merganser array: {name}"), PLOTS, &body, as_data)
}

fn kind(found: &Description) -> String {
    let dedup = match found.dedup {
        None => "no deduplication",
        Some(Hash::Blake3) => "deduplication by BLAKE3",
        Some(Hash::Sha1) => "deduplication by SHA-1",
    };
    let (data, buffer) = found.members;
    format!("{}, {data} data and {buffer} buffer members, {dedup}", text::bytes(found.size))
}

/// Share of the pages that were read in the buffer.
fn buffer_share(found: &Description) -> f64 {
    let buffer = found.counters.buffer_pages_read;
    buffer as f64 / (buffer + found.counters.data_pages_read).max(1) as f64
}

type Bars = Vec<(String, f64, bool)>;

fn bars(of: &[(&str, u64)]) -> Bars {
    // The axis is logarithmic: no bar for nothing.
    let above = of.iter().filter(|(_, count)| *count > 0);
    above.map(|(name, count)| ((*name).to_owned(), *count as f64, false)).collect()
}

fn pages(found: &Description) -> Bars {
    let counters = &found.counters;
    bars(&[
        ("written by users", counters.pages_written),
        ("overwritten in the buffer", counters.pages_absorbed),
        ("went around the buffer", counters.pages_around),
        ("fingerprinted", counters.pages_fingerprinted),
        ("duplicates", counters.pages_duplicate),
        ("of these, zeros", counters.pages_zero),
        ("stored on data members", counters.pages_stored),
        ("read by users", counters.pages_read),
    ])
}

fn bytes(found: &Description) -> Bars {
    let counters = &found.counters;
    bars(&[
        ("log, on buffer members", counters.log_bytes),
        ("pages", PAGE * counters.pages_stored),
        ("journal", counters.journal_bytes),
        ("maps", counters.table_bytes),
        ("index", counters.index_bytes),
    ])
}

fn plot(page: &mut String, title: &str, unit: &str, bars: &Bars) {
    let _ = write!(page, "<section>\n<h2>{title}</h2>\n");
    if bars.is_empty() {
        page.push_str("<p>None yet.</p>\n</section>\n");
        return;
    }
    let chart = Chart::Bars { title: title.to_owned(), unit: unit.to_owned(), bars: bars.clone() };
    let _ = write!(page, "<div class=\"plot\">{}</div>\n</section>\n", chart.svg());
}
