//! `occurrences`: how often a text occurs (Hadoop's `grep`, with a pattern that is a plain text).

use memchr::memmem::Finder;

use super::arguments::Arguments;
use super::by_record::{ByRecord, RecordProgram};
use super::{Argument, DELIMITER, argument};
use crate::ssdlet::{Combine, Emitter, Ssdlet, SsdletError, Type};

pub(super) const ARGUMENTS: &[Argument] = &[
    argument("text", "the text; an occurrence does not overlap the one before in its record", ""),
    DELIMITER,
];

#[derive(Clone)]
struct Occurrences {
    finder: Finder<'static>,
}

pub(super) fn open(mut args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let Some(text) = args.take::<String>("text")? else {
        return Err(args.fault("text", "it is missing; give the text that is counted"));
    };
    let delimiter = args.delimiter()?;
    if text.is_empty() {
        return Err(args.fault("text", "an empty text is everywhere"));
    }
    let finder = Finder::new(text.as_bytes()).into_owned();
    let sum = (Type::I64, Combine::Sum);
    Ok(ByRecord::boxed("occurrences", delimiter, sum, 0, Occurrences { finder }))
}

impl RecordProgram for Occurrences {
    fn record(&mut self, record: &[u8], out: &mut Emitter<'_>) -> Result<(), String> {
        for _ in self.finder.find_iter(record) {
            out.add(self.finder.needle(), 1);
        }
        Ok(())
    }
}
