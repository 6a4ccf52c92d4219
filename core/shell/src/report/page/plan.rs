//! The plan's forecast, compared with the measurement.

use crate::report::plan::ReportedPlan;
use merganser_pages::text;
use merganser_pages::text::Escaped;

/// A section of the page.
pub(super) fn section(plan: &ReportedPlan) -> String {
    let (predicted, measured, ratio) = (&plan.predicted, &plan.measured, &plan.ratio);
    let seconds = |what, predicted, measured, ratio| {
        (what, text::seconds(predicted), text::seconds(measured), ratio)
    };
    let bytes = |what, predicted, measured, ratio| {
        (what, text::bytes(predicted), text::bytes(measured), ratio)
    };
    let rows = [
        seconds("Time", predicted.seconds, measured.seconds, ratio.seconds),
        seconds(
            "Processor time",
            predicted.processor_seconds,
            measured.processor_seconds,
            ratio.processor_seconds,
        ),
        bytes("Read", predicted.read_bytes, measured.read_bytes, ratio.read_bytes),
        bytes("Written", predicted.written_bytes, measured.written_bytes, ratio.written_bytes),
    ];
    let rows: String = rows
        .into_iter()
        .map(|(what, predicted, measured, ratio)| {
            let ratio = ratio.map_or_else(String::new, text::significant);
            format!(
                "<tr><th>{what}</th><td>{predicted}</td><td>{measured}</td><td>{ratio}</td></tr>\n"
            )
        })
        .collect();
    format!(
        "<section>\n<h2>Plan and run</h2>\n<p>Strategy: {} ({}).</p>\n<table>\n<thead><tr><th></th><th>Predicted</th>\
         <th>Measured</th><th>Ratio</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n<p class=\"quiet\">Predicted \
         before the work, with a disk that read {} and wrote {}. Measured bytes are those of inputs, runs or buckets, \
         and output.</p>\n</section>\n",
        plan.strategy,
        Escaped(&plan.reason),
        text::rate(plan.disk_read_rate),
        text::rate(plan.disk_write_rate),
    )
}
