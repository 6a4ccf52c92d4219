//! What the host knows about a guest while the guest's code runs. The functions that a guest calls get it.

use merganser_map::ssdlet::SsdletError;
use wasmtime::{Error, Memory, ResourceLimiter};

use crate::answers::AnswerForm;
use crate::limits::WasmLimits;

/// What the host knows about a guest while the guest's code runs.
pub(crate) struct GuestState {
    name: String,
    answers: AnswerForm,
    memory_bytes: u64,
    pub memory: Option<Memory>,
    /// Where the host's calls are.
    pub phase: GuestPhase,
    /// Why the guest is ended, if it is the host that ends it.
    pub fault: Option<SsdletError>,
}

/// Which calls a guest is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestPhase {
    Start,
    Args,
    Chunk,
    Close,
}

impl GuestState {
    /// That of a guest that is to be started.
    pub(crate) fn new(name: String, answers: AnswerForm, memory_bytes: u64) -> Self {
        let phase = GuestPhase::Start;
        GuestState { name, answers, memory_bytes, memory: None, phase, fault: None }
    }

    /// The SSDlet's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How its answers are read.
    pub(crate) fn answers(&self) -> &AnswerForm {
        &self.answers
    }

    /// Whether the last chunk is behind it.
    pub(crate) fn is_closing(&self) -> bool {
        self.phase == GuestPhase::Close
    }

    /// The guest's memory.
    ///
    /// # Errors
    /// While the module is started, it is not known yet.
    pub(crate) fn memory(&mut self) -> wasmtime::Result<Memory> {
        match self.memory {
            Some(memory) => Ok(memory),
            None => Err(self.refuse("it called the host while it was started".to_owned())),
        }
    }

    /// Ends the guest for a fault of its own; the result is the trap.
    pub(crate) fn refuse(&mut self, detail: String) -> Error {
        let ssdlet = self.name();
        let fault = match self.phase {
            GuestPhase::Args => SsdletError::Args { ssdlet: ssdlet.to_owned(), detail },
            GuestPhase::Start | GuestPhase::Chunk | GuestPhase::Close => {
                crate::failed(ssdlet, detail)
            }
        };
        self.end_with(fault)
    }

    /// Ends the guest with `fault`; the result is the trap.
    pub(crate) fn end_with(&mut self, fault: SsdletError) -> Error {
        self.fault.get_or_insert(fault);
        Error::msg("the host ended the guest")
    }
}

impl ResourceLimiter for GuestState {
    fn memory_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired as u64 <= self.memory_bytes {
            return Ok(true);
        }
        let most = self.memory_bytes;
        Err(self.refuse(format!("it wants {desired} bytes of memory; it declares {most}")))
    }

    fn memory_grow_failed(&mut self, error: Error) -> wasmtime::Result<()> {
        Err(self.refuse(format!("its memory can't grow: {error}")))
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired <= WasmLimits::TABLE_ELEMENTS {
            return Ok(true);
        }
        let most = WasmLimits::TABLE_ELEMENTS;
        Err(self.refuse(format!("it wants a table of {desired} elements; {most} is the most")))
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        2
    }

    fn memories(&self) -> usize {
        1
    }
}
