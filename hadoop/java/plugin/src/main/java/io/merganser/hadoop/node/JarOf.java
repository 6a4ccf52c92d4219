package io.merganser.hadoop.node;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.Optional;
import java.util.jar.JarFile;

/** The jar that a class was loaded from. */
final class JarOf {
  private JarOf() {}

  /** The jar or folder of a class; empty if its loader doesn't say. */
  static Optional<URI> of(Class<?> loaded) {
    CodeSource source = loaded.getProtectionDomain().getCodeSource();
    if (source == null || source.getLocation() == null) {
      return Optional.empty();
    }
    try {
      return Optional.of(source.getLocation().toURI());
    } catch (URISyntaxException e) {
      return Optional.empty();
    }
  }

  /** Whether a jar has a file of this name. A folder has none. */
  static boolean has(URI jar, String name) {
    try (JarFile files = new JarFile(Path.of(jar).toFile())) {
      return files.getEntry(name) != null;
    } catch (IOException | RuntimeException e) {
      return false;
    }
  }
}
