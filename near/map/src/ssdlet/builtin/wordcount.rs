//! `wordcount`: how often each word occurs.

use merganser_sort::record::Format;

use super::arguments::Arguments;
use super::words::{Rule, WordFinder};
use super::{Argument, DELIMITER, WORDS};
use crate::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
};

pub(super) const ARGUMENTS: &[Argument] = &[WORDS, DELIMITER];

struct WordCountSsdlet {
    description: SsdletDescription,
    rule: Rule,
    delimiter: u8,
}

pub(super) fn open(mut args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let (rule, delimiter) = word_arguments(&mut args)?;
    let description = SsdletDescription {
        name: "wordcount".to_owned(),
        input: Format::Lines { delimiter },
        output: SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum },
        worker_bytes: rule.finder_bytes(),
    };
    Ok(Box::new(WordCountSsdlet { description, rule, delimiter }))
}

/// Takes [`WORDS`] and [`DELIMITER`].
pub(super) fn word_arguments(args: &mut Arguments) -> Result<(Rule, u8), SsdletError> {
    let rule = args.take("words")?.unwrap_or_default();
    let delimiter = args.delimiter()?;
    let is_letter = delimiter.is_ascii_alphabetic() || delimiter == b'\'';
    if rule == Rule::Letters && is_letter {
        return Err(args.fault("delimiter", "a letter can't end a record of words"));
    }
    Ok((rule, delimiter))
}

impl Ssdlet for WordCountSsdlet {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(WordCountWorker {
            words: WordFinder::new(self.rule, self.delimiter),
            metered: 0,
        }))
    }
}

struct WordCountWorker {
    words: WordFinder,
    metered: u64,
}

impl Worker for WordCountWorker {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.metered += chunk.bytes.len() as u64;
        self.words.each(chunk.bytes, chunk.offset, |word| {
            out.add_span(word.around, word.span, 1);
            Ok(())
        })
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}
