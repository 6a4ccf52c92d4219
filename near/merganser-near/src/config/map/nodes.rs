//! The nodes that a map runs on.

use std::net::IpAddr;
use std::path::{Component, PathBuf};

use merganser_map::PartitionSize;
use merganser_shell::config::Destination;
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;

use super::{Choice, MapProgram};

/// The nodes of `--on`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// Each `HOST:PORT`, in the order of the result; at least one.
    pub addresses: Vec<String>,
    /// The file with their token.
    pub token_file: Option<PathBuf>,
    /// The file with the authority that signed their certificates. With it connections are encrypted.
    pub ca: Option<PathBuf>,
    /// Memory that each of them is asked for, in bytes.
    pub memory_bytes: Option<u64>,
    /// Threads that each of them is asked for.
    pub threads: Option<usize>,
}

/// The options of nodes, as they were typed.
#[derive(Debug, Default)]
pub(super) struct TypedNodes {
    pub(super) on: Vec<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) ca: Option<PathBuf>,
    pub(super) insecure: bool,
    pub(super) memory_bytes: Option<u64>,
    pub(super) threads: Option<usize>,
}

impl Nodes {
    /// The nodes that were named; `None` without any.
    ///
    /// # Errors
    /// A name twice, an option of nodes without a node, a token that others could read on its way.
    pub(super) fn new(typed: TypedNodes) -> Result<Option<Self>, Failure> {
        let TypedNodes { on: addresses, token_file, ca, insecure, memory_bytes, threads } = typed;
        if addresses.is_empty() {
            let flag = token_file.map(|_| "--token-file").or(ca.map(|_| "--ca"));
            return match flag.or(insecure.then_some("--insecure")) {
                Some(flag) => Err(format!("{flag}: only with --on").into()),
                None => Ok(None),
            };
        }
        for (at, address) in addresses.iter().enumerate() {
            let parts = address.rsplit_once(':');
            if parts.is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err()) {
                return Err(
                    format!("--on '{address}': write HOST:PORT, such as localhost:7443").into()
                );
            }
            if addresses[..at].contains(address) {
                // Its rows would count twice.
                return Err(format!("--on: {address} is named twice").into());
            }
        }
        let is_plain = token_file.is_some() && ca.is_none() && !insecure;
        let mut others = addresses.iter().filter(|address| !is_this_machine(address));
        if let (true, Some(address)) = (is_plain, others.next()) {
            return Err(format!(
                "--on: the token would cross the network to {address} unencrypted; give --ca, or --insecure"
            )
            .into());
        }
        Ok(Some(Nodes { addresses, token_file, ca, memory_bytes, threads }))
    }
}

/// Whether what is sent to `HOST:PORT` stays on this machine, as far as the name tells.
fn is_this_machine(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// The options that [`refuse_unfit`] looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) program: &'a MapProgram,
    pub(super) inputs: &'a [Input],
    pub(super) destination: &'a Destination,
    pub(super) explain: bool,
    pub(super) partition: PartitionSize,
    /// `--temp-dir` was given.
    pub(super) temp_dir: bool,
    pub(super) choice: Choice,
    /// `--no-decompress` was given.
    pub(super) no_decompress: bool,
}

/// Refuses what can't be done on nodes.
pub(super) fn refuse_unfit(asked: Asked<'_>) -> Result<(), Failure> {
    let refused = if let MapProgram::Matrix { .. } = asked.program {
        Some("--on: not with matrix")
    } else if let Destination::View(_) = asked.destination {
        Some("--view: not with --on; write the rows with -o FILE")
    } else if asked.explain {
        Some("--explain: not with --on; each node decides by itself")
    } else if asked.partition != PartitionSize::Auto {
        Some("--partition-size: not with --on; each node spills when its memory is full")
    } else if asked.temp_dir && asked.choice != Choice::ByValue {
        Some("--temp-dir: with --on, nothing but --order value is written here; leave it out")
    } else if asked.no_decompress {
        Some("--no-decompress: not with --on; nodes read compressed files as what they hold")
    } else {
        None
    };
    if let Some(sentence) = refused {
        return Err(sentence.to_owned().into());
    }
    for input in asked.inputs {
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
    use super::super::ProgramName;
    use super::*;

    #[test]
    fn nodes_are_named_once_and_inputs_are_below_their_data() {
        let named =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let on = |names: &[&str]| TypedNodes { on: named(names), ..TypedNodes::default() };
        assert!(Nodes::new(on(&["a:1", "b:1"])).is_ok());
        assert!(Nodes::new(on(&["a:1", "a:1"])).is_err());
        for address in ["localhost", "localhost:", ":7443", "a:http", "a:65536", "[::1]", ""] {
            let refused = Nodes::new(on(&[address])).expect_err(address);
            assert!(refused.sentence().is_some_and(|told| told.contains("HOST:PORT")), "{address}");
        }
        let token = TypedNodes { token_file: Some("t".into()), ..on(&[]) };
        assert!(Nodes::new(token).is_err());
        assert!(Nodes::new(TypedNodes { insecure: true, ..on(&[]) }).is_err());
        assert_eq!(Nodes::new(on(&[])).ok(), Some(None));
        let wordcount = MapProgram::Ssdlet {
            name: ProgramName::Builtin("wordcount".to_owned()),
            args: serde_json::Value::Null,
        };
        let fits = |input: &str, change: &dyn Fn(&mut Asked<'_>)| {
            let mut asked = Asked {
                program: &wordcount,
                inputs: &[Input::named(input.as_ref())],
                destination: &Destination::Stdout,
                explain: false,
                partition: PartitionSize::Auto,
                temp_dir: false,
                choice: Choice::ByKey,
                no_decompress: false,
            };
            change(&mut asked);
            refuse_unfit(asked).is_ok()
        };
        assert!(fits("logs/a.txt", &|_| {}));
        for bad in ["/etc/passwd", "../a", "a/../b", "-", "./a"] {
            assert!(!fits(bad, &|_| {}), "{bad}");
        }
        assert!(!fits("a", &|asked| asked.explain = true));
        assert!(!fits("a", &|asked| asked.partition = PartitionSize::Whole));
        assert!(!fits("a", &|asked| asked.temp_dir = true));
        assert!(fits("a", &|asked| (asked.temp_dir, asked.choice) = (true, Choice::ByValue)));
    }

    #[test]
    fn a_token_does_not_leave_the_machine_unencrypted() {
        let new = |address: &str, ca: bool, insecure: bool| {
            let typed = TypedNodes {
                on: vec!["127.0.0.1:1".to_owned(), address.to_owned()],
                token_file: Some("t".into()),
                ca: ca.then(|| "c".into()),
                insecure,
                ..TypedNodes::default()
            };
            Nodes::new(typed).map(|_| ())
        };
        for here in ["localhost:2", "[::1]:2", "127.9.9.9:2", "[::ffff:127.0.0.1]:2"] {
            new(here, false, false).expect(here);
        }
        for there in ["host:2", "10.0.0.1:2", "[fe80::1]:2", "localhost.example:2"] {
            let refused = new(there, false, false).expect_err(there);
            assert!(refused.sentence().is_some_and(|told| told.contains(there)), "{refused:?}");
            new(there, true, false).expect("encrypted");
            new(there, false, true).expect("as asked for");
        }
    }
}
