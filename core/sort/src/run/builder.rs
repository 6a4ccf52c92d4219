//! A run from records that come in order.

use std::sync::Arc;

use merganser_storage::Buffer;

use super::format::PIECE_BYTES;
use super::piece::Piece;
use super::write_behind::WriteBehind;
use super::{Run, RunWriter};
use crate::Result;
use crate::key::Order;
use crate::record::{Framing, with_framing};

/// Writes one run from records that come in order: the output of a merge pass.
pub struct RunBuilder {
    writer: RunWriter,
    behind: WriteBehind,
    piece: Option<Piece>,
    number: u64,
    records: u64,
    order: Order,
}

impl RunBuilder {
    /// Records come in the order of `order`.
    ///
    /// # Errors
    /// When the system has no memory for the buffers.
    pub fn new(writer: RunWriter, order: Order) -> Result<Self> {
        let buffers =
            (0..4).map(|_| Buffer::try_new(PIECE_BYTES)).collect::<std::io::Result<_>>()?;
        let behind = WriteBehind::new(Arc::clone(writer.storage()), buffers);
        Ok(RunBuilder { writer, behind, piece: None, number: 0, records: 0, order })
    }

    /// Appends whole records, end to end.
    ///
    /// # Errors
    /// The storage's own.
    pub fn append(&mut self, records: &[u8]) -> Result<()> {
        let format = self.order.format();
        with_framing!(format, framing => {
            let mut rest = records;
            while let Some(len) = framing.first(rest) {
                let (record, after) = rest.split_at(len);
                self.push(record)?;
                rest = after;
            }
            assert!(rest.is_empty(), "whole records are appended");
        });
        Ok(())
    }

    fn push(&mut self, record: &[u8]) -> Result<()> {
        let mut rest = record;
        while !rest.is_empty() {
            let mut piece = match self.piece.take() {
                Some(piece) => piece,
                None => Piece::new(self.behind.buffer()?, self.writer.block_bytes()),
            };
            if rest.len() == record.len() {
                piece.begin_record(self.records, |key| self.order.encode_full(record, key));
            }
            rest = &rest[piece.fill(rest)..];
            if piece.space() == 0 {
                self.writer.place(self.number, piece, &mut self.behind)?;
                self.number += 1;
            } else {
                self.piece = Some(piece);
            }
        }
        self.records += 1;
        Ok(())
    }

    /// Ends the run; see [`RunWriter::finish`].
    ///
    /// # Errors
    /// The storage's own.
    pub fn finish(mut self, spec: &str, durable: bool) -> Result<Run> {
        if let Some(piece) = self.piece.take() {
            self.writer.place(self.number, piece, &mut self.behind)?;
        }
        self.behind.drain()?;
        self.writer.finish(spec, self.records, durable)
    }
}
