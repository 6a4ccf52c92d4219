//! The reasons why a BLAST command is not run over partitions.

/// Why a command is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// Not one of the programs.
    #[error("'{0}': only blastn, blastp, blastx and tblastn are run over partitions")]
    Program(String),
    /// It gives other results over partitions.
    #[error("{0}: {1}, so its result over partitions would be another one; leave it out")]
    Compares(String, &'static str),
    /// The order of subjects is not in the archives.
    #[error(
        "{0}: with blastx, tblastn and -ungapped, BLAST orders subjects by alignments that it leaves out then; leave out the option"
    )]
    Linked(&'static str),
    /// Not shown to be exact.
    #[error(
        "{0}: no test has shown that its result over partitions is that of the whole database; leave it out"
    )]
    NotShown(String),
    /// A form that is not made.
    #[error(
        "-outfmt {0}: only 0, 5, 6, 7, 10, 15 and 17 are made (6, 7 and 10 with any names of columns); take one of these"
    )]
    Format(String),
    /// SAM of another program.
    #[error("-outfmt 17: BLAST writes SAM for blastn only")]
    Sam,
    /// An option of text.
    #[error("{0}: is for -outfmt 0 only; leave it out")]
    OnlyText(String),
    /// Two options for one thing.
    #[error("{0}, -max_target_seqs: BLAST takes only one of them")]
    Both(String),
    /// Not text.
    #[error("{0}: is not UTF-8, which is needed here")]
    NotText(String),
    /// Nothing follows.
    #[error("{0}: needs a value")]
    NoValue(String),
    /// Given twice.
    #[error("{0}: is given twice")]
    Twice(String),
    /// Missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// No number in its range.
    #[error("{0}: a number of at least {1}")]
    Number(String, usize),
    /// A word that is no option.
    #[error("'{0}': options begin with '-'")]
    NoOption(String),
}
