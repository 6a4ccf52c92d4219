//! The order of events of `sort --consume`, whatever was interrupted before.
//!
//! ```text
//!            begin          sort          remove inputs         deliver            end
//!   nothing ──────► sorting ──────► sorted ──────────────► removed ──────► delivered ──────► nothing
//!                   records are in   the view has    the inputs are gone;   the result
//!                   runs and inputs  every record    nothing of theirs is   has its name
//!                                                    removed any more
//! ```
//!
//! Every arrow is durable before the next one starts, and every step can be repeated. So a command
//! that finds the folder of an earlier one looks at the phase in its journal and continues there:
//!
//! | found | the same command | another command |
//! |---|---|---|
//! | nothing | begins | begins |
//! | sorting | checks that the inputs are the same files, unchanged but for what was given back; continues | refuses |
//! | sorted | checks every checksum of the view; removes the inputs that are still the same, unchanged files; continues | refuses |
//! | removed | checks every checksum before the result gets its name; delivers | refuses |
//! | delivered | removes what is left of the folder | refuses |
//!
//! Before the first byte of an input is given back, the input is *claimed*: renamed to a hidden name
//! next to its own. From then on no other program takes it for a whole file, a new file can have its
//! name, and only the hidden name is ever removed.
//!
//! A file that took an input's name after the work began is a *stranger*. It is never read and never
//! removed: the earlier work is finished, and then the command fails and says so. `model.rs` walks
//! through every state, crash and next command.

use merganser_sort::journal::SortPhase;

/// The state of the work, from its folder of unfinished work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkProgress {
    /// No work was begun, or all has ended.
    Nothing,
    /// Work of this same command, and how far it is.
    Ours(SortPhase),
    /// Work of another command.
    Other,
}

/// The file that has an input's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputState {
    /// The file that was sorted, unchanged but for what the sort did, under its own name or the
    /// hidden one.
    Input,
    /// The file that was sorted, and that was written to since.
    Written,
    /// Another file.
    Stranger,
    /// No file.
    Missing,
}

/// The reason for which the command can't succeed. It has removed no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConsumeRefusal {
    /// The folder holds the work of another command.
    OtherWork,
    /// Something was written to this input after it was read.
    Written(usize),
    /// The earlier work is finished; this input is a newer file, which was not read.
    NotRead(usize),
}

/// The steps. Each is durable when it returns, and may be repeated after a crash in its middle.
pub(super) trait ConsumeSteps {
    /// The error of a failed step.
    type Error;

    /// Reads the state of the work from its folder.
    fn begun(&self) -> Result<WorkProgress, Self::Error>;

    /// How many inputs there are.
    fn inputs(&self) -> usize;

    /// Compares the file at an input's hidden name with the journal. If there is no such file, the
    /// file at the input's own name is compared.
    fn look(&self, input: usize) -> Result<InputState, Self::Error>;

    /// Whether a file that is not the result has the name of this input.
    fn has_stranger(&self, input: usize) -> Result<bool, Self::Error>;

    /// Whether the result takes the name of this input.
    fn is_output(&self, input: usize) -> bool;

    /// Checks everything that could keep the command from ending, then writes the journal.
    fn begin(&mut self) -> Result<(), Self::Error>;

    /// Sorts the rest of the inputs, and refuses inputs that are not the files of the journal. At the
    /// end the phase is [`SortPhase::Sorted`].
    fn sort(&mut self) -> Result<(), Self::Error>;

    /// Checks the checksums of an earlier command's files, unless a later step reads these files
    /// completely. A crash may have damaged them, and they will replace the inputs.
    fn verify(&self) -> Result<(), Self::Error>;

    /// Removes an input that was just looked at, by its hidden name.
    fn remove_input(&mut self, input: usize) -> Result<(), Self::Error>;

    /// Notes [`SortPhase::Removed`], once the removal of the inputs is durable.
    fn removed(&mut self) -> Result<(), Self::Error>;

    /// Gives the result its name. It replaces only the file that had the name at the beginning.
    fn deliver(&mut self) -> Result<(), Self::Error>;

    /// Notes [`SortPhase::Delivered`].
    fn delivered(&mut self) -> Result<(), Self::Error>;

    /// Removes the journal and the folder.
    fn end(&mut self) -> Result<(), Self::Error>;

    /// The error for a refusal.
    fn refuse(&self, refusal: ConsumeRefusal) -> Self::Error;
}

/// Takes the remaining steps.
///
/// # Errors
/// Errors of the steps, and refusals.
pub(super) fn run<S: ConsumeSteps>(steps: &mut S) -> Result<(), S::Error> {
    let mut phase = match steps.begun()? {
        WorkProgress::Other => return Err(steps.refuse(ConsumeRefusal::OtherWork)),
        WorkProgress::Ours(phase) => {
            if matches!(phase, SortPhase::Sorted | SortPhase::Removed) {
                steps.verify()?;
            }
            phase
        }
        WorkProgress::Nothing => {
            steps.begin()?;
            SortPhase::Sorting
        }
    };
    if phase == SortPhase::Sorting {
        steps.sort()?;
        phase = SortPhase::Sorted;
    }
    if phase == SortPhase::Sorted {
        let found = look_at_all(steps)?;
        if let Some(input) = found.iter().position(|found| *found == InputState::Written) {
            return Err(steps.refuse(ConsumeRefusal::Written(input)));
        }
        for (input, _) in found.iter().enumerate().filter(|(_, found)| **found == InputState::Input)
        {
            steps.remove_input(input)?;
        }
        steps.removed()?;
    }
    // If the result takes an input's name, `deliver` itself finds a foreign file there. A file that is
    // there afterwards is the result, or came later.
    let mut stranger = first_stranger(steps, false)?;
    if phase < SortPhase::Delivered {
        steps.deliver()?;
        steps.delivered()?;
    }
    if stranger.is_none() {
        stranger = first_stranger(steps, true)?;
    }
    steps.end()?;
    match stranger {
        Some(input) => Err(steps.refuse(ConsumeRefusal::NotRead(input))),
        None => Ok(()),
    }
}

fn first_stranger<S: ConsumeSteps>(steps: &S, outputs: bool) -> Result<Option<usize>, S::Error> {
    for input in (0..steps.inputs()).filter(|input| steps.is_output(*input) == outputs) {
        if steps.has_stranger(input)? {
            return Ok(Some(input));
        }
    }
    Ok(None)
}

fn look_at_all<S: ConsumeSteps>(steps: &S) -> Result<Vec<InputState>, S::Error> {
    (0..steps.inputs()).map(|input| steps.look(input)).collect()
}
