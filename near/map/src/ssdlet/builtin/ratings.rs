//! `histogram-ratings` and `histogram-movies`: ratings of movies (PUMA's histograms).
//!
//! A record is `MOVIE:USER_RATING,USER_RATING,...`, a rating is a digit from 1 to 5, up to the next `_` or `,`; what is
//! not like that is no review.

use super::arguments::Arguments;
use super::by_record::{ByRecord, RecordProgram, split_at_first};
use super::{Argument, DELIMITER};
use crate::ssdlet::{Combine, Emitter, Ssdlet, SsdletError, Type};

pub(super) const ARGUMENTS: &[Argument] = &[DELIMITER];

/// 1 for each review, by its rating.
#[derive(Clone)]
struct RatingHistogram;

/// 1 for each movie, by its mean rating in steps of a half.
#[derive(Clone)]
struct MovieHistogram;

pub(super) fn open_ratings(args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    open("histogram-ratings", args, RatingHistogram)
}

pub(super) fn open_movies(args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    open("histogram-movies", args, MovieHistogram)
}

fn open(
    name: &str,
    mut args: Arguments,
    program: impl RecordProgram,
) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let delimiter = args.delimiter()?;
    Ok(ByRecord::boxed(name, delimiter, (Type::I64, Combine::Sum), 0, program))
}

/// The digits of all reviews of a record.
fn ratings(record: &[u8]) -> impl Iterator<Item = u8> {
    let reviews = split_at_first(b':', record).map(|(_, reviews)| reviews.split(|b| *b == b','));
    reviews.into_iter().flatten().filter_map(|review| {
        let (_, rest) = split_at_first(b'_', review)?;
        let rating = split_at_first(b'_', rest).map_or(rest, |(rating, _)| rating);
        match rating {
            [digit @ b'1'..=b'5'] => Some(*digit),
            _ => None,
        }
    })
}

impl RecordProgram for RatingHistogram {
    fn record(&mut self, record: &[u8], out: &mut Emitter<'_>) -> Result<(), String> {
        ratings(record).for_each(|digit| out.add(&[digit], 1));
        Ok(())
    }
}

impl RecordProgram for MovieHistogram {
    fn record(&mut self, record: &[u8], out: &mut Emitter<'_>) -> Result<(), String> {
        let (mut sum, mut reviews) = (0_u64, 0_u64);
        for digit in ratings(record) {
            sum += u64::from(digit - b'0');
            reviews += 1;
        }
        // The upper end of its step, which a mean does not reach.
        if let Some(halves) = (2 * sum).checked_div(reviews).map(|halves| halves + 1) {
            let whole = b'0' + (halves / 2) as u8;
            out.add(&[whole, b'.', if halves % 2 == 0 { b'0' } else { b'5' }], 1);
        }
        Ok(())
    }
}
