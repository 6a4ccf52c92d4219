//! The map on nodes: each runs the SSDlet over its own files, and the rows are merged here.

use merganser_node::map::{MapOutput, MapReport};
use merganser_sort::Progress;

use crate::config::{MapConfig, Nodes};
use crate::failure::Failure;

/// Maps on `nodes`. A node that fails is named, and there is no result.
///
/// # Errors
/// The first failure of a node; the output's own.
#[cfg(feature = "flight")]
pub(super) fn run(
    nodes: &Nodes,
    config: &MapConfig,
    output: MapOutput<'_>,
    progress: &dyn Progress,
) -> Result<MapReport, Failure> {
    use merganser_flight::client::NodeAddress;
    use merganser_flight::farm::{FarmError, map};
    use merganser_node::session::request::{OpenRequest, Range};

    use crate::command::serve;
    use crate::config::{Program, ProgramName};
    use crate::input::Input;

    let Program::Ssdlet { name: ProgramName::Builtin(name), args } = &config.program else {
        unreachable!("refused before");
    };
    let MapOutput::Rows(sink) = output else { unreachable!("refused before") };
    let token = nodes.token_file.as_deref().map(serve::token).transpose()?;
    let read = |path: &std::path::Path| std::fs::read(path).map_err(|e| Failure::on(path, &e));
    let ca = nodes.ca.as_deref().map(read).transpose()?;
    let addresses = nodes.addresses.iter().cloned();
    let addresses: Vec<_> = addresses
        .map(|address| NodeAddress { address, token: token.clone(), ca: ca.clone() })
        .collect();
    let args = args.as_object().cloned().unwrap_or_default();
    let open = OpenRequest { ssdlet: Some(name.clone()), args, ..OpenRequest::default() };
    let ranges: Vec<_> = config
        .inputs
        .iter()
        .filter_map(|input| match input {
            Input::File(path) => path.to_str().map(Range::of),
            Input::Stdin => None,
        })
        .collect();
    progress.phase("mapping on nodes", None);
    let done = map(&addresses, &open, &ranges, sink, &|| progress.cancelled());
    let report = done.map_err(|error| match error {
        FarmError::Rows(error) => error.into(),
        FarmError::Cancelled => Failure::Cancelled,
        error => Failure::from(error.to_string()),
    })?;
    let sum = |of: fn(&merganser_node::session::Status) -> u64| report.nodes.iter().map(of).sum();
    Ok(MapReport {
        input_bytes: sum(|status| status.bytes_done),
        rows: report.rows,
        output_bytes: sum(|status| status.output_bytes),
        metered: sum(|status| status.metered),
        ..MapReport::default()
    })
}

#[cfg(not(feature = "flight"))]
pub(super) fn run(
    _nodes: &Nodes,
    _config: &MapConfig,
    _output: MapOutput<'_>,
    _progress: &dyn Progress,
) -> Result<MapReport, Failure> {
    Err("--on: this merganser was built without Arrow Flight (feature flight)".to_owned().into())
}
