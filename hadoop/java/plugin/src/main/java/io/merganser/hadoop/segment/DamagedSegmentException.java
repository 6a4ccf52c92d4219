package io.merganser.hadoop.segment;

import java.io.IOException;

/**
 * A spill doesn't hold the segment that it should: it was cut short or overwritten, its bits have
 * changed, its sender made it wrong, or a key is longer than the merge has memory for.
 */
public final class DamagedSegmentException extends IOException {
  private static final long serialVersionUID = 1;

  DamagedSegmentException(String what) {
    super(what);
  }

  DamagedSegmentException(Segment segment, String what) {
    super(segment.file() + ", segment at " + segment.offset() + ": " + what);
  }
}
