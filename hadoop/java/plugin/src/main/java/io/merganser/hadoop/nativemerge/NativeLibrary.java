package io.merganser.hadoop.nativemerge;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Optional;
import java.util.Properties;

/**
 * The native library inside the jar: {@code native/linux-ARCH/libmerganser_hadoop.so}. It is copied
 * to the temporary directory of the JVM (in YARN, each task has its own), loaded and removed.
 */
public final class NativeLibrary {
  private static final String FILE_NAME = "libmerganser_hadoop.so";
  private static final String VERSION_RESOURCE = "/io/merganser/hadoop/version.properties";

  private NativeLibrary() {}

  /**
   * Loads the library. A JVM loads it only once.
   *
   * @return the reason why it can't be used, as the end of a sentence; empty if it can be used
   */
  public static Optional<String> whyNot() {
    return Attempt.OUTCOME;
  }

  private static final class Attempt {
    static final Optional<String> OUTCOME =
        load(
            System.getProperty("os.name"),
            System.getProperty("os.arch"),
            Path.of(System.getProperty("java.io.tmpdir")));
  }

  static Optional<String> load(String system, String processor, Path directory) {
    Optional<String> resource = resource(system, processor);
    if (resource.isEmpty()) {
      return Optional.of("there is no native library for " + system + " on " + processor);
    }
    try (InputStream library = NativeLibrary.class.getResourceAsStream(resource.get())) {
      if (library == null) {
        return Optional.of("the jar was built without " + resource.get().substring(1));
      }
      Path file =
          Files.createTempFile(
              directory,
              "merganser-",
              ".so",
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      try {
        try (OutputStream copy = Files.newOutputStream(file)) {
          library.transferTo(copy);
        }
        System.load(file.toAbsolutePath().toString());
      } finally {
        Files.delete(file);
      }
      return mismatch(versionOfJar(), nativeVersion());
    } catch (IOException | LinkageError | SecurityException refused) {
      return Optional.of("the native library can't be loaded: " + refused.getMessage());
    }
  }

  /** The path in the jar of the library for a system and a processor, by their names in Java. */
  static Optional<String> resource(String system, String processor) {
    if (!system.equals("Linux")) {
      return Optional.empty();
    }
    return switch (processor) {
      case "amd64", "x86_64" -> Optional.of("/native/linux-x86_64/" + FILE_NAME);
      case "aarch64", "arm64" -> Optional.of("/native/linux-aarch64/" + FILE_NAME);
      default -> Optional.empty();
    };
  }

  static Optional<String> mismatch(String jar, String library) {
    return jar.equals(library)
        ? Optional.empty()
        : Optional.of("the jar has version " + jar + ", its native library " + library);
  }

  static String versionOfJar() throws IOException {
    try (InputStream resource = NativeLibrary.class.getResourceAsStream(VERSION_RESOURCE)) {
      if (resource == null) {
        throw new IOException("the jar doesn't say its version");
      }
      Properties properties = new Properties();
      properties.load(resource);
      return properties.getProperty("version");
    }
  }

  static native String nativeVersion();
}
