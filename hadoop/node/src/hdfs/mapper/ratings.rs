//! Ratings of movies (PUMA's histograms). A line is `MOVIE:USER_RATING,USER_RATING,...`, a rating is a digit from
//! 1 to 5, up to the next `_` or `,`; what is not like that is no review.
//! All that is looked for is ASCII, so lines are not decoded.

use super::{HdfsMapper, split_at_first};
use crate::hdfs::HdfsResult;
use crate::hdfs::batch::SplitBatch;
use crate::hdfs::output::MappedRows;

/// `histogram-ratings`: 1 for each review, by its rating.
pub(super) struct Ratings;

/// `histogram-movies`: 1 for each movie, by its mean rating in steps of a half.
pub(super) struct Movies;

/// The digits of all reviews of a line.
fn ratings(line: &[u8]) -> impl Iterator<Item = u8> {
    let reviews = split_at_first(b':', line).map(|(_, reviews)| reviews.split(|b| *b == b','));
    reviews.into_iter().flatten().filter_map(|review| {
        let (_, rest) = split_at_first(b'_', review)?;
        let rating = split_at_first(b'_', rest).map_or(rest, |(rating, _)| rating);
        match rating {
            [digit @ b'1'..=b'5'] => Some(*digit),
            _ => None,
        }
    })
}

impl HdfsMapper for Ratings {
    fn map(&mut self, batch: &SplitBatch<'_>, out: &mut MappedRows<'_>) -> HdfsResult<u64> {
        let mut count = 0;
        for line in batch.records() {
            count += 1;
            ratings(line).for_each(|digit| out.count(&[digit]));
        }
        Ok(count)
    }
}

impl HdfsMapper for Movies {
    fn map(&mut self, batch: &SplitBatch<'_>, out: &mut MappedRows<'_>) -> HdfsResult<u64> {
        let mut count = 0;
        for line in batch.records() {
            count += 1;
            let (mut sum, mut reviews) = (0_u64, 0_u64);
            for digit in ratings(line) {
                sum += u64::from(digit - b'0');
                reviews += 1;
            }
            // The upper end of its step, which a mean does not reach.
            if let Some(halves) = (2 * sum).checked_div(reviews).map(|halves| halves + 1) {
                let whole = b'0' + (halves / 2) as u8;
                out.count(&[whole, b'.', if halves % 2 == 0 { b'0' } else { b'5' }]);
            }
        }
        Ok(count)
    }
}
