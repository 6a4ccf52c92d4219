//! Every format finds where a record ends.

/// Finds record ends; one type a format, so that hot loops are compiled for each.
pub trait Framing: Copy + Send + Sync + 'static {
    /// Length, terminator included, of the record that begins at `bytes[0]`; `None` when it does
    /// not end within `bytes`.
    fn next(self, bytes: &[u8]) -> Option<usize>;

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
