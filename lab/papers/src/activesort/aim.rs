//! How near a figure should come to the paper's. A figure that misses its aim is named in the report.

use crate::outcome::OutcomeSection;

/// The aim of a figure.
#[derive(Debug, Clone, Copy)]
pub(super) enum Aim {
    /// Percent of the paper's figure.
    Percent(f64),
    /// Points of figures that are percentages.
    Points(f64),
}

impl Aim {
    /// A sentence about a figure that misses it.
    fn missed(self, what: &str, paper: f64, ours: f64) -> Option<String> {
        let (off, aim, unit) = match self {
            Aim::Percent(aim) => (100. * (ours / paper - 1.), aim, "%"),
            Aim::Points(aim) => (ours - paper, aim, "points"),
        };
        (off.abs() > aim).then(|| {
            format!("Missed: {what}: {ours:.4}, the paper {paper:.4}: {off:+.1} {unit}, and the aim was {aim}.")
        })
    }
}

/// Figures with aims, and those that miss theirs.
#[derive(Default)]
pub(super) struct Judged {
    missed: Vec<String>,
}

impl Judged {
    /// Adds a row to `section`.
    pub(super) fn both(
        &mut self,
        section: &mut OutcomeSection,
        what: &str,
        (paper, ours): (f64, f64),
        aim: Aim,
    ) {
        section.both(what, paper, ours);
        self.missed.extend(aim.missed(what, paper, ours));
    }

    /// A sentence for each figure that missed its aim.
    pub(super) fn missed(self) -> Vec<String> {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_outside_its_aim_is_named() {
        let (mut judged, mut section) = (Judged::default(), OutcomeSection::new("MB/s"));
        judged.both(&mut section, "read", (100., 104.9), Aim::Percent(5.));
        judged.both(&mut section, "merged", (125.9, 108.), Aim::Percent(5.));
        judged.both(&mut section, "less time", (53.1, 47.9), Aim::Points(5.));
        assert_eq!(section.rows.len(), 3);
        let expected = [
            "Missed: merged: 108.0000, the paper 125.9000: -14.2 %, and the aim was 5.",
            "Missed: less time: 47.9000, the paper 53.1000: -5.2 points, and the aim was 5.",
        ];
        assert_eq!(judged.missed(), expected);
    }
}
