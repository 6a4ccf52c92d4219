//! `wordcount`: 1 for each word, as Hadoop's example has it.

use std::convert::Infallible;

use super::Mapper;
use crate::hdfs::Result;
use crate::hdfs::batch::Batch;
use crate::hdfs::java_text::decoded;
use crate::hdfs::output::Output;
use crate::ssdlet::builtin::each_word;

#[derive(Default)]
pub(super) struct WordCount {
    room: Vec<u8>,
}

impl WordCount {
    fn words(&mut self, text: &[u8], out: &mut Output<'_>) {
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

impl Mapper for WordCount {
    fn map(&mut self, batch: &Batch<'_>, out: &mut Output<'_>) -> Result<u64> {
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
