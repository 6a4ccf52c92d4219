//! The report of an experiment: a table for people, JSON for programs, a chart.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::machine::MeasuredMachine;
use crate::outcome::{Outcome, OutcomeSection};

/// The report of an experiment.
pub struct ExperimentReport {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) source: &'static str,
    pub(crate) machine: MeasuredMachine,
    pub(crate) outcome: Outcome,
}

impl ExperimentReport {
    /// The tables, for people.
    pub fn text(&self) -> String {
        let ExperimentReport { name, about, source, machine, outcome } = self;
        let mut text = format!("{name}: {about}\npaper: {source}\nours:  {machine}\n");
        let rows = outcome.sections.iter().flat_map(|section| &section.rows);
        let titles = outcome.sections.iter().map(|section| section.title.chars().count());
        let names = rows.map(|row| row.what.chars().count());
        let width = titles.chain(names).max().unwrap_or(0);
        for section in &outcome.sections {
            let title = &section.title;
            let _ =
                writeln!(text, "\n{title:<width$} {:>11} {:>11} {:>8}", "paper", "ours", "ratio");
            for row in &section.rows {
                let _ = writeln!(
                    text,
                    "{:<width$} {:>11} {:>11} {:>8}",
                    row.what,
                    figure(row.paper),
                    figure(row.ours),
                    figure(row.ratio()),
                );
            }
        }
        text.push_str("\nratio is ours over the paper's. What differs:\n");
        for difference in &outcome.differs {
            let _ = writeln!(text, "- {difference}");
        }
        text
    }

    /// The same figures for programs, not rounded.
    pub fn json(&self) -> Value {
        let section = |section: &OutcomeSection| {
            let rows: Vec<Value> = section
                .rows
                .iter()
                .map(|row| {
                    json!({
                        "what": row.what,
                        "paper": row.paper,
                        "ours": row.ours,
                        "ratio": row.ratio(),
                    })
                })
                .collect();
            json!({ "title": section.title, "rows": rows })
        };
        json!({
            "experiment": self.name,
            "about": self.about,
            "source": self.source,
            "machine": self.machine.json(),
            "sections": self.outcome.sections.iter().map(section).collect::<Vec<_>>(),
            "differs": self.outcome.differs,
        })
    }

    /// The chart, as SVG.
    pub fn svg(&self) -> String {
        self.outcome.chart.svg()
    }
}

/// At least three digits, and all digits before the point; a dash for no figure.
fn figure(figure: Option<f64>) -> String {
    let Some(figure) = figure else { return "-".to_owned() };
    if figure == 0. || !figure.is_finite() {
        return figure.to_string();
    }
    let digits = (2 - figure.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{figure:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_pages::Chart;

    fn report(outcome: Outcome) -> ExperimentReport {
        let machine = MeasuredMachine {
            processor: "a processor".into(),
            cores: 2,
            memory_bytes: 3 << 30,
            file_system: "ext4".into(),
            kernel: "6".into(),
        };
        ExperimentReport { name: "n", about: "a", source: "s", machine, outcome }
    }

    #[test]
    fn the_table_and_the_json_say_the_same() {
        let mut section = OutcomeSection::new("Table 9, seconds");
        section.both("radix", 0.29, 0.1);
        section.paper("more", 26.33);
        section.ours("less", 1234.5);
        let chart = Chart::Bars { title: String::new(), unit: String::new(), bars: Vec::new() };
        let differs = vec!["All of it.".to_owned()];
        let outcome = Outcome { sections: vec![section], differs, chart };
        let report = report(outcome);
        let table = report.text();
        let expected = "
Table 9, seconds       paper        ours    ratio
radix                  0.290       0.100    0.345
more                    26.3           -        -
less                       -        1234        -

ratio is ours over the paper's. What differs:
- All of it.
";
        assert!(table.ends_with(expected), "{table}");
        assert!(table.contains("a processor, 2 cores, 3 GiB, ext4, Linux 6\n"), "{table}");
        let json = report.json();
        assert_eq!(json["sections"][0]["rows"][1]["ours"], Value::Null);
        assert_eq!(json["sections"][0]["rows"][2]["ours"], json!(1234.5));
    }

    #[test]
    fn figures_have_three_digits_or_all_before_the_point() {
        let table =
            [(0., "0"), (0.00123, "0.00123"), (9.999, "10.00"), (46040.5, "46040"), (1.0, "1.00")];
        for (number, text) in table {
            assert_eq!(figure(Some(number)), text);
        }
    }
}
