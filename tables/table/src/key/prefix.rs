//! Where the first columns of a key end.

use super::{KeyColumn, KeyKind};

/// How many bytes of `key` the first columns take, which are `columns`; `None` if they can't be in it. No such beginning is that
/// of another one, unless the last column is open.
pub(crate) fn prefix_len(columns: &[KeyColumn], key: &[u8]) -> Option<usize> {
    let mut at = 0;
    for column in columns {
        if column.nullable {
            let mark = *key.get(at)?;
            at += 1;
            if mark != 1 {
                continue;
            }
        }
        at += match column.kind {
            KeyKind::Boolean => 1,
            KeyKind::Number { width, .. } | KeyKind::FixedBytes { width } => width,
            KeyKind::Bytes if column.is_open => key.len() - at,
            KeyKind::Bytes => {
                let turned = if column.descending { 0xFF } else { 0 };
                let pairs = key.get(at..)?.windows(2);
                // A zero that is no end is followed by FF, so no end begins with the second byte of a pair.
                pairs.enumerate().find(|(_, pair)| **pair == [turned; 2])?.0 + 2
            }
        };
    }
    (at <= key.len()).then_some(at)
}
