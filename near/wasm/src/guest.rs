//! A guest that was started: one store, its functions, and each call within its limits.
//!
//! ```text
//!   start ─► _initialize ─► mgs_abi ─► mgs_args ─► mgs_open ─► (mgs_buffer ─► mgs_chunk)* ─► mgs_close
//!            └──────────────── one allowance of fuel ──────┘    an allowance for each         one
//! ```

use std::sync::Arc;

use merganser_map::ssdlet::{Chunk, Emitter, SsdletError};
use wasmtime::{Error, Instance, Memory, Store, Trap, TypedFunc, WasmParams, WasmResults};

use crate::answers::AnswerForm;
use crate::engine::TICK;
use crate::limits::WasmLimits;
use crate::module::Compiled;
use crate::state::{GuestPhase, GuestState};
use crate::{ABI, scope};

/// Bytes behind a chunk that a guest may read; they are zero.
const BEHIND: usize = 16;
/// A guest is asked for room in multiples of this, so that chunks of about one length need one buffer.
const ROOM_STEP: usize = 4096;

/// A started guest.
pub(crate) struct Guest {
    store: Store<GuestState>,
    limits: WasmLimits,
    memory: Memory,
    buffer: TypedFunc<u32, u32>,
    chunk: TypedFunc<(u32, u32), i32>,
    close: Option<TypedFunc<(), i32>>,
    /// Where the guest takes chunks, and how much fits there.
    at: usize,
    room: usize,
    /// Fuel that is left of the current allowance, and what was used of earlier ones.
    allowance: u64,
    metered: u64,
    /// Nothing is called once a call has failed.
    is_broken: bool,
    /// Its module, which counts as used as long as the guest is there.
    _compiled: Arc<Compiled>,
}

impl Guest {
    /// Starts a guest and gives it its arguments.
    ///
    /// # Errors
    /// Whatever it does wrong until then, arguments that it refuses, no memory.
    pub(crate) fn start(
        compiled: Arc<Compiled>,
        args: &[u8],
        limits: &WasmLimits,
    ) -> Result<Self, SsdletError> {
        let memory_bytes = compiled.declared.memory_within(limits)?;
        let answers = AnswerForm::of_output(&compiled.declared.output);
        let name = compiled.declared.name.clone();
        let state = GuestState::new(name.clone(), answers, memory_bytes);
        let no_store =
            |error: Error| crate::failed(&name, format_args!("it can't be started: {error}"));
        let mut store =
            Store::try_new(compiled.instance.module().engine(), state).map_err(no_store)?;
        store.limiter(|state| state);
        let allowance = WasmLimits::FUEL_BASE;
        store.set_fuel(allowance).map_err(no_store)?;
        if let Some(most) = limits.call_time {
            store.set_epoch_deadline(ticks(most));
        }
        let started = compiled.instance.instantiate(&mut store);
        let instance = started.map_err(|error| ended(&mut store, "its start", &error, limits))?;
        let mut guest = Self::of_store(store, instance, limits.clone(), allowance, compiled)
            .map_err(no_store)?;
        guest.begin(instance, args)?;
        Ok(guest)
    }

    fn of_store(
        mut store: Store<GuestState>,
        instance: Instance,
        limits: WasmLimits,
        allowance: u64,
        compiled: Arc<Compiled>,
    ) -> wasmtime::Result<Self> {
        let no_memory = || Error::msg("it exports no memory");
        let memory = instance.get_memory(&mut store, "memory").ok_or_else(no_memory)?;
        store.data_mut().memory = Some(memory);
        Ok(Guest {
            memory,
            buffer: instance.get_typed_func(&mut store, "mgs_buffer")?,
            chunk: instance.get_typed_func(&mut store, "mgs_chunk")?,
            close: optional(&mut store, instance, "mgs_close")?,
            store,
            limits,
            at: 0,
            room: 0,
            allowance,
            metered: 0,
            is_broken: false,
            _compiled: compiled,
        })
    }

