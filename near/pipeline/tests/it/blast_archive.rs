//! Archives of BLAST, merged: against a naive sort, and against damage.

use std::io::Cursor;

use merganser_pipeline::blast::archive::{ArchiveError, Merged, PartitionArchives, merge};
use proptest::prelude::*;

/// An alignment: query, subject, score, e-value in the archive's form.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hit {
    query: u64,
    subject: u64,
    score: i64,
    mantissa: i64,
    exponent: i32,
}

impl Hit {
    fn evalue(&self) -> f64 {
        let value: f64 = format!("{}e{}", self.mantissa, self.exponent).parse().expect("a number");
        if value < 1e-180 { 0.0 } else { value }
    }

    /// As BLAST 2.12 writes it.
    fn text(&self, linked: bool) -> String {
        let Hit { query, subject, score, mantissa, exponent } = self;
        let name = if linked { "sum_e" } else { "e_value" };
        format!(
            "      {{
        type partial,
        dim 2,
        score {{
          {{
            id str \"score\",
            value int {score}
          }},
          {{
            id str \"{name}\",
            value real {{ {mantissa}, 10, {exponent} }}
          }}
        }},
        segs std {{
          {{
            dim 2,
            ids {{
              local str \"Query_{query}\",
              general {{
                db \"BL_ORD_ID\",
                tag id {subject}
              }}
            }},
            loc {{
              int {{
                id general {{
                  db \"BL_ORD_ID\",
                  tag id {subject}
                }}
              }}
            }}
          }}
        }}
      }}"
        )
    }
}

fn archive(queries: &[u64], hits: &[Hit]) -> String {
    let mut text = "Blast4-archive ::= {\n  request {\n    ident \"2.12.0+\",\n".to_owned();
    for query in queries {
        text += &format!("              local str \"Query_{query}\"\n");
        // A title that looks like one, as BLAST writes it.
        text += "              title \"x local str \"\"Query_99\"\"  results {\"\n";
    }
    text += "  },\n  results {\n    alignments {\n";
    let texts: Vec<_> = hits.iter().map(|hit| hit.text(hit.score % 2 == 0)).collect();
    text += &texts.join(",\n");
    if !hits.is_empty() {
        text.push('\n');
    }
    text + "    },\n    masks {\n    },\n    search-stats {\n    }\n  }\n}\n"
}

fn merged(parts: &[(u64, String)], most: usize) -> Result<(String, Merged), ArchiveError> {
    let part = |(first, text): &(u64, String)| PartitionArchives {
        reader: Cursor::new(text.clone()),
        first: *first,
    };
    let mut out = Vec::new();
    let merged = merge(parts.iter().map(part).collect(), most, 50, None, &mut out)?;
    Ok((String::from_utf8(out).expect("text"), merged))
}

/// Subjects of a query in BLAST's order: the best e-value, the first score, then the later subject.
fn in_order(mut hits: Vec<Hit>) -> Vec<Vec<Hit>> {
    let mut subjects: Vec<Vec<Hit>> = Vec::new();
    hits.sort_by_key(|hit| hit.subject);
    for hit in hits {
        match subjects.last_mut().filter(|subject| subject[0].subject == hit.subject) {
            Some(subject) => subject.push(hit),
            None => subjects.push(vec![hit]),
        }
    }
    let best = |subject: &[Hit]| subject.iter().map(Hit::evalue).fold(f64::INFINITY, f64::min);
    subjects.sort_by(|a, b| {
        let by_value = best(a).total_cmp(&best(b));
        by_value.then(b[0].score.cmp(&a[0].score)).then(b[0].subject.cmp(&a[0].subject))
    });
    subjects
}

fn hit() -> impl Strategy<Value = Hit> {
    let exponents = prop_oneof![Just(-3), Just(-2), Just(-190), Just(-200), Just(0)];
    (0..3u64, 0..12u64, 1..6i64, 1..4i64, exponents).prop_map(
        |(query, subject, score, mantissa, exponent)| Hit {
            query,
            subject,
            score,
            mantissa,
            exponent,
        },
    )
}

