package io.merganser.hadoop.manifest;

import java.io.IOException;

/**
 * A manifest that can't be used: it is damaged, too large or of a newer version, or its spills
 * aren't as it says.
 */
public final class ManifestException extends IOException {
  private static final long serialVersionUID = 1;

  ManifestException(String message) {
    super(message);
  }
}
