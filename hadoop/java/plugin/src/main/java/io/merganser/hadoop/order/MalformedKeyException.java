package io.merganser.hadoop.order;

/**
 * A serialized key ends before its fields do, or has an impossible number: it isn't of this order.
 */
public final class MalformedKeyException extends RuntimeException {
  private static final long serialVersionUID = 1;

  MalformedKeyException(String message) {
    super(message);
  }
}
