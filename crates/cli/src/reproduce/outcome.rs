//! The figures of an experiment: what the paper says, what was measured here, and the ratio.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Experiment, Machine, Plot};

/// What an experiment found.
pub struct Outcome {
    /// Tables, each of the paper or of our own.
    pub sections: Vec<Section>,
    /// What differs from the paper's machine or method, a sentence each.
    pub differs: Vec<String>,
    /// The figures as a picture.
    pub plot: Plot,
}

/// One table.
pub struct Section {
    /// What it shows, in which unit, and which table of the paper it is held against.
    pub title: String,
    rows: Vec<Row>,
}

struct Row {
    what: String,
    paper: Option<f64>,
    ours: Option<f64>,
}

impl Section {
    /// An empty table.
    pub fn new(title: impl Into<String>) -> Self {
        Section { title: title.into(), rows: Vec::new() }
    }

    /// A figure that the paper has too.
    pub fn both(&mut self, what: impl Into<String>, paper: f64, ours: f64) {
        self.rows.push(Row { what: what.into(), paper: Some(paper), ours: Some(ours) });
    }

    /// A figure of the paper alone.
    pub fn paper(&mut self, what: impl Into<String>, paper: f64) {
        self.rows.push(Row { what: what.into(), paper: Some(paper), ours: None });
    }

    /// A figure of ours alone.
    pub fn ours(&mut self, what: impl Into<String>, ours: f64) {
        self.rows.push(Row { what: what.into(), paper: None, ours: Some(ours) });
    }
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        Some(self.ours? / self.paper?)
    }
}

impl Outcome {
    /// For people.
    pub fn table(&self, experiment: &Experiment, machine: &Machine) -> String {
        let Experiment { name, about, source, .. } = experiment;
        let mut text = format!("{name}: {about}\npaper: {source}\nours:  {machine}\n");
        let rows = self.sections.iter().flat_map(|section| &section.rows);
        let titles = self.sections.iter().map(|section| section.title.chars().count());
        let names = rows.map(|row| row.what.chars().count());
        let width = titles.chain(names).max().unwrap_or(0);
        for section in &self.sections {
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
        for difference in &self.differs {
            let _ = writeln!(text, "- {difference}");
        }
        text
    }

    /// For programs: the same, unrounded.
    pub fn json(&self, experiment: &Experiment, machine: &Machine) -> Value {
        let section = |section: &Section| {
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
            "experiment": experiment.name,
            "about": experiment.about,
            "source": experiment.source,
            "machine": machine.json(),
            "sections": self.sections.iter().map(section).collect::<Vec<_>>(),
            "differs": self.differs,
        })
    }
}

/// Three digits or all before the point; nothing for nothing.
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
    use super::super::EXPERIMENTS;
    use super::*;

    #[test]
    fn the_table_and_the_json_say_the_same() {
        let mut section = Section::new("Table 9, seconds");
        section.both("radix", 0.29, 0.1);
        section.paper("more", 26.33);
        section.ours("less", 1234.5);
        let plot = Plot::Bars { title: String::new(), unit: String::new(), bars: Vec::new() };
        let differs = vec!["All of it.".to_owned()];
        let outcome = Outcome { sections: vec![section], differs, plot };
        let machine = Machine {
            processor: "a processor".into(),
            cores: 2,
            memory_bytes: 3 << 30,
            file_system: "ext4".into(),
            kernel: "6".into(),
        };
        let table = outcome.table(&EXPERIMENTS[0], &machine);
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
        let json = outcome.json(&EXPERIMENTS[0], &machine);
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
