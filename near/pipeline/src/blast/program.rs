//! The programs of BLAST+ that are run over partitions, and what their databases hold.

/// What a database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Molecule {
    /// DNA and RNA.
    Nucleotide,
    /// Proteins.
    Protein,
}

impl Molecule {
    /// The word for `makeblastdb -dbtype`.
    #[must_use]
    pub fn dbtype(self) -> &'static str {
        match self {
            Molecule::Nucleotide => "nucl",
            Molecule::Protein => "prot",
        }
    }
}

/// The programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlastProgram {
    /// Nucleotides in nucleotides.
    Blastn,
    /// Proteins in proteins.
    Blastp,
    /// Translated nucleotides in proteins.
    Blastx,
    /// Proteins in translated nucleotides.
    Tblastn,
}

impl BlastProgram {
    /// The program of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "blastn" => Some(BlastProgram::Blastn),
            "blastp" => Some(BlastProgram::Blastp),
            "blastx" => Some(BlastProgram::Blastx),
            "tblastn" => Some(BlastProgram::Tblastn),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BlastProgram::Blastn => "blastn",
            BlastProgram::Blastp => "blastp",
            BlastProgram::Blastx => "blastx",
            BlastProgram::Tblastn => "tblastn",
        }
    }

    /// What its databases hold.
    #[must_use]
    pub fn database(self) -> Molecule {
        match self {
            BlastProgram::Blastn | BlastProgram::Tblastn => Molecule::Nucleotide,
            BlastProgram::Blastp | BlastProgram::Blastx => Molecule::Protein,
        }
    }
}
