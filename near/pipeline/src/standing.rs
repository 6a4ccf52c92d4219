//! How far a pipeline is, for those who watch it.

/// How far a pipeline is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Bytes that were cut.
    pub cut_bytes: u64,
    /// Bytes of all inputs, if they are known.
    pub total_bytes: Option<u64>,
    /// Partitions that were cut.
    pub cut: usize,
    /// Whether these are all.
    pub all_cut: bool,
    /// Partitions that passed each stage.
    pub passed: Vec<usize>,
}
