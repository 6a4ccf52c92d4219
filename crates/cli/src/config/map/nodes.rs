//! The nodes that a map runs on.

use std::path::{Component, PathBuf};

use super::{Program, ProgramName};
use crate::config::Destination;
use crate::failure::Failure;
use crate::input::Input;

/// The nodes of `--on`.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "flight"), allow(dead_code, reason = "only a client reads them"))]
pub struct Nodes {
    /// Each `HOST:PORT`, in the order of the result; at least one.
    pub addresses: Vec<String>,
    /// The file with their token.
    pub token_file: Option<PathBuf>,
    /// The file with the authority that signed their certificates. With it connections are encrypted.
    pub ca: Option<PathBuf>,
}

impl Nodes {
    /// The nodes that were named; `None` without any.
    ///
    /// # Errors
    /// A name twice, or an option of nodes without a node.
    pub(super) fn new(
        addresses: Vec<String>,
        token_file: Option<PathBuf>,
        ca: Option<PathBuf>,
    ) -> Result<Option<Self>, Failure> {
        if addresses.is_empty() {
            let flag = token_file.map(|_| "--token-file").or(ca.map(|_| "--ca"));
            return match flag {
                Some(flag) => Err(format!("{flag}: only with --on").into()),
                None => Ok(None),
            };
        }
        for (at, address) in addresses.iter().enumerate() {
            if addresses[..at].contains(address) {
                // Its rows would count twice.
                return Err(format!("--on: {address} is named twice").into());
            }
        }
        Ok(Some(Nodes { addresses, token_file, ca }))
    }
}

/// Refuses what can't be done on nodes.
pub(super) fn refuse_unfit(
    program: &Program,
    inputs: &[Input],
    destination: &Destination,
    explain: bool,
) -> Result<(), Failure> {
    match program {
        Program::Matrix { .. } => return Err("--on: not with matrix".to_owned().into()),
        Program::Ssdlet { name: ProgramName::Wasm(path), .. } => {
            return Err(format!(
                "--on: {} is a file of this machine, and nodes run their own SSDlets; name a built-in one",
                path.display()
            )
            .into());
        }
        Program::Ssdlet { .. } => {}
    }
    if let Destination::View(_) = destination {
        return Err("--view: not with --on; write the rows with -o FILE".to_owned().into());
    }
    if explain {
        return Err("--explain: not with --on; each node decides by itself".to_owned().into());
    }
    for input in inputs {
        let Input::File(path) = input else {
            return Err("-: not with --on; name paths below the --data of the nodes"
                .to_owned()
                .into());
        };
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || path.to_str().is_none() {
            return Err(format!(
                "{}: with --on, inputs are paths below the --data of the nodes, without .. and in UTF-8",
                path.display()
            )
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_named_once_and_inputs_are_below_their_data() {
        let named =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(Nodes::new(named(&["a:1", "b:1"]), None, None).is_ok());
        assert!(Nodes::new(named(&["a:1", "a:1"]), None, None).is_err());
        assert!(Nodes::new(Vec::new(), Some("t".into()), None).is_err());
        assert_eq!(Nodes::new(Vec::new(), None, None).ok(), Some(None));
        let wordcount = Program::Ssdlet {
            name: ProgramName::Builtin("wordcount".to_owned()),
            args: serde_json::Value::Null,
        };
        let fits = |input: &str, to: Destination| {
            refuse_unfit(&wordcount, &[Input::named(input.as_ref())], &to, false).is_ok()
        };
        assert!(fits("logs/a.txt", Destination::Stdout));
        for bad in ["/etc/passwd", "../a", "a/../b", "-", "./a"] {
            assert!(!fits(bad, Destination::Stdout), "{bad}");
        }
        assert!(!fits("a", Destination::View("v".into())));
    }
}