    /// The calls before the first chunk. They share the fuel of the start.
    fn begin(&mut self, instance: Instance, args: &[u8]) -> Result<(), SsdletError> {
        let no_function = |error: Error| SsdletError::Failed(error.to_string());
        let store = &mut self.store;
        let initialize = optional::<(), ()>(store, instance, "_initialize").map_err(no_function)?;
        let abi =
            instance.get_typed_func::<(), i32>(&mut *store, "mgs_abi").map_err(no_function)?;
        let take = optional::<u32, u32>(store, instance, "mgs_args").map_err(no_function)?;
        let open = optional::<(), i32>(store, instance, "mgs_open").map_err(no_function)?;
        if let Some(initialize) = initialize {
            self.call("_initialize", &initialize, ())?;
        }
        let version = self.call("mgs_abi", &abi, ())?;
        if version != ABI {
            return Err(
                self.fault(format!("mgs_abi says version {version}, and its section says {ABI}"))
            );
        }
        self.store.data_mut().phase = GuestPhase::Args;
        match take {
            Some(take) => {
                let len = u32::try_from(args.len())
                    .map_err(|_| self.fault("its arguments have 4 GiB or more".to_owned()))?;
                let at = self.call("mgs_args", &take, len)?;
                if at == 0 && len > 0 {
                    return Err(self.fault(format!("it has no room for {len} bytes of arguments")));
                }
                self.write("mgs_args", at as usize, args, 0)?;
            }
            None if !args.is_empty() => {
                return Err(self.fault("it takes no arguments (it exports no mgs_args)".to_owned()));
            }
            None => {}
        }
        if let Some(open) = open {
            let status = self.call("mgs_open", &open, ())?;
            if status != 0 {
                return Err(
                    self.fault(format!("it refuses its arguments (mgs_open gave {status})"))
                );
            }
        }
        self.store.data_mut().phase = GuestPhase::Chunk;
        Ok(())
    }

    /// Gives the guest a chunk.
    ///
    /// # Errors
    /// Whatever it does wrong.
    pub(crate) fn chunk(
        &mut self,
        chunk: Chunk<'_>,
        out: &mut Emitter<'_>,
    ) -> Result<(), SsdletError> {
        let len = chunk.bytes.len();
        self.allow(self.limits.chunk_fuel(len as u64))?;
        self.make_room(len)?;
        let (at, called) = (self.at, self.chunk.clone());
        self.write("mgs_buffer", at, chunk.bytes, BEHIND)?;
        let status =
            scope::within(chunk, out, || self.call("mgs_chunk", &called, (at as u32, len as u32)));
        // The place of a trap is worth more than its name.
        let status = status.map_err(|error| match error {
            SsdletError::Failed(sentence) => {
                let (from, input) = (chunk.offset, chunk.input);
                let to = from.saturating_add(len as u64);
                SsdletError::Failed(format!("{sentence} (bytes {from} to {to} of input {input})"))
            }
            other => other,
        })?;
        self.check_status("mgs_chunk", status)
    }

    /// Tells the guest that its last chunk was that.
    ///
    /// # Errors
    /// Whatever it does wrong.
    pub(crate) fn close(&mut self, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        let Some(close) = self.close.take() else { return Ok(()) };
        self.allow(self.limits.close_fuel())?;
        self.store.data_mut().phase = GuestPhase::Close;
        let nothing = Chunk { input: 0, offset: 0, bytes: &[] };
        let status = scope::within(nothing, out, || self.call("mgs_close", &close, ()))?;
        self.check_status("mgs_close", status)
    }

    /// Fuel that was used since the last call of this.
    pub(crate) fn meter(&mut self) -> u64 {
        self.meter_fuel();
        std::mem::take(&mut self.metered)
    }

    /// Sees to it that `len` bytes fit into the guest's buffer.
    fn make_room(&mut self, len: usize) -> Result<(), SsdletError> {
        if len <= self.room && self.room > 0 {
            return Ok(());
        }
        let room = len.max(1).next_multiple_of(ROOM_STEP);
        let asked = u32::try_from(room).map_err(|_| {
            self.fault(format!("a chunk of {len} bytes does not fit into any guest"))
        })?;
        let at = self.call("mgs_buffer", &self.buffer.clone(), asked)? as usize;
        if at == 0 {
            return Err(self.fault(format!("it has no room for a chunk of {room} bytes")));
        }
        let end = at.checked_add(room).and_then(|end| end.checked_add(BEHIND));
        if end.is_none_or(|end| end > self.memory.data_size(&self.store)) {
            return Err(self.fault(format!(
                "mgs_buffer gave address {at} for {room} bytes and {BEHIND} behind them, outside of its memory"
            )));
        }
        (self.at, self.room) = (at, room);
        Ok(())
    }

