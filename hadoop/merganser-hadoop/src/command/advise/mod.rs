//! `merganser hadoop advise`: what was measured, what follows from it, and why.
//!
//! The model, in nanoseconds a byte of map output:
//!
//! ```text
//!   saved     write + read            the merged copy is not written, and not read again
//!   paid      seek / segment          each fetch reads as many segments as there are spills, where a
//!             + segment / segment     merged output has one; and each of them takes some work
//!             + merge * AGAIN         a fetch that is repeated merges again
//! ```
//! Hadoop's own merge at the end of the map task is not counted as saved, nor the first merge at the
//! fetch as paid: they look at the same records once. So the model does not know which of the two
//! merges is faster, or which of them waits for a free core.

mod job;
mod modelled;
mod near;
mod passes;

use std::path::Path;

use merganser_hadoop_node::shuffle::calibration::{Calibration, MergeCost, calibrate};
use merganser_shell::failure::Failure;
use merganser_shell::standard;
use serde_json::json;

use crate::config::AdviseConfig;

/// Record sizes that are measured, in bytes.
const RECORD_BYTES: [usize; 6] = [32, 100, 512, 2048, 8192, 32_768];
/// Fan-ins that are measured.
const FAN_INS: [usize; 5] = [2, 4, 10, 32, 64];
/// The fan-in whose costs decide about record sizes: Hadoop's own default of `io.sort.factor`.
const TYPICAL_FAN_IN: usize = 10;
/// The share of fetches that are repeated: speculation, failed reducers, nodes that restart.
const AGAIN: f64 = 0.1;
/// The smallest segment that is ever advised, so that operators can ignore smaller ones.
const SEGMENT_BYTES_MIN: u64 = 4 << 10;
/// Segments for which more spills are judged.
const TYPICAL_SEGMENT_BYTES: u64 = 256 << 10;

/// Measures and tells.
pub(super) fn run(config: &AdviseConfig) -> Result<(), Failure> {
    match config {
        AdviseConfig::Job(config) => job::run(config),
        AdviseConfig::Maps(config) => near::run(config),
        AdviseConfig::Deferring { dir, json } => deferring(dir, *json),
    }
}

fn deferring(dir: &Path, json: bool) -> Result<(), Failure> {
    let found = calibrate(dir, &RECORD_BYTES, &FAN_INS).map_err(|e| e.to_string())?;
    let advice = DeferAdvice::from(&found);
    let text = if json { advice.json(&found) } else { advice.text(&found) };
    standard::print(text)
}

/// The thresholds, `None` where deferring never pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeferAdvice {
    min_record_bytes: Option<u64>,
    min_segment_bytes: Option<u64>,
    min_spills: u64,
    max_spills: Option<u64>,
}

/// Nanoseconds that are saved for each byte of a deferred map output.
fn saved(found: &Calibration) -> f64 {
    found.write_ns + found.read_ns
}

/// Nanoseconds that each byte costs in segments of `segment_bytes`.
fn paid(found: &Calibration, merge_ns: f64, segment_bytes: f64) -> f64 {
    (found.seek_ns + found.segment_ns) / segment_bytes + merge_ns * AGAIN
}

