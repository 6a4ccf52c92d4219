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
pub enum Program {
    /// Nucleotides in nucleotides.
    Blastn,
    /// Proteins in proteins.
    Blastp,
    /// Translated nucleotides in proteins.
    Blastx,
    /// Proteins in translated nucleotides.
    Tblastn,
}

impl Program {
    /// The program of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "blastn" => Some(Program::Blastn),
            "blastp" => Some(Program::Blastp),
            "blastx" => Some(Program::Blastx),
            "tblastn" => Some(Program::Tblastn),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Program::Blastn => "blastn",
            Program::Blastp => "blastp",
            Program::Blastx => "blastx",
            Program::Tblastn => "tblastn",
        }
    }

    /// What its databases hold.
    #[must_use]
    pub fn database(self) -> Molecule {
        match self {
            Program::Blastn | Program::Tblastn => Molecule::Nucleotide,
            Program::Blastp | Program::Blastx => Molecule::Protein,
        }
    }
}
