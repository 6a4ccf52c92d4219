//! Every format finds where a record ends.

/// Finds record ends; one type a format, so that hot loops are compiled for each.
pub trait Framing: Copy + Send + Sync + 'static {
    /// Length, terminator included, of the record that begins at `bytes[0]`; `None` when it does
    /// not end within `bytes`, or when that is not known before the bytes behind them.
    fn next(self, bytes: &[u8]) -> Option<usize>;

    /// Length of the first record of `bytes`, which are whole records; `None` when there is no record, or
    /// when they are not whole. A record whose end is where the next one begins may end with `bytes`.
    #[inline]
    fn first(self, bytes: &[u8]) -> Option<usize> {
        self.next(bytes)
    }

    /// Where `whole`, [`Framing::first`], and else [`Framing::next`].
    #[inline]
    fn len_in(self, bytes: &[u8], whole: bool) -> Option<usize> {
        if whole { self.first(bytes) } else { self.next(bytes) }
    }

    /// See [`Format::cut`](super::Format::cut). Walks from record to record; a format that can jump does.
    fn cut(self, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
        let (mut at, mut cut) = (0, 0);
        while let Some(len) = self.next(&bytes[at..]) {
            at += len;
            if at - cut >= piece {
                cuts.push(at);
                cut = at;
            }
        }
        if at > cut {
            cuts.push(at);
        }
    }
}