impl From<&Calibration> for DeferAdvice {
    fn from(found: &Calibration) -> Self {
        let at = |fan_in| found.merges.iter().filter(move |m| m.fan_in == fan_in);
        let pays =
            |merge: &MergeCost, segment: u64| paid(found, merge.ns, segment as f64) < saved(found);
        // With large segments only the merge itself costs time. This finds the smallest record size
        // such that it and all larger ones pay.
        let mut sizes: Vec<&MergeCost> = at(TYPICAL_FAN_IN).collect();
        sizes.sort_by_key(|merge| merge.record_bytes);
        let paying = sizes.iter().rev().take_while(|merge| pays(merge, 1 << 30)).last();
        let record = paying.map(|merge| merge.record_bytes);
        let min_record_bytes = match record {
            Some(least) if Some(least) == sizes.first().map(|merge| merge.record_bytes) => Some(0),
            least => least.map(|least| least as u64),
        };
        // The dearest merge that is allowed so far must pay with its segments.
        let allowed =
            |merge: &&MergeCost| merge.record_bytes as u64 >= min_record_bytes.unwrap_or(0);
        let dearest = at(TYPICAL_FAN_IN).filter(allowed).map(|merge| merge.ns).fold(0.0, f64::max);
        let left = saved(found) - dearest * AGAIN;
        let min_segment_bytes = (left > 0.0)
            .then(|| (found.seek_ns + found.segment_ns) / left)
            .filter(|bytes| *bytes < (1_u64 << 40) as f64)
            .map(|bytes| (bytes.ceil() as u64).next_power_of_two().max(SEGMENT_BYTES_MIN));
        let segment = TYPICAL_SEGMENT_BYTES.max(min_segment_bytes.unwrap_or(0));
        let max_spills = FAN_INS
            .into_iter()
            .take_while(|fan_in| at(*fan_in).filter(allowed).all(|merge| pays(merge, segment)))
            .last();
        DeferAdvice {
            min_record_bytes,
            min_segment_bytes,
            min_spills: 2,
            max_spills: max_spills.map(|spills| spills as u64),
        }
    }
}

