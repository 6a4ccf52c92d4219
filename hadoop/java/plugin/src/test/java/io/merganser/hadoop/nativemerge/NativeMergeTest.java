package io.merganser.hadoop.nativemerge;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SpillFile;
import io.merganser.hadoop.segment.SpillFile.KeyValue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The library's memory, errors and arguments; {@code FileMergeTest} compares the merged bytes. */
class NativeMergeTest {
  private static final KeyOrder ORDER = KeyOrder.parse("raw");
  private static final int MEMORY_BYTES = 4 << 20;

  @TempDir private Path folder;
  private List<Segment> files;

  @BeforeAll
  static void needsTheLibrary() {
    assumeFalse(Boolean.getBoolean("native.skip"), "built without the native library");
    assertTrue(NativeLibrary.whyNot().isEmpty());
  }

  @BeforeEach
  void write() throws IOException {
    files = new ArrayList<>();
    for (int file = 0; file < 20; file++) {
      List<KeyValue> entries = new ArrayList<>();
      for (int key = 0; key < 100; key++) {
        entries.add(new KeyValue(new byte[] {(byte) key}, new byte[1000]));
      }
      files.add(SpillFile.write(folder.resolve("map " + file), List.of(entries)).get(0));
    }
  }

  @Test
  void keepsNothingWhenItIsClosedInTheMiddle() throws IOException {
    byte[] some = new byte[64 << 10];
    long descriptors = openDescriptors();
    // First the heap and the allocator grow to their size.
    for (int round = 0; round < 300; round++) {
      openReadClose(some);
    }
    long resident = residentBytes();
    for (int round = 0; round < 1000; round++) {
      openReadClose(some);
    }
    // Fewer, if garbage of other tests held some before.
    assertTrue(openDescriptors() <= descriptors);
    // Each merge takes about 2 MB, so a leak of all would be 2 GB.
    long grown = residentBytes() - resident;
    assertTrue(grown < 100 << 20, "grown by " + grown);
  }

  private void openReadClose(byte[] some) throws IOException {
    try (NativeMerge merge = new NativeMerge(ORDER, files, MEMORY_BYTES)) {
      assertEquals(some.length, merge.read(some, 0, some.length));
    }
  }

  @Test
  void aMergeThatIsNeverClosedIsFreedByTheGarbageCollector() throws Exception {
    long descriptors = openDescriptors();
    List<NativeMerge> merges = new ArrayList<>();
    for (int count = 0; count < 10; count++) {
      merges.add(new NativeMerge(ORDER, files, MEMORY_BYTES));
    }
    assertTrue(openDescriptors() > descriptors + 100);
    merges.clear();
    for (int wait = 0; wait < 200 && openDescriptors() > descriptors; wait++) {
      System.gc();
      Thread.sleep(20);
    }
    assertTrue(openDescriptors() <= descriptors);
  }

  @Test
  void aMergeThatCouldNotOpenLeavesNothingOpen() throws IOException {
    long descriptors = openDescriptors();
    Files.delete(files.get(19).file());
    for (int again = 0; again < 50; again++) {
      IOException missing =
          assertThrows(IOException.class, () -> new NativeMerge(ORDER, files, MEMORY_BYTES));
      assertTrue(missing.getMessage().contains("map 19"), missing.getMessage());
    }
    IOException memory = assertThrows(IOException.class, () -> new NativeMerge(ORDER, files, 100));
    assertTrue(memory.getMessage().contains("100 bytes of memory"), memory.getMessage());
    assertTrue(openDescriptors() <= descriptors);
  }

  @Test
  void afterAnErrorThereAreOnlyErrors() throws IOException {
    Path damaged = files.get(3).file();
    byte[] bytes = Files.readAllBytes(damaged);
    bytes[50_000] ^= 1;
    Files.write(damaged, bytes);
    byte[] some = new byte[1 << 20];
    try (NativeMerge merge = new NativeMerge(ORDER, files, MEMORY_BYTES)) {
      IOException first =
          assertThrows(
              IOException.class,
              () -> {
                while (merge.read(some, 0, some.length) >= 0) {
                  continue;
                }
              });
      assertTrue(first.getMessage().contains(damaged.toString()), first.getMessage());
      IOException second = assertThrows(IOException.class, () -> merge.read(some, 0, 1));
      assertTrue(second.getMessage().contains("has failed"), second.getMessage());
    }
  }

  @Test
  void closedItRefuses() throws IOException {
    NativeMerge merge = new NativeMerge(ORDER, files, MEMORY_BYTES);
    merge.close();
    merge.close();
    IOException thrown = assertThrows(IOException.class, () -> merge.read(new byte[1], 0, 1));
    assertTrue(thrown.getMessage().contains("closed"), thrown.getMessage());
  }

  @Test
  void readsOnlyIntoTheArray() throws IOException {
    try (NativeMerge merge = new NativeMerge(ORDER, files, MEMORY_BYTES)) {
      byte[] ten = new byte[10];
      assertThrows(IndexOutOfBoundsException.class, () -> merge.read(ten, 5, 6));
      assertThrows(IndexOutOfBoundsException.class, () -> merge.read(ten, -1, 5));
      assertEquals(0, merge.read(ten, 10, 0));
      assertEquals(3, merge.read(ten, 7, 3));
      assertEquals(0, ten[6]);
      assertEquals(1, ten[7], "the length of the first key");
    }
  }

  private static long openDescriptors() throws IOException {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.count();
    }
  }

  private static long residentBytes() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/status"))) {
      String line = lines.filter(l -> l.startsWith("VmRSS:")).findFirst().orElseThrow();
      return Long.parseLong(line.replaceAll("\\D", "")) << 10;
    }
  }
}
