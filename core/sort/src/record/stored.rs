//! How a format is written to files and sent to other programs.

use serde::{Deserialize, Serialize};

use super::{CsvQuotes, Format};

/// A [`Format`] in JSON.
///
/// Programs before [`CsvQuotes`] wrote `csv` and took every quote as one that opens or closes. So `csv` still means
/// that, and they refuse the other two names, whose rows they would divide in another way.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StoredFormat {
    Lines {
        delimiter: u8,
    },
    Csv {
        separator: u8,
        header: bool,
    },
    #[serde(rename = "csv-lazy")]
    CsvLazy {
        separator: u8,
        header: bool,
    },
    #[serde(rename = "csv-strict")]
    CsvStrict {
        separator: u8,
        header: bool,
    },
    Fixed {
        bytes: usize,
    },
    Keyed,
    Fasta,
    Fastq,
}

impl From<StoredFormat> for Format {
    fn from(stored: StoredFormat) -> Self {
        let csv = |separator, header, quotes| Format::Csv { separator, header, quotes };
        match stored {
            StoredFormat::Lines { delimiter } => Format::Lines { delimiter },
            StoredFormat::Csv { separator, header } => csv(separator, header, CsvQuotes::Toggled),
            StoredFormat::CsvLazy { separator, header } => csv(separator, header, CsvQuotes::Lazy),
            StoredFormat::CsvStrict { separator, header } => {
                csv(separator, header, CsvQuotes::Strict)
            }
            StoredFormat::Fixed { bytes } => Format::Fixed { bytes },
            StoredFormat::Keyed => Format::Keyed,
            StoredFormat::Fasta => Format::Fasta,
            StoredFormat::Fastq => Format::Fastq,
        }
    }
}

impl From<Format> for StoredFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Lines { delimiter } => StoredFormat::Lines { delimiter },
            Format::Csv { separator, header, quotes } => match quotes {
                CsvQuotes::Lazy => StoredFormat::CsvLazy { separator, header },
                CsvQuotes::Strict => StoredFormat::CsvStrict { separator, header },
                CsvQuotes::Toggled => StoredFormat::Csv { separator, header },
            },
            Format::Fixed { bytes } => StoredFormat::Fixed { bytes },
            Format::Keyed => StoredFormat::Keyed,
            Format::Fasta => StoredFormat::Fasta,
            Format::Fastq => StoredFormat::Fastq,
        }
    }
}
