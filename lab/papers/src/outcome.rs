//! The figures of an experiment: the paper's, ours, and the ratio.

use merganser_pages::Chart;

/// The result of an experiment.
pub(crate) struct Outcome {
    /// Tables: the paper's and our own.
    pub sections: Vec<OutcomeSection>,
    /// How the machine or the method differs from the paper's, one sentence per difference.
    pub differs: Vec<String>,
    /// The figures as a picture.
    pub chart: Chart,
}

/// One table.
pub(crate) struct OutcomeSection {
    /// Its subject, the unit, and the table of the paper that it is compared with.
    pub title: String,
    /// Its lines.
    pub rows: Vec<OutcomeRow>,
}

/// One line of a table.
pub(crate) struct OutcomeRow {
    /// The name of the figure.
    pub what: String,
    /// The paper's figure.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: Option<f64>,
}

impl OutcomeSection {
    /// An empty table.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        OutcomeSection { title: title.into(), rows: Vec::new() }
    }

    /// A figure that the paper has too.
    pub(crate) fn both(&mut self, what: impl Into<String>, paper: f64, ours: f64) {
        self.rows.push(OutcomeRow { what: what.into(), paper: Some(paper), ours: Some(ours) });
    }

    /// A figure of the paper alone.
    pub(crate) fn paper(&mut self, what: impl Into<String>, paper: f64) {
        self.rows.push(OutcomeRow { what: what.into(), paper: Some(paper), ours: None });
    }

    /// A figure of ours alone.
    pub(crate) fn ours(&mut self, what: impl Into<String>, ours: f64) {
        self.rows.push(OutcomeRow { what: what.into(), paper: None, ours: Some(ours) });
    }
}

impl OutcomeRow {
    /// Ours over the paper's, if there are both.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.ours? / self.paper?)
    }
}