    /// Copies `bytes`, and `zeros` zeros, to `at` in the guest's memory.
    fn write(
        &mut self,
        of: &str,
        at: usize,
        bytes: &[u8],
        zeros: usize,
    ) -> Result<(), SsdletError> {
        let memory = self.memory.data_mut(&mut self.store);
        let place = memory.get_mut(at..).and_then(|rest| rest.get_mut(..bytes.len() + zeros));
        let Some(place) = place else {
            let len = bytes.len();
            return Err(self
                .fault(format!("{of} gave address {at} for {len} bytes, outside of its memory")));
        };
        let (front, behind) = place.split_at_mut(bytes.len());
        front.copy_from_slice(bytes);
        behind.fill(0);
        Ok(())
    }

    /// Gives the guest `fuel` for what follows, and no more.
    fn allow(&mut self, fuel: u64) -> Result<(), SsdletError> {
        if self.is_broken {
            return Err(self.fault("it has failed before".to_owned()));
        }
        self.meter_fuel();
        self.allowance = fuel;
        let set = self.store.set_fuel(fuel);
        set.map_err(|error| self.fault(error.to_string()))
    }

    /// Adds what was used to the meter.
    fn meter_fuel(&mut self) {
        let left = self.store.get_fuel().unwrap_or(0);
        self.metered = self.metered.saturating_add(self.allowance.saturating_sub(left));
        self.allowance = left;
    }

    fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        name: &str,
        function: &TypedFunc<P, R>,
        params: P,
    ) -> Result<R, SsdletError> {
        if let Some(most) = self.limits.call_time {
            self.store.set_epoch_deadline(ticks(most));
        }
        function.call(&mut self.store, params).map_err(|error| {
            self.is_broken = true;
            ended(&mut self.store, name, &error, &self.limits)
        })
    }

    fn check_status(&mut self, name: &str, status: i32) -> Result<(), SsdletError> {
        match status {
            0 => Ok(()),
            status => Err(self.fault(format!("{name} gave {status}"))),
        }
    }

    /// The guest is at fault, and is not called again.
    fn fault(&mut self, detail: String) -> SsdletError {
        self.is_broken = true;
        let state = self.store.data_mut();
        state.fault = None;
        state.refuse(detail);
        state.fault.take().expect("just noted")
    }
}

fn optional<P: WasmParams, R: WasmResults>(
    store: &mut Store<GuestState>,
    instance: Instance,
    name: &str,
) -> wasmtime::Result<Option<TypedFunc<P, R>>> {
    match instance.get_func(&mut *store, name) {
        Some(function) => function.typed(&*store).map(Some),
        None => Ok(None),
    }
}

/// Steps of the clock after which `most` has passed for certain.
fn ticks(most: std::time::Duration) -> u64 {
    let ticks = most.as_nanos().div_ceil(TICK.as_nanos());
    // Half of the range: the engine adds it to the steps so far.
    u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(1).min(u64::MAX / 2)
}

/// Why a call ended: the host's reason if there is one, else the trap.
fn ended(
    store: &mut Store<GuestState>,
    call: &str,
    error: &Error,
    limits: &WasmLimits,
) -> SsdletError {
    if let Some(fault) = store.data_mut().fault.take() {
        return fault;
    }
    let detail = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => {
            let per_byte = limits.fuel_per_byte;
            format!(
                "{call} used up its fuel, {per_byte} units for a byte of the chunk: it may loop without end, or need more"
            )
        }
        Some(Trap::Interrupt) => {
            let most = limits.call_time.unwrap_or_default();
            format!("{call} took longer than {most:?}")
        }
        Some(Trap::StackOverflow) => format!("{call} calls itself too deeply"),
        Some(Trap::UnreachableCodeReached) => {
            format!("{call} gave up (an unreachable instruction)")
        }
        Some(trap) => {
            let text = trap.to_string();
            format!("{call} failed: {}", text.trim_start_matches("wasm trap: "))
        }
        None => {
            format!("{call} failed: {}", crate::plain(error.root_cause().to_string().as_bytes()))
        }
    };
    crate::failed(store.data().name(), detail)
}
