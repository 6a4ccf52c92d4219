//! The events of an emulated device for a listener: each request once it has been answered.

use crate::request::DeviceRequest;

/// A request that has been answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedRequest {
    /// Its number in the order of arrival, from 0, without gaps.
    pub number: u64,
    /// The request; its arrival counts from the start of the emulation.
    pub request: DeviceRequest,
    /// From the arrival to the modelled end, in nanoseconds.
    pub modelled_ns: u64,
    /// From the arrival to the answer, in nanoseconds.
    pub real_ns: u64,
    /// Requests in flight when it arrived, itself included.
    pub depth: u32,
}

/// Gets every request, from the thread that answers: it must not wait. The order is that of the
/// answers.
pub type Observer = Box<dyn Fn(ServedRequest) + Send + Sync>;
