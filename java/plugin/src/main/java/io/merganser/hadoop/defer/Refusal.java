package io.merganser.hadoop.defer;

/**
 * A reason with what was found.
 *
 * @param reason the reason, which is counted
 * @param detail what was found, for the log
 */
public record Refusal(StockReason reason, String detail) {}
