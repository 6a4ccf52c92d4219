//! The map on nodes: each runs the SSDlet over its own files, and the rows are merged here.

use std::path::Path;

use merganser_flight::client::{CertificateFault, ClientError, NodeAddress, RefusalKind};
use merganser_flight::farm::{self, FarmError};
use merganser_map::{MapReport, RowSink};
use merganser_serve::session::OpenedSession;
use merganser_serve::session::request::{OpenRequest, SessionRange};
use merganser_sort::Progress;
use serde_json::Value;

use crate::command::serve;
use crate::config::{MapConfig, Nodes, ProgramName};
use crate::sentences::Told;
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::signals::Cancel;

/// An SSDlet that is open on every node.
pub(super) struct NodeFarm {
    farm: farm::SessionFarm,
    ranges: Vec<SessionRange>,
}

impl NodeFarm {
    /// Opens the SSDlet `name` on `nodes`. A guest in a file is sent to the nodes that lack it.
    ///
    /// # Errors
    /// The first failure of a node, which is named; a file that can't be read.
    pub(super) fn open(
        nodes: &Nodes,
        config: &MapConfig,
        name: &ProgramName,
        args: &Value,
        cancel: &Cancel,
    ) -> Result<Self, Failure> {
        let token = nodes.token_file.as_deref().map(serve::token).transpose()?;
        let read = |path: &Path| std::fs::read(path).map_err(|e| Failure::on(path, &e));
        let ca = nodes.ca.as_deref().map(read).transpose()?;
        let address = |address: &String| NodeAddress {
            address: address.clone(),
            token: token.clone(),
            ca: ca.clone(),
        };
        let addresses: Vec<_> = nodes.addresses.iter().map(address).collect();
        let module = match name {
            ProgramName::Wasm(path) => Some(module(path)?),
            ProgramName::Builtin(_) | ProgramName::OfNodes(_) => None,
        };
        let open = OpenRequest {
            ssdlet: match name {
                ProgramName::Builtin(name) | ProgramName::OfNodes(name) => Some(name.clone()),
                ProgramName::Wasm(_) => None,
            },
            sha256: module.as_deref().map(merganser_flight::sha256),
            args: args.clone(),
            memory: nodes.memory_bytes,
            threads: nodes.threads,
            fuel_per_byte: config.limits.fuel_per_byte,
            time_limit: config.limits.call_time.map(|time| time.as_secs_f64()),
            guest_memory: config.limits.memory_bytes,
        };
        let opened =
            farm::SessionFarm::open(&addresses, &open, module.as_deref(), &|| cancel.is_set());
        let ranges = config.inputs.iter().filter_map(|input| match input {
            Input::File(path) => path.to_str().map(SessionRange::of_path),
            Input::Stdin => None,
        });
        Ok(NodeFarm { farm: opened.map_err(failure)?, ranges: ranges.collect() })
    }

    /// What the nodes said about the SSDlet.
    pub(super) fn opened(&self) -> &OpenedSession {
        self.farm.opened()
    }

    /// Maps. A node that fails is named, and there is no result.
    ///
    /// # Errors
    /// The first failure of a node; the sink's own.
    pub(super) fn map(
        self,
        sink: &mut dyn RowSink,
        progress: &dyn Progress,
    ) -> Result<MapReport, Failure> {
        let report = self.farm.map(&self.ranges, sink, progress).map_err(failure)?;
        let sum = |of: fn(&merganser_serve::session::SessionStatus) -> u64| {
            report.nodes.iter().map(of).sum()
        };
        Ok(MapReport {
            input_bytes: sum(|status| status.bytes_done),
            rows: report.rows,
            output_bytes: sum(|status| status.output_bytes),
            metered: sum(|status| status.metered),
            ..MapReport::default()
        })
    }
}

/// The bytes of a guest.
fn module(path: &Path) -> Result<Vec<u8>, Failure> {
    let most = merganser_wasm::WasmLimits::default();
    let bytes = crate::command::ssdlet::read(path, most.module_bytes)?;
    // Options that no node takes are refused before a node is asked.
    match merganser_wasm::Declared::of_module(&bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(crate::command::ssdlet::failure(path, error)),
    }
}

fn failure(error: FarmError) -> Failure {
    match error {
        FarmError::Rows(error) => error.told(),
        FarmError::Cancelled => Failure::Cancelled,
        FarmError::Guest {
            source: ClientError::Refused { why: RefusalKind::Forbidden, .. },
            ref node,
        } => Failure::from(format!(
            "{node}: it does not have this SSDlet and takes none from clients; start the node with --allow-upload, or name one of its own"
        )),
        FarmError::Node { ref source, .. } => {
            let remedy = match source {
                ClientError::WantsTls => "; give --ca with the authority of its certificate",
                ClientError::Refused { why: RefusalKind::Unknown, .. } => {
                    "; give --token-file with the token of the node"
                }
                ClientError::Certificate(CertificateFault::OtherAuthority) => {
                    "; give --ca with the certificate of the authority that signed it"
                }
                ClientError::Certificate(CertificateFault::OtherName) => {
                    "; name the node in --on as its certificate does"
                }
                ClientError::Certificate(CertificateFault::IsAuthority) => {
                    "; docs/near/serve.md shows how to make both"
                }
                _ => "",
            };
            Failure::from(format!("{error}{remedy}"))
        }
        error => Failure::from(error.to_string()),
    }
}
