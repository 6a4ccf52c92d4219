//! Any bytes as archives of BLAST and as its printed outputs: an error or a result, in memory that the input bounds.

use std::io::Cursor;

use merganser_pipeline::blast::archive::{PartitionArchives, merge};
use merganser_pipeline::blast::format::Form;
use merganser_pipeline::blast::frame::fill;

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    // A line of two bytes divides the input.
    let cut = bytes.windows(2).position(|pair| pair == b"\0\n").unwrap_or(bytes.len());
    let (one, other) = bytes.split_at(cut);
    let other = other.get(2..).unwrap_or_default();
    let part = |bytes, first| PartitionArchives { reader: Cursor::new(bytes), first };
    let mut whole = Vec::new();
    if let Ok(merged) = merge(vec![part(one, 0), part(other, 7)], 3, 2, None, &mut whole) {
        let queries = bytes.windows(6).filter(|some| some == b"Query_").count();
        for some in [merged.overflowed, merged.filled, merged.unclear] {
            assert!(some.len() <= queries);
        }
        // Numbers of subjects may get longer.
        assert!(whole.len() <= 20 * bytes.len());
    }
    for form in [Form::Pairwise, Form::Xml, Form::Commented, Form::Json, Form::Sam] {
        let _ = fill(form, &mut &*one, &mut Cursor::new(other), "blastn", &mut Vec::new());
    }
}
