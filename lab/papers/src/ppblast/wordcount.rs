//! Table 4.1 and Figure 4.5: word count and string match of Phoenix with partition and merge.
//!
//! Chapter 3 has the same experiment as McSD's own, and `mcsd-partition` measures it. This is its name in
//! chapter 4.

use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::mcsd::partition;
use crate::outcome::Outcome;

/// Measures both sizes of the table.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let mut outcome = partition::run_as(lab, "ppblast-wordcount")?;
    outcome.differs.push(
        "Figure 4.5 calls this an intra-application pipeline, but its text has the partitions \"processed sequentially\": nothing overlaps, and the gain is that a partition fits in memory. This is the experiment mcsd-partition."
            .to_owned(),
    );
    Ok(outcome)
}
