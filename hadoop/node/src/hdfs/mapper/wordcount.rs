//! `wordcount`: 1 for each word, as Hadoop's example has it.

use std::convert::Infallible;

use super::HdfsMapper;
use crate::hdfs::HdfsResult;
use crate::hdfs::batch::SplitBatch;
use crate::hdfs::java_text::decoded;
use crate::hdfs::output::MappedRows;
use merganser_map::ssdlet::builtin::each_word;

#[derive(Default)]
pub(super) struct WordCountMapper {
    room: Vec<u8>,
}

impl WordCountMapper {
    fn words(&mut self, text: &[u8], out: &mut MappedRows<'_>) {
        let is_utf8 = str::from_utf8(text).is_ok();
        let Ok(()) = each_word(text, |start, end| {
            if is_utf8 {
                out.count_within(text, start..end);
            } else {
                let most = out.text_bytes_max();
                match decoded(&text[start..end], &mut self.room, most) {
                    Some(word) => out.count(word),
                    None => out.too_long(),
                }
            }
            Ok::<(), Infallible>(())
        });
    }
}

impl HdfsMapper for WordCountMapper {
    fn map(&mut self, batch: &SplitBatch<'_>, out: &mut MappedRows<'_>) -> HdfsResult<u64> {
        if let Some(lines) = batch.lines() {
            self.words(lines, out);
            return Ok(batch.count());
        }
        let mut count = 0;
        for record in batch.records() {
            count += 1;
            self.words(record, out);
        }
        Ok(count)
    }
}
