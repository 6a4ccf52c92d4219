//! How much of a result BLAST shows.

use super::error::OptionError;
use super::format::Form;

/// Subjects per query if nothing else is asked for.
const TARGETS: usize = 500;
/// Alignments per query in text, if nothing else is asked for.
const ALIGNMENTS: usize = 250;
/// BLAST's numbers have 32 bits.
const TARGETS_MAX: usize = i32::MAX as usize;
/// The least number of subjects that a search of a partition keeps. BLAST chooses them before their final scores are
/// known, with some to spare, which is too few if it shall keep only some.
const KEPT_MIN: usize = 50;

/// How many subjects are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// As many as BLAST reports.
    Usual,
    /// `-max_target_seqs`.
    Targets(usize),
    /// `-num_descriptions` and `-num_alignments`, for text.
    Shown {
        /// Lines in the list of subjects.
        descriptions: usize,
        /// Subjects with alignments.
        alignments: usize,
    },
}

impl Limit {
    /// Subjects per query in the result, at most.
    #[must_use]
    pub fn subjects(self) -> usize {
        match self {
            Limit::Usual => TARGETS,
            Limit::Targets(targets) => targets,
            Limit::Shown { descriptions, alignments } => descriptions.max(alignments),
        }
    }

    /// Subjects per query that the search of a partition keeps.
    #[must_use]
    pub fn kept(self) -> usize {
        self.subjects().max(KEPT_MIN)
    }

    /// The same as options of BLAST's programs.
    #[must_use]
    pub fn words(self) -> Vec<String> {
        match self {
            Limit::Usual => Vec::new(),
            Limit::Targets(targets) => vec!["-max_target_seqs".to_owned(), targets.to_string()],
            Limit::Shown { descriptions, alignments } => vec![
                "-num_descriptions".to_owned(),
                descriptions.to_string(),
                "-num_alignments".to_owned(),
                alignments.to_string(),
            ],
        }
    }
}

/// The options that say how much is shown.
#[derive(Debug, Default)]
pub(super) struct ShownLimits {
    targets: Option<usize>,
    descriptions: Option<usize>,
    alignments: Option<usize>,
    line: Option<usize>,
}

impl ShownLimits {
    const NAMES: [&str; 4] =
        ["-max_target_seqs", "-num_descriptions", "-num_alignments", "-line_length"];

    pub(super) fn knows(name: &str) -> bool {
        Self::NAMES.contains(&name)
    }

    /// Takes a value; whether it is the first.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<bool, OptionError> {
        let (place, least) = match name {
            "-max_target_seqs" => (&mut self.targets, 1),
            "-num_descriptions" => (&mut self.descriptions, 0),
            "-num_alignments" => (&mut self.alignments, 0),
            _ => (&mut self.line, 1),
        };
        let number = value.parse().ok().filter(|number| (least..=TARGETS_MAX).contains(number));
        let number = number.ok_or_else(|| OptionError::Number(name.to_owned(), least))?;
        Ok(place.replace(number).is_none())
    }

    pub(super) fn limit(&self, form: Form) -> Result<Limit, OptionError> {
        let shown = self.descriptions.map(|_| "-num_descriptions");
        let shown = shown.or(self.alignments.map(|_| "-num_alignments"));
        match (self.targets, shown) {
            (Some(_), Some(name)) => Err(OptionError::Both(name.to_owned())),
            (_, Some(name)) if form != Form::Pairwise => {
                Err(OptionError::OnlyText(name.to_owned()))
            }
            (Some(targets), None) => Ok(Limit::Targets(targets)),
            (None, None) => Ok(Limit::Usual),
            (None, Some(name)) => {
                let descriptions = self.descriptions.unwrap_or(TARGETS);
                let alignments = self.alignments.unwrap_or(ALIGNMENTS);
                if descriptions.max(alignments) == 0 {
                    return Err(OptionError::Number(name.to_owned(), 1));
                }
                Ok(Limit::Shown { descriptions, alignments })
            }
        }
    }

    pub(super) fn line_length(&self, form: Form) -> Result<Vec<String>, OptionError> {
        let name = "-line_length".to_owned();
        match self.line {
            None => Ok(Vec::new()),
            Some(_) if form != Form::Pairwise => Err(OptionError::OnlyText(name)),
            Some(letters) => Ok(vec![name, letters.to_string()]),
        }
    }
}
