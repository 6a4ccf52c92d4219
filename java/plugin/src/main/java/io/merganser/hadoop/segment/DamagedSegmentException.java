package io.merganser.hadoop.segment;

import java.io.IOException;

/**
 * A spill that doesn't hold the segment it should: cut short, overwritten, or its bits have rotted.
 */
public final class DamagedSegmentException extends IOException {
  private static final long serialVersionUID = 1;

  DamagedSegmentException(Segment segment, String what) {
    super(segment.file() + ", segment at " + segment.offset() + ": " + what);
  }
}
