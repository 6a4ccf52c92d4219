package io.merganser.hadoop.process;

import java.io.IOException;

/** This side ended the wait for a process; so it says nothing about the process. */
public final class AbortedException extends IOException {
  private static final long serialVersionUID = 1L;

  /** Makes the exception. */
  public AbortedException() {
    super("the wait was aborted: the answer is no longer wanted");
  }
}
