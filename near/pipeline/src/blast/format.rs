//! The forms of the output that are made, and what BLAST prints for them.

use super::error::OptionError;
use super::program::BlastProgram;

/// The form of an output, by its number in `-outfmt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 0: alignments as text.
    Pairwise,
    /// 5: XML.
    Xml,
    /// 6: a table.
    Table,
    /// 7: a table with comments.
    Commented,
    /// 10: values between commas.
    Commas,
    /// 15: JSON, in one file.
    Json,
    /// 17: SAM.
    Sam,
}

impl Form {
    fn of_number(number: &str) -> Option<Self> {
        Some(match number {
            "0" => Form::Pairwise,
            "5" => Form::Xml,
            "6" => Form::Table,
            "7" => Form::Commented,
            "10" => Form::Commas,
            "15" => Form::Json,
            "17" => Form::Sam,
            _ => return None,
        })
    }

    /// Whether it shows masked letters of queries. BLAST's formatter mixes them up if an archive has several queries.
    #[must_use]
    pub fn shows_masks(self) -> bool {
        matches!(self, Form::Pairwise | Form::Xml | Form::Json)
    }

    /// Whether columns can follow the number.
    fn has_columns(self) -> bool {
        matches!(self, Form::Table | Form::Commented | Form::Commas)
    }
}

/// The form of a search's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFormat {
    /// Which.
    pub form: Form,
    /// The value of `-outfmt`.
    pub text: String,
}

impl OutputFormat {
    /// Reads the value of `-outfmt` for a program.
    ///
    /// # Errors
    /// [`OptionError::Format`] for a form that is not made.
    pub fn parse(text: &str, program: BlastProgram) -> Result<Self, OptionError> {
        let refused = || OptionError::Format(text.to_owned());
        let mut words = text.split_whitespace();
        let form = words.next().and_then(Form::of_number).ok_or_else(refused)?;
        let is_column = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        if !words.all(|word| form.has_columns() && is_column(word)) {
            return Err(refused());
        }
        if form == Form::Sam && program != BlastProgram::Blastn {
            return Err(OptionError::Sam);
        }
        Ok(OutputFormat { form, text: text.to_owned() })
    }
}
