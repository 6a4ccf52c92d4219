package io.merganser.hadoop.service;

import java.io.IOException;

/** The merge process works, but doesn't do this merge. */
final class DeclinedException extends IOException {
  private static final long serialVersionUID = 1L;

  DeclinedException(String message) {
    super(message);
  }
}
