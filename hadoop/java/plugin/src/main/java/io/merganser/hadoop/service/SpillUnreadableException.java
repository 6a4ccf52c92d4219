package io.merganser.hadoop.service;

import java.io.IOException;

/** A spill is damaged or gone: the map task has to run again. */
final class SpillUnreadableException extends IOException {
  private static final long serialVersionUID = 1L;

  SpillUnreadableException(String message) {
    super(message);
  }
}
