//! A guest as an [`Ssdlet`]: what the engine, a server and a modelled device see; and as a [`MapperModule`], what a node keeps
//! for the map tasks of Hadoop.

use std::sync::Arc;
use std::time::Duration;

use merganser_map::ssdlet::{
    Alone, Chunk, Emitter, MapperModule, MemoryLender, Sha256, Ssdlet, SsdletDescription,
    SsdletError, SsdletOutput, Worker,
};
use merganser_sort::record::Format;

use crate::engine::Ticker;
use crate::guest::Guest;
use crate::limits::WasmLimits;
use crate::module::{Compiled, compiled};
use crate::section::Declared;

/// An SSDlet in WebAssembly, opened with its arguments.
pub struct WasmSsdlet {
    compiled: Arc<Compiled>,
    description: SsdletDescription,
    args: Vec<u8>,
    limits: WasmLimits,
    /// The clock, if calls have a limit of time.
    ticker: Option<Arc<Ticker>>,
}

/// Opens the SSDlet that a module is, with `args` (any bytes; most guests take text or JSON).
///
/// The module is compiled unless it is among the last ones, and a guest is started with the arguments, so
/// that both are judged here. That guest is ended again: an SSDlet that is open and does nothing, as in the
/// sessions of a server, holds no memory of guests, which no budget would count. To start one takes some 20 us.
///
/// # Errors
/// A module that is no SSDlet, wants more than `limits` allow, or refuses its arguments
/// ([`SsdletError::Args`]).
pub fn open(bytes: &[u8], args: &[u8], limits: WasmLimits) -> Result<WasmSsdlet, SsdletError> {
    open_within(bytes, args, limits, &Alone { memory_bytes: WasmLimits::COMPILE_BYTES })
}

/// As [`open`], with the memory of `lender` for the compiler; [`open`] has 512 MiB for it.
///
/// # Errors
/// As [`open`]; when the memory is not there.
pub fn open_within(
    bytes: &[u8],
    args: &[u8],
    limits: WasmLimits,
    lender: &dyn MemoryLender,
) -> Result<WasmSsdlet, SsdletError> {
    WasmModule::new(bytes, limits, lender)?.started(args)
}

/// A module that was compiled and checked, and can be opened with any arguments.
pub struct WasmModule {
    compiled: Arc<Compiled>,
    description: SsdletDescription,
    limits: WasmLimits,
}

impl WasmModule {
    /// Compiles a module with the memory of `lender`, and checks what it declares.
    ///
    /// # Errors
    /// As [`describe`].
    pub fn new(
        bytes: &[u8],
        limits: WasmLimits,
        lender: &dyn MemoryLender,
    ) -> Result<Self, SsdletError> {
        let (compiled, description) = verified(bytes, &limits, lender)?;
        Ok(WasmModule { compiled, description, limits })
    }

    fn started(&self, args: &[u8]) -> Result<WasmSsdlet, SsdletError> {
        let WasmModule { compiled, description, limits } = self;
        let ticker = limits.call_time.map(|_| Ticker::shared()).transpose()?;
        Guest::start(compiled.clone(), args, limits)?;
        Ok(WasmSsdlet {
            compiled: compiled.clone(),
            description: description.clone(),
            args: args.to_vec(),
            limits: limits.clone(),
            ticker,
        })
    }
}

impl MapperModule for WasmModule {
    fn sha256(&self) -> Sha256 {
        self.compiled.digest
    }

    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn asks_for_places(&self) -> bool {
        self.compiled.asks_for_places
    }

    fn code_bytes(&self) -> usize {
        self.compiled.code_bytes
    }

    fn open(&self, arguments: &str) -> Result<Box<dyn Ssdlet>, SsdletError> {
        Ok(Box::new(self.started(arguments.as_bytes())?))
    }
}

/// The input and the output of a module. It is compiled and checked, and not started: it may need arguments for
/// that.
///
/// # Errors
/// As [`open_within`], but for what starts a guest.
pub fn describe(
    bytes: &[u8],
    limits: &WasmLimits,
    lender: &dyn MemoryLender,
) -> Result<SsdletDescription, SsdletError> {
    verified(bytes, limits, lender).map(|(_, description)| description)
}

/// Compiles a module and checks what it declares.
fn verified(
    bytes: &[u8],
    limits: &WasmLimits,
    lender: &dyn MemoryLender,
) -> Result<(Arc<Compiled>, SsdletDescription), SsdletError> {
    if bytes.len() > limits.module_bytes {
        let (len, most) = (bytes.len(), limits.module_bytes);
        return Err(SsdletError::Failed(format!(
            "the module has {len} bytes, and {most} is the most; leave debug information out of it"
        )));
    }
    let compiled = compiled(bytes, limits.call_time.is_some(), lender)?;
    let declared = &compiled.declared;
    let description = SsdletDescription {
        name: declared.name.clone(),
        input: declared.input,
        output: declared.output.clone(),
        worker_bytes: declared.memory_within(limits)? + WasmLimits::WORKER_BYTES,
    };
    Ok((compiled, description))
}

impl WasmSsdlet {
    /// SHA-256 of the module.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.compiled.digest
    }

    /// What the module says about itself.
    #[must_use]
    pub fn declared(&self) -> &Declared {
        &self.compiled.declared
    }

    /// Length of the module in bytes.
    #[must_use]
    pub fn module_bytes(&self) -> usize {
        self.compiled.bytes
    }

    /// How long its compilation took, which may have been for an earlier [`open`].
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.compiled.compile_time
    }
}

impl Ssdlet for WasmSsdlet {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    /// A filter of csv says that its output has a header: that of its input.
    fn header(&self, row: &[u8]) -> Result<Vec<u8>, SsdletError> {
        match self.description.output {
            SsdletOutput::Ordered { format: Format::Csv { header: true, .. } } => Ok(row.to_vec()),
            _ => Ok(Vec::new()),
        }
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        let guest = Guest::start(self.compiled.clone(), &self.args, &self.limits)?;
        Ok(Box::new(WasmWorker { guest, _ticker: self.ticker.clone() }))
    }
}

struct WasmWorker {
    guest: Guest,
    /// Keeps the clock running.
    _ticker: Option<Arc<Ticker>>,
}

impl Worker for WasmWorker {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.guest.chunk(chunk, out)
    }

    fn close(&mut self, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.guest.close(out)
    }

    fn meter(&mut self) -> u64 {
        self.guest.meter()
    }
}
