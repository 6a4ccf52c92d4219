//! `wordcount`: how often each word occurs.

use merganser_sort::record::Format;
use serde_json::Value;

use crate::ssdlet::{
    Chunk, Combine, Description, Emitter, Output, Ssdlet, SsdletError, Type, Worker,
};

struct WordCount {
    description: Description,
}

pub(super) fn open(_args: &Value) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let output = Output::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum };
    let input = Format::Lines { delimiter: b'\n' };
    let description = Description { name: "wordcount".to_owned(), input, output, worker_bytes: 0 };
    Ok(Box::new(WordCount { description }))
}

impl Ssdlet for WordCount {
    fn description(&self) -> &Description {
        &self.description
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(Words))
    }
}

struct Words;

impl Worker for Words {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        for word in chunk.bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            out.add(word, 1);
        }
        Ok(())
    }
}