impl DeferAdvice {
    /// The thresholds, where deferring pays at all.
    fn thresholds(self) -> Option<[(&'static str, u64); 4]> {
        Some([
            ("min-record-bytes", self.min_record_bytes?),
            ("min-segment-bytes", self.min_segment_bytes?),
            ("min-spills", self.min_spills),
            ("max-spills", self.max_spills?),
        ])
    }

    fn text(self, found: &Calibration) -> String {
        let rate = |ns: f64| 1000.0 / ns;
        let mut lines = vec![
            "Measured".to_owned(),
            format!("  disk writes {:8.0} MB/s, synced", rate(found.write_ns)),
            format!("  disk reads  {:8.0} MB/s in a row", rate(found.read_ns)),
            format!("  a seek      {:8.0} us", found.seek_ns / 1e3),
            format!("  a segment   {:8.1} us of work, however small", found.segment_ns / 1e3),
            format!("  copying     {:8.0} MB/s from memory, without merging", rate(found.copy_ns)),
            String::new(),
            "Merging, MB/s (spills in memory)".to_owned(),
            format!("  bytes of a record{}", FAN_INS.map(|n| format!("{n:>8}")).concat())
                + "  spills at once",
        ];
        for size in RECORD_BYTES {
            let of_size = found.merges.iter().filter(|merge| merge.record_bytes == size);
            let cells: String = of_size.map(|merge| format!("{:8.0}", rate(merge.ns))).collect();
            lines.push(format!("  {size:>17}{cells}"));
        }
        lines.push(String::new());
        lines.extend(self.reasons(found));
        lines.push(String::new());
        match self.thresholds() {
            None => lines.extend([
                "<property>".to_owned(),
                "  <name>merganser.shuffle.defer</name>".to_owned(),
                "  <value>false</value>".to_owned(),
                "</property>".to_owned(),
            ]),
            Some(thresholds) => {
                for (name, value) in thresholds {
                    lines.push("<property>".to_owned());
                    lines.push(format!("  <name>merganser.shuffle.defer.{name}</name>"));
                    lines.push(format!("  <value>{value}</value>"));
                    lines.push("</property>".to_owned());
                }
            }
        }
        lines.join("\n") + "\n"
    }

    /// Why, a sentence or two for each.
    fn reasons(self, found: &Calibration) -> Vec<String> {
        let mut lines = vec![format!(
            "A merged copy that is not written and not read again saves {:.2} ns a byte here.",
            saved(found)
        )];
        let again = AGAIN * 100.0;
        lines.push(match self.min_record_bytes {
            Some(0) => format!(
                "min-record-bytes 0: the model predicts no loss at any size of record, down to {} \
                 bytes; even there, the {again:.0} % of fetches that are repeated merge for less than \
                 that.",
                RECORD_BYTES[0]
            ),
            Some(bytes) => format!(
                "min-record-bytes {bytes}: of smaller records, the {again:.0} % of fetches that are \
                 repeated cost more to merge again than the copy does."
            ),
            None => "No size of record pays: merging again, now and then, costs more than the copy. \
                     Do not defer on this node."
                .to_owned(),
        });
        if self.min_record_bytes.is_none() {
            return lines;
        }
        let (seek, segment) = (found.seek_ns / 1e3, found.segment_ns / 1e3);
        match self.min_segment_bytes {
            Some(bytes) => lines.push(format!(
                "min-segment-bytes {bytes}: a segment takes a seek of {seek:.0} us and {segment:.1} us \
                 of work, which so many bytes save. Spills that are still in memory need no seek and pay \
                 earlier."
            )),
            None => lines.push("No size of segment pays. Do not defer on this node.".to_owned()),
        }
        lines.push(
            "min-spills 2: one spill is the map output already, Hadoop only renames it.".to_owned(),
        );
        match self.max_spills {
            Some(spills) if spills == FAN_INS[FAN_INS.len() - 1] as u64 => lines.push(format!(
                "max-spills {spills}: the most that were measured; all of them pay."
            )),
            Some(spills) => lines.push(format!(
                "max-spills {spills}: more at once were measured, and cost more than they save."
            )),
            None => {
                lines
                    .push("Not even two spills at once pay. Do not defer on this node.".to_owned());
            }
        }
        lines
    }

    fn json(self, found: &Calibration) -> String {
        let merges: Vec<_> = found
            .merges
            .iter()
            .map(|m| json!({"record_bytes": m.record_bytes, "fan_in": m.fan_in, "ns_per_byte": m.ns}))
            .collect();
        let value = json!({
            "write_ns_per_byte": found.write_ns,
            "read_ns_per_byte": found.read_ns,
            "seek_ns": found.seek_ns,
            "segment_ns": found.segment_ns,
            "copy_ns_per_byte": found.copy_ns,
            "merges": merges,
            "advice": {
                "defer": self.thresholds().is_some(),
                "min_record_bytes": self.min_record_bytes,
                "min_segment_bytes": self.min_segment_bytes,
                "min_spills": self.min_spills,
                "max_spills": self.max_spills,
            },
            "reasons": self.reasons(found),
        });
        format!("{value:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk of 100 MB/s with seeks of `seek_ns`, and merges of `ns` a byte for 100-byte records.
    fn found(disk_ns: f64, seek_ns: f64, ns: f64) -> Calibration {
        let cost = |record_bytes: usize| {
            move |fan_in: usize| MergeCost {
                record_bytes,
                fan_in,
                ns: ns * 100.0 / record_bytes as f64 * (fan_in as f64).log2(),
            }
        };
        Calibration {
            write_ns: disk_ns,
            read_ns: disk_ns,
            seek_ns,
            segment_ns: 10_000.0,
            copy_ns: 0.2,
            merges: RECORD_BYTES.into_iter().flat_map(|r| FAN_INS.map(cost(r))).collect(),
        }
    }

    #[test]
    fn a_disk_that_is_slower_than_merging_pays_for_all() {
        let found = found(10.0, 90_000.0, 0.5);
        let advice = DeferAdvice::from(&found);
        assert_eq!(advice.thresholds().expect("it pays").map(|(_, n)| n), [0, 8192, 2, 64]);
        assert!(advice.text(&found).contains("predicts no loss at any size of record"));
    }

    #[test]
    fn long_seeks_ask_for_large_segments() {
        let advice = DeferAdvice::from(&found(10.0, 8_000_000.0, 0.5));
        assert_eq!(advice.min_segment_bytes, Some(512 << 10));
    }

    #[test]
    fn where_writing_is_nearly_free_small_records_are_left_out() {
        let found = found(0.1, 1000.0, 2.0);
        let advice = DeferAdvice::from(&found);
        assert_eq!(advice.min_record_bytes, Some(512));
        assert!(advice.text(&found).contains("min-record-bytes 512: of smaller records"));
    }

    #[test]
    fn where_nothing_pays_that_is_said() {
        let found = found(0.0001, 1000.0, 5.0);
        let advice = DeferAdvice::from(&found);
        assert_eq!(advice.thresholds(), None);
        let text = advice.text(&found);
        assert!(text.contains("Do not defer") && text.contains("<value>false</value>"), "{text}");
    }
}
