//! The common part of all commands, whichever program they are in.
//!
//! ```text
//!   program     from the first word to the exit status      failure   one sentence and an exit status
//!   args        what was typed                              crash     panics and refused memory: the same
//!   config      what it means                               signals   the end that was asked for
//!   input       files, pipes, what is in them               shown     names and bytes in sentences
//!   output      the output that a name means                standard  standard streams
//!   results     sentences of the library of results         progress  a bar, lines
//!   report      what a command did, as page and as data     outline   the commands of another program
//!   serving     servers of one process, and their heap      version   what --version says
//!   setting     options that variables stand for          space     what file systems have free
//!   service_manager  that a service answers, and ends
//! ```

pub mod apart;
pub mod args;
pub mod config;
pub mod crash;
pub mod failure;
pub mod in_order;
pub mod input;
mod last_words;
pub mod mounting;
pub mod nbd;
pub mod opened;
pub mod outline;
pub mod output;
pub mod patience;
pub mod program;
pub mod progress;
pub mod report;
pub mod results;
pub mod rows;
mod service_manager;
pub mod serving;
pub mod setting;
pub mod shown;
pub mod signals;
pub mod space;
pub mod standard;
mod version;
