//! The alias file that makes a partition count as the whole database.
//!
//! `STATS_NSEQ` and `STATS_TOTLEN` are the sizes that e-values are computed with; `NSEQ` and `LENGTH` are those that are
//! printed, and that cutoffs use. BLAST's option `-dbsize` is not enough: it is not adjusted by the number of sequences.

use super::count::DatabaseCounts;
use super::program::Molecule;

impl Molecule {
    /// The end of an alias file's name.
    #[must_use]
    pub fn alias_suffix(self) -> &'static str {
        match self {
            Molecule::Nucleotide => "nal",
            Molecule::Protein => "pal",
        }
    }
}

/// The text of an alias over `databases`, which are named relative to the alias file. With `counts` they count as a
/// database of that size; without, as what they are.
#[must_use]
pub fn text(title: &str, databases: &[String], counts: Option<DatabaseCounts>) -> String {
    let mut text = format!("TITLE {title}\nDBLIST {}\n", databases.join(" "));
    if let Some(counts) = counts {
        let (sequences, letters) = (counts.with_letters(), counts.letters);
        text.push_str(&format!(
            "NSEQ {sequences}\nLENGTH {letters}\nSTATS_NSEQ {sequences}\nSTATS_TOTLEN {letters}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_counts_as_the_whole() {
        let counts =
            DatabaseCounts { sequences: 3606, letters: 20_486_792, ..DatabaseCounts::default() };
        assert_eq!(
            text("nt", &["db".to_owned()], Some(counts)),
            "TITLE nt\nDBLIST db\nNSEQ 3606\nLENGTH 20486792\nSTATS_NSEQ 3606\nSTATS_TOTLEN 20486792\n"
        );
        // makeblastdb leaves those without letters out.
        let without = DatabaseCounts { sequences: 3609, empty: 3, ..counts };
        let of = |counts| text("nt", &["db".to_owned()], Some(counts));
        assert_eq!(of(without), of(counts));
        let both = ["a/db".to_owned(), "b/db".to_owned()];
        assert_eq!(text("nt", &both, None), "TITLE nt\nDBLIST a/db b/db\n");
    }
}