proptest! {
    /// Any division of the subjects among partitions gives the archive of all of them.
    #[test]
    fn parts_become_the_whole(
        hits in prop::collection::vec(hit(), 0..40),
        borders in prop::collection::vec(0..12u64, 0..4),
        most in 1..8usize,
    ) {
        let queries = [0, 1, 2];
        let of = |query: u64, from: u64, to: u64| {
            let mine = |hit: &&Hit| hit.query == query && (from..to).contains(&hit.subject);
            in_order(hits.iter().filter(mine).copied().collect())
        };
        let mut borders = borders;
        borders.extend([0, 12]);
        borders.sort();
        let parts: Vec<_> = borders
            .windows(2)
            .map(|pair| {
                let subjects = queries.iter().flat_map(|query| of(*query, pair[0], pair[1]));
                let moved: Vec<_> = subjects
                    .flatten()
                    .map(|hit| Hit { subject: hit.subject - pair[0], ..hit })
                    .collect();
                (pair[0], archive(&queries, &moved))
            })
            .collect();
        let (found, report) = merged(&parts, most).expect("archives");
        let whole: Vec<_> = queries.iter().flat_map(|query| {
            of(*query, 0, 12).into_iter().take(most).flatten()
        }).collect();
        prop_assert_eq!(found, archive(&queries, &whole));
        let over = queries.iter().filter(|query| of(**query, 0, 12).len() > most).count();
        prop_assert_eq!(report.overflowed.len(), over);
    }

    /// Nothing that is not an archive panics or is taken for one.
    #[test]
    fn damage_is_an_error_or_changes_nothing_else(at in 0..4000usize, byte: u8) {
        let hits = [Hit { query: 1, subject: 3, score: 9, mantissa: 1, exponent: -3 }; 2];
        let whole = archive(&[1], &hits);
        let mut damaged = whole.clone().into_bytes();
        let at = at % damaged.len();
        damaged[at] = byte;
        let mut out = Vec::new();
        let part = PartitionArchives { reader: Cursor::new(damaged), first: 0 };
        if merge(vec![part], 500, 500, None, &mut out).is_ok() {
            prop_assert!(out.len() + 40 > whole.len());
        }
    }
}

#[test]
fn batches_are_merged_one_by_one() {
    let hit = |query, subject| Hit { query, subject, score: 3, mantissa: 1, exponent: -9 };
    let one = archive(&[1, 2], &[hit(1, 0), hit(2, 1)]) + &archive(&[3], &[hit(3, 0)]);
    let two = archive(&[1, 2], &[hit(2, 0)]) + &archive(&[3], &[]);
    let whole = archive(&[1, 2], &[hit(1, 0), hit(2, 5), hit(2, 1)]) + &archive(&[3], &[hit(3, 0)]);
    let (found, _) = merged(&[(0, one.clone()), (5, two)], 500).expect("archives");
    assert_eq!(found, whole);

    let error = |parts: &[(u64, String)]| merged(parts, 500).expect_err("refused").to_string();
    let fewer = archive(&[1, 2], &[]);
    assert!(error(&[(0, one.clone()), (5, fewer.clone())]).contains("fewer batches"));
    assert!(error(&[(0, fewer.clone()), (5, one.clone())]).contains("more batches"));
    let other = archive(&[1], &[]) + &archive(&[2, 3], &[]);
    assert!(error(&[(0, one.clone()), (5, other)]).contains("other queries"));
    let turned = archive(&[1, 2], &[hit(2, 0), hit(1, 0)]);
    assert!(error(&[(0, turned)]).contains("not in its order"));
    assert!(error(&[(0, one[..one.len() - 3].to_owned())]).contains("cut short"));
    assert!(error(&[(0, "{}\n".to_owned())]).contains("no archive"));
}

