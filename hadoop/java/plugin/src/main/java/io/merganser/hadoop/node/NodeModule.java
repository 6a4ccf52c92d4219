package io.merganser.hadoop.node;

import io.merganser.hadoop.config.Keys;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * A program in WebAssembly that a job brings. The node keeps it by its SHA-256, so that the first
 * task on each machine sends it and the others don't.
 */
final class NodeModule {
  /** The beginning of {@link Keys#NODE_SSDLET} that names a file. */
  static final String PREFIX = "wasm:";

  /** Most bytes of a module, as the protocol has it. */
  static final int BYTES_MAX = 4 << 20;

  private final byte[] bytes;
  private final byte[] sha256;

  NodeModule(byte[] bytes) {
    this.bytes = bytes.clone();
    try {
      sha256 = MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JVM has SHA-256", e);
    }
  }

  /**
   * Reads the module of a job: a file of the task's machine, such as one of the distributed cache
   * in the task's working directory, or else one of the class path, such as one in the job's jar.
   *
   * @throws OnHostException if there is no such file, or none that a node would take
   */
  static NodeModule read(String file, ClassLoader classes) throws OnHostException {
    try (InputStream in = open(file, classes)) {
      if (in == null) {
        throw new OnHostException(
            HostReason.PROGRAM_FILE,
            Keys.NODE_SSDLET
                + " names "
                + file
                + ", which is neither in the task's working directory nor in the class path");
      }
      byte[] bytes = in.readNBytes(BYTES_MAX + 1);
      if (bytes.length > BYTES_MAX) {
        throw new OnHostException(
            HostReason.PROGRAM_FILE, file + " has more than " + BYTES_MAX + " bytes");
      }
      return new NodeModule(bytes);
    } catch (IOException | InvalidPathException e) {
      throw new OnHostException(HostReason.PROGRAM_FILE, file + ": " + e.getMessage(), e);
    }
  }

  /** The content of a file; null if there is no such file. */
  private static InputStream open(String file, ClassLoader classes) throws IOException {
    Path path = Path.of(file);
    return Files.isRegularFile(path)
        ? Files.newInputStream(path)
        : classes.getResourceAsStream(file);
  }

  /** The whole file. */
  byte[] bytes() {
    return bytes.clone();
  }

  /** The name that the node knows it by. */
  byte[] sha256() {
    return sha256.clone();
  }
}
