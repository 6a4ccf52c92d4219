//! The members of a gzip file.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

use super::PackedBytes;

/// All members, one after the other. Zeros behind the last one are ignored, as gzip ignores them: tapes and block devices
/// add them.
pub(super) struct GzipMembers {
    decoder: GzDecoder<PackedBytes>,
}

impl GzipMembers {
    pub(super) fn new(bytes: PackedBytes) -> Self {
        let mut members = GzipMembers { decoder: GzDecoder::new(Box::new(io::empty())) };
        members.decoder.reset(bytes);
        members
    }

    /// The next member. Its decoder is the same one, because a bgzf file has a member for each 64 KiB.
    fn next(&mut self) {
        let bytes = self.decoder.reset(Box::new(io::empty()));
        self.decoder.reset(bytes);
    }

    fn skip_zeros(&mut self) -> io::Result<()> {
        let bytes = self.decoder.get_mut();
        loop {
            let part = bytes.fill_buf()?;
            if part.is_empty() {
                return Ok(());
            }
            let zeros = part.iter().take_while(|byte| **byte == 0).count();
            let is_all = zeros == part.len();
            bytes.consume(zeros);
            if !is_all {
                let why = "bytes that are no gzip member follow zeros";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
    }
}

impl Read for GzipMembers {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.decoder.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            // The member was whole.
            match self.decoder.get_mut().fill_buf()?.first() {
                None => return Ok(0),
                Some(0) => self.skip_zeros()?,
                Some(_) => self.next(),
            }
        }
    }
}
