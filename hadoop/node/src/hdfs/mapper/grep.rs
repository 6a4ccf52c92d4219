//! `grep`: 1 for each place of a text, as Hadoop's `RegexMapper` with a pattern that is a plain text.
//!
//! Texts are searched in the bytes, with the same result as in Java: no character of UTF-8 begins inside another, and
//! Java's decoder keeps every whole character next to bytes that are not UTF-8.

use memchr::memmem::Finder;
use serde_json::{Map, Value};

use super::HdfsMapper;
use crate::hdfs::HdfsResult;
use crate::hdfs::batch::SplitBatch;
use crate::hdfs::output::MappedRows;

struct Grep {
    finder: Finder<'static>,
}

pub(super) fn open(arguments: &mut Map<String, Value>) -> HdfsResult<Box<dyn HdfsMapper>, String> {
    let text = match arguments.remove("text") {
        Some(Value::String(text)) => text,
        Some(_) => return Err("the argument text is a text".to_owned()),
        None => return Err("the argument text is missing".to_owned()),
    };
    if text.is_empty() {
        return Err("an empty text is everywhere".to_owned());
    }
    if text.contains('\u{fffd}') {
        return Err("U+FFFD stands for bytes that are not UTF-8".to_owned());
    }
    Ok(Box::new(Grep { finder: Finder::new(text.as_bytes()).into_owned() }))
}

impl HdfsMapper for Grep {
    fn map(&mut self, batch: &SplitBatch<'_>, out: &mut MappedRows<'_>) -> HdfsResult<u64> {
        let mut count = 0;
        for record in batch.records() {
            count += 1;
            for _ in self.finder.find_iter(record) {
                out.count(self.finder.needle());
            }
        }
        Ok(count)
    }
}
