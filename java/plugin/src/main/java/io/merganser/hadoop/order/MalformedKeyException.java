package io.merganser.hadoop.order;

/** A serialized key that ends before its fields do: what was read is no key of this order. */
public final class MalformedKeyException extends RuntimeException {
  private static final long serialVersionUID = 1;

  MalformedKeyException(String message) {
    super(message);
  }
}
