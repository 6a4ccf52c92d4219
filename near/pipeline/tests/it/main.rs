//! Pipelines and the archives of BLAST: one program for all tests, because each program links the crate again.

mod blast_archive; // archives of BLAST, merged
mod pipeline_journal; // the journal of a pipeline: golden bytes, cuts, damage