/// With frames, each query has an archive of its own.
#[test]
fn frames_give_each_query_an_archive() {
    let hit = |query, subject| Hit { query, subject, score: 3, mantissa: 1, exponent: -9 };
    let parts = [
        archive(&[1, 2], &[hit(1, 0), hit(2, 1)]) + &archive(&[3], &[]),
        archive(&[1, 2], &[hit(2, 0)]) + &archive(&[3], &[]),
    ];
    let framed = |frames: &str| {
        let part =
            |first, text: &String| PartitionArchives { reader: Cursor::new(text.clone()), first };
        let parts = vec![part(0, &parts[0]), part(5, &parts[1])];
        let mut out = Vec::new();
        let merged = merge(parts, 500, 500, Some(Cursor::new(frames.to_owned())), &mut out);
        merged.map(|_| String::from_utf8(out).expect("text"))
    };
    let frame = |query| archive(&[query], &[]);
    // Alignments of a frame are dropped.
    let frames = frame(1) + &archive(&[2], &[hit(2, 9)]) + &frame(3);
    let whole = archive(&[1], &[hit(1, 0)]) + &archive(&[2], &[hit(2, 5), hit(2, 1)]) + &frame(3);
    assert_eq!(framed(&frames).expect("archives"), whole);
    assert!(framed(&(frame(1) + &frame(2))).is_err());
    assert!(framed(&(frames.clone() + &frame(4))).is_err());
    assert!(framed(&archive(&[1, 2, 3], &[])).is_err());
}

/// A cut at any line is an error: no part of a result is taken for all of it.
#[test]
fn archives_that_end_early_are_errors() {
    let hit = |subject| Hit { query: 1, subject, score: 3, mantissa: 1, exponent: -9 };
    let whole = archive(&[1], &[hit(4), hit(2)]);
    for (at, _) in whole.match_indices('\n').filter(|(at, _)| *at + 1 < whole.len()) {
        assert!(merged(&[(0, whole[..=at].to_owned())], 500).is_err(), "{at}");
    }
}

#[test]
fn a_part_that_is_full_is_noted() {
    let hit = |subject| Hit { query: 1, subject, score: 100, mantissa: 1, exponent: -9 };
    let hits = |count: u64| archive(&[1], &(0..count).rev().map(hit).collect::<Vec<_>>());
    let (_, report) = merged(&[(0, hits(49)), (49, hits(30))], 60).expect("archives");
    assert!(report.filled.is_empty() && report.overflowed.contains(&1));
    let (_, report) = merged(&[(0, hits(50)), (50, hits(3))], 60).expect("archives");
    assert!(report.filled.contains(&1) && report.overflowed.is_empty());
}

/// BLAST has more digits of e-values than an archive, where they depend on the strand.
#[test]
fn subjects_that_only_strands_order_are_noted() {
    let part = |score, strand: &str, gapped: &str| {
        let hit = Hit { query: 1, subject: 0, score, mantissa: 1, exponent: -3 };
        let strands = format!(
            "        strands {{\n          plus,\n          {strand}\n        }},\n        segs std {{"
        );
        let block = |lambda: &str, gapped: &str| {
            format!(
                "      {{\n        lambda {{ {lambda}, 10, -2 }},\n        gapped {gapped}\n      }}"
            )
        };
        let blocks = format!(
            "    ka-blocks {{\n{},\n{}\n    }},\n    search-stats {{",
            block("137", "FALSE"),
            block(gapped, "TRUE")
        );
        let text = archive(&[1], &[hit]).replace("        segs std {", &strands);
        text.replace("    search-stats {", &blocks)
    };
    let is_noted = |one: String, other: String| {
        let (_, report) = merged(&[(0, one), (1, other)], 500).expect("archives");
        report.unclear.contains(&1)
    };
    assert!(is_noted(part(9, "plus", "137"), part(9, "minus", "137")));
    assert!(!is_noted(part(9, "plus", "137"), part(9, "plus", "137")));
    assert!(!is_noted(part(9, "plus", "137"), part(8, "minus", "137")));
    // With tables of parameters, both strands have the same.
    assert!(!is_noted(part(9, "plus", "128"), part(9, "minus", "128")));
}
