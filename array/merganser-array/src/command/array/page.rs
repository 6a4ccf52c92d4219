//! The counts of a volume as one page that is complete in itself.

use std::fmt::Write;

use merganser_array::{Hash, VolumeDescription};
use merganser_pages::Chart;
use merganser_pages::text::Escaped;
use merganser_pages::{frame, text};

use super::facts::VolumeFacts;

/// Drawings of the plot module have a size of their own.
const PLOTS: &str = ".plot svg { height: auto; background: #ffffff; }\n";
const PAGE: u64 = 4096;

/// The page's text.
pub(super) fn page(name: &str, facts: &VolumeFacts) -> String {
    let found = &facts.found;
    let counters = &found.counters;
    let figures = [
        ("Written by users", text::bytes(PAGE * counters.pages_written)),
        ("Written to the data members", text::bytes(counters.data_bytes_written())),
        ("Write amplification", format!("{:.3}", counters.write_amplification())),
        ("Read amplification", format!("{:.3}", facts.read_amplification())),
        ("P/E cycles saved", share(facts.pe_cycles_saved())),
        ("Duplicates of fingerprinted pages", text::percent(counters.dedup_rate())),
        ("Reads from the buffer", text::percent(buffer_share(found))),
        ("Data members in use", of_all(PAGE * facts.usage.pages_used, PAGE * found.pages)),
        ("Volume with content", of_all(facts.mapped_bytes(), found.size)),
        ("Buffer in use", of_all(facts.usage.buffer_bytes_used, found.buffer_bytes)),
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
        "</table>\n<p>Counts are those of the last checkpoint. P/E cycles saved (program/erase cycles) are the bytes that did \
         not reach the data members, as a share of the bytes that users wrote; below 0 when the data members got more. Read \
         amplification counts pages that were read from members for users, per page that users read; reads of maps, of the \
         index and of moves are not in it.</p>\n</section>\n</main>\n",
    );
    let as_data = "merganser array report --json";
    frame::document(&format!("merganser array: {name}"), PLOTS, &body, as_data)
}

/// A share that may be below 0.
fn share(share: f64) -> String {
    if share < 0.0 { format!("\u{2212}{}", text::percent(-share)) } else { text::percent(share) }
}

fn of_all(bytes: u64, all: u64) -> String {
    format!("{} of {}", text::bytes(bytes), text::bytes(all))
}

fn kind(found: &VolumeDescription) -> String {
    let dedup = match found.dedup {
        None => "no deduplication",
        Some(Hash::Blake3) => "deduplication by BLAKE3",
        Some(Hash::Sha1) => "deduplication by SHA-1",
    };
    let (data, buffer) = found.members;
    format!("{}, {data} data and {buffer} buffer members, {dedup}", text::bytes(found.size))
}

/// Share of the pages that were read in the buffer.
fn buffer_share(found: &VolumeDescription) -> f64 {
    let buffer = found.counters.buffer_pages_read;
    buffer as f64 / (buffer + found.counters.data_pages_read).max(1) as f64
}

type Bars = Vec<(String, f64, bool)>;

fn bars(of: &[(&str, u64)]) -> Bars {
    // The axis is logarithmic: no bar for nothing.
    let above = of.iter().filter(|(_, count)| *count > 0);
    above.map(|(name, count)| ((*name).to_owned(), *count as f64, false)).collect()
}

fn pages(found: &VolumeDescription) -> Bars {
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

fn bytes(found: &VolumeDescription) -> Bars {
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
