package io.merganser.hadoop.defer;

/**
 * A reason not to defer a merge, with its details.
 *
 * @param reason the reason, which is counted
 * @param detail the facts, for the log
 */
public record Refusal(StockReason reason, String detail) {}
