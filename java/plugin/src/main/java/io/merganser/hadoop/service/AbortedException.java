package io.merganser.hadoop.service;

import java.io.IOException;

/** This side ended the wait for the merge process; so it says nothing about the process. */
final class AbortedException extends IOException {
  private static final long serialVersionUID = 1L;

  AbortedException() {
    super("the merge was aborted: its bytes are no longer wanted");
  }
}
