package io.merganser.hadoop.manifest;

import java.io.IOException;

/** A manifest that can't be used: damaged, of a newer version, or not in step with its spills. */
public final class ManifestException extends IOException {
  private static final long serialVersionUID = 1;

  ManifestException(String message) {
    super(message);
  }
}
