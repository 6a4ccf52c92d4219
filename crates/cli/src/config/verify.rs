//! The settings of `merganser verify`.

use std::path::PathBuf;

use merganser_sort::key::OrderSpec;

use super::{memory_bytes, order, threads};
use crate::args::VerifyArgs;
use crate::failure::Failure;
use crate::input::Input;

/// The subject of a check, and the form of its result.
#[derive(Debug)]
pub struct VerifyConfig {
    /// The subject of the check.
    pub subject: VerifySubject,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads merge a view.
    pub threads: usize,
    /// Whether to print JSON.
    pub json: bool,
    /// Whether a compressed input is read as what it holds.
    pub decompress: bool,
    /// No bar.
    pub quiet: bool,
}

/// The subject of a check.
#[derive(Debug)]
pub enum VerifySubject {
    /// Records in this order.
    Records(Input, OrderSpec),
    /// A view, in its own.
    View(PathBuf),
}

impl TryFrom<VerifyArgs> for VerifyConfig {
    type Error = Failure;

    fn try_from(typed: VerifyArgs) -> Result<Self, Failure> {
        let order = order(&typed.order)?;
        let subject = if typed.input.is_dir() {
            if order != self::order(&Default::default())? {
                let view = typed.input.display();
                return Err(format!(
                    "{view}: a view has a format and key of its own; leave out yours"
                )
                .into());
            }
            VerifySubject::View(typed.input)
        } else {
            VerifySubject::Records(Input::named(&typed.input), order)
        };
        let memory_bytes = memory_bytes(typed.memory)?;
        Ok(VerifyConfig {
            subject,
            memory_bytes,
            threads: threads(None)?,
            json: typed.json,
            decompress: !typed.no_decompress,
            quiet: typed.quiet,
        })
    }
}
