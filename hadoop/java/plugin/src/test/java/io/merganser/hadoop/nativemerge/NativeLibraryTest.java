package io.merganser.hadoop.nativemerge;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeLibraryTest {
  @TempDir private Path folder;

  @BeforeAll
  static void needsTheLibrary() {
    assumeFalse(Boolean.getBoolean("native.skip"), "built without the native library");
  }

  @Test
  void loadsFromTheJarAndLeavesNothingBehind() throws IOException {
    assertEquals(
        Optional.empty(),
        NativeLibrary.load(System.getProperty("os.name"), System.getProperty("os.arch"), folder));
    try (Stream<Path> left = Files.list(folder)) {
      assertEquals(0, left.count());
    }
    assertEquals(Optional.empty(), NativeLibrary.whyNot());
  }

  @Test
  void hasTheJarsVersion() throws IOException {
    assertEquals(Optional.empty(), NativeLibrary.whyNot());
    assertEquals(NativeLibrary.versionOfJar(), NativeLibrary.nativeVersion());
    assertEquals(
        Optional.of("the jar has version 1.2.0, its native library 1.1.0"),
        NativeLibrary.mismatch("1.2.0", "1.1.0"));
  }

  @Test
  void looksForTheLibraryOfItsProcessor() {
    String intel = "/native/linux-x86_64/libmerganser_hadoop.so";
    String arm = "/native/linux-aarch64/libmerganser_hadoop.so";
    assertEquals(Optional.of(intel), NativeLibrary.resource("Linux", "amd64"));
    assertEquals(Optional.of(intel), NativeLibrary.resource("Linux", "x86_64"));
    assertEquals(Optional.of(arm), NativeLibrary.resource("Linux", "aarch64"));
    assertEquals(Optional.of(arm), NativeLibrary.resource("Linux", "arm64"));
    assertEquals(Optional.empty(), NativeLibrary.resource("Linux", "s390x"));
    assertEquals(Optional.empty(), NativeLibrary.resource("Mac OS X", "aarch64"));
  }

  @Test
  void saysWhyItCanNotLoad() {
    assertEquals(
        "there is no native library for Linux on riscv64",
        NativeLibrary.load("Linux", "riscv64", folder).orElseThrow());
    String noFolder =
        NativeLibrary.load("Linux", System.getProperty("os.arch"), folder.resolve("none"))
            .orElseThrow();
    assertTrue(noFolder.startsWith("the native library can't be loaded: "), noFolder);
  }

  /**
   * If both were built, the jar has the library of the other processor too, and the message has the
   * linker's error.
   */
  @Test
  void refusesTheOtherProcessorsLibrary() throws IOException {
    String other = System.getProperty("os.arch").equals("aarch64") ? "x86_64" : "aarch64";
    String resource = NativeLibrary.resource("Linux", other).orElseThrow();
    String reason = NativeLibrary.load("Linux", other, folder).orElseThrow();
    try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
      String expected =
          library == null ? "the jar was built without " : "the native library can't be loaded: ";
      assertTrue(reason.startsWith(expected), reason);
    }
    assertNotNull(reason);
  }
}
