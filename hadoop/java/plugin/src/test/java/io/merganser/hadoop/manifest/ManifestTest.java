package io.merganser.hadoop.manifest;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.manifest.Manifest.Spill;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.CRC32;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ManifestTest {
  @TempDir Path application;
  private Path fileOut;

  @BeforeEach
  void makeDirectories() throws IOException {
    fileOut = application.resolve("output").resolve("attempt_1_2_m_3_0").resolve("file.out");
    Files.createDirectories(fileOut.getParent());
  }

  private static Manifest example() {
    return new Manifest(
        KeyOrder.parse("text,int:desc"),
        List.of(new Spill("a_0.out", new long[] {6, 17}), new Spill("a_1.out", new long[] {9, 6})));
  }

  @Test
  void bytesArePinned() {
    assertEquals(
        String.join(
            "",
            "e94d47534d41500a", // magic
            "0001", // version
            "000d", // the order's length
            "746578742c696e743a64657363", // text,int:desc
            "00000002", // partitions
            "00000002", // spills
            "0007" + "615f302e6f7574", // a_0.out
            "0000000000000006" + "0000000000000011",
            "0007" + "615f312e6f7574", // a_1.out
            "0000000000000009" + "0000000000000006",
            "46a956e2"), // CRC-32
        HexFormat.of().formatHex(example().toBytes()));
  }

  @Test
  void readsWhatItWrote() throws IOException {
    Files.write(fileOut, example().toBytes());
    writeSpills();
    assertTrue(Manifest.isManifest(fileOut));
    Manifest read = Manifest.read(fileOut);
    assertArrayEquals(example().toBytes(), read.toBytes());
    assertEquals("text,int:desc", read.order().description());
    assertEquals(2, read.partitions());
    Path a = application.resolve("a_0.out");
    Path b = application.resolve("a_1.out");
    assertEquals(List.of(new Segment(a, 0, 2, 6), new Segment(b, 0, 5, 9)), read.segments(0));
    assertEquals(List.of(new Segment(a, 6, 13, 17), new Segment(b, 9, 2, 6)), read.segments(1));
    assertEquals(9, read.partLength(0));
    assertEquals(17, read.partLength(1));
  }

  @Test
  void everyFlippedBitIsRefused() throws IOException {
    byte[] bytes = example().toBytes();
    for (int at = 0; at < bytes.length; at++) {
      for (int bit = 0; bit < 8; bit++) {
        byte[] damaged = bytes.clone();
        damaged[at] ^= (byte) (1 << bit);
        ManifestException e =
            assertThrows(
                ManifestException.class, () -> read(damaged), "byte " + at + ", bit " + bit);
        assertTrue(e.getMessage().startsWith(fileOut.toString()), e.getMessage());
      }
    }
    for (int length = 0; length < bytes.length; length++) {
      Files.write(fileOut, Arrays.copyOf(bytes, length));
      assertThrows(ManifestException.class, () -> Manifest.read(fileOut), "cut to " + length);
    }
    Files.write(fileOut, Arrays.copyOf(bytes, bytes.length + 1));
    assertThrows(ManifestException.class, () -> Manifest.read(fileOut));
  }

  /** Damage with a right checksum, as an attacker would make it. */
  @Test
  void everyChangedByteWithARightChecksumIsRefusedOrHarmless() throws IOException {
    byte[] bytes = example().toBytes();
    for (int at = 8; at < bytes.length - 4; at++) {
      for (int value = 0; value < 256; value++) {
        byte[] changed = bytes.clone();
        changed[at] = (byte) value;
        try {
          Manifest read = read(sealed(changed));
          for (Spill spill : read.spills()) {
            assertEquals(application, application.resolve(spill.name()).normalize().getParent());
          }
          assertArrayEquals(sealed(changed), read.toBytes());
        } catch (ManifestException refused) {
          assertTrue(refused.getMessage().startsWith(fileOut.toString()));
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", ".", "..", "../x", "/etc/passwd", "a/b", "a/../../b", "a\0b", "a/", "./a"})
  void namesStayInTheirDirectory(String name) {
    assertThrows(IllegalArgumentException.class, () -> new Spill(name, new long[] {6}));
  }

  @Test
  void linksAndOtherFilesAreRefused() throws IOException {
    Files.write(fileOut, example().toBytes());
    writeSpills();
    Path spill = application.resolve("a_1.out");
    Files.delete(spill);
    Files.createSymbolicLink(spill, application.resolve("a_0.out"));
    assertRefuses("not a regular file");
    Files.delete(spill);
    Files.createDirectory(spill);
    assertRefuses("not a regular file");
    Files.delete(spill);
    assertRefuses("gone");
    Files.write(spill, new byte[14]);
    assertRefuses("14 bytes, it was written with 15");
  }

  private void assertRefuses(String why) throws IOException {
    Manifest manifest = Manifest.read(fileOut);
    ManifestException e = assertThrows(ManifestException.class, () -> manifest.segments(0));
    assertTrue(e.getMessage().contains("a_1.out") && e.getMessage().contains(why), e.getMessage());
  }

  @Test
  void aNewerVersionSaysSo() throws IOException {
    byte[] bytes = example().toBytes();
    bytes[9] = 2;
    Files.write(fileOut, sealed(bytes));
    ManifestException e = assertThrows(ManifestException.class, () -> Manifest.read(fileOut));
    assertTrue(e.getMessage().contains("version 2"), e.getMessage());
  }

  @Test
  void spillsMustAgree() {
    KeyOrder order = KeyOrder.parse("text");
    Spill one = new Spill("a", new long[] {6});
    for (List<Spill> bad :
        List.<List<Spill>>of(
            List.of(),
            List.of(new Spill("a", new long[0])),
            List.of(one, new Spill("b", new long[] {6, 6})),
            List.of(one, one),
            List.of(new Spill("a", new long[] {5})),
            List.of(new Spill("a", new long[] {Long.MAX_VALUE, 6})))) {
      assertThrows(IllegalArgumentException.class, () -> new Manifest(order, bad));
    }
  }

  @Test
  void mapOutputsOfHadoopAreNotManifests() throws IOException {
    Files.write(fileOut, new byte[] {-1, -1, 0, 0, 0, 0});
    assertFalse(Manifest.isManifest(fileOut));
    Files.write(fileOut, new byte[0]);
    assertFalse(Manifest.isManifest(fileOut));
    assertThrows(ManifestException.class, () -> Manifest.read(fileOut));
  }

  /** The audit suspected that a manifest of 64 MiB costs each fetch 200 MB of heap. */
  @Test
  void aManifestOf64MiBIsRefusedBeforeItIsParsed() throws IOException {
    Files.write(fileOut, example().toBytes());
    try (RandomAccessFile file = new RandomAccessFile(fileOut.toFile(), "rw")) {
      file.setLength(64 << 20);
    }
    long before = allocatedBytes();
    ManifestException e = assertThrows(ManifestException.class, () -> Manifest.read(fileOut));
    long allocated = allocatedBytes() - before;
    assertTrue(e.getMessage().contains("more than 2097152 bytes"), e.getMessage());
    assertTrue(allocated < 3L * Manifest.BYTES_MAX, allocated + " bytes of heap");
  }

  @Test
  void theLargestManifestsAreReadInLittleHeap() throws IOException {
    KeyOrder order = KeyOrder.parse("text");
    int partitions = 4000;
    assertTrue(Manifest.fits(order, 64, partitions));
    byte[] bytes = manifest(order, 64, partitions).toBytes();
    assertTrue(bytes.length <= Manifest.BYTES_MAX, bytes.length + " bytes");
    Files.write(fileOut, bytes);
    long before = allocatedBytes();
    Manifest read = Manifest.read(fileOut);
    long allocated = allocatedBytes() - before;
    assertTrue(allocated < 4L * Manifest.BYTES_MAX, allocated + " bytes of heap");
    assertTrue(read.heapBytes() < 1.1 * bytes.length, read.heapBytes() + " bytes remembered");
    assertArrayEquals(bytes, read.toBytes());
  }

  @Test
  void whatFitsIsAlwaysRead() throws IOException {
    KeyOrder order = KeyOrder.parse("text");
    assertFalse(Manifest.fits(order, 64, 4200));
    assertFalse(Manifest.fits(order, 2, 140_000));
    assertFalse(Manifest.fits(order, Manifest.SPILLS_MAX + 1, 1));
    assertFalse(Manifest.fits(order, Integer.MAX_VALUE, Integer.MAX_VALUE));
    for (int spills : new int[] {1, 64, Manifest.SPILLS_MAX}) {
      int partitions = 1;
      while (Manifest.fits(order, spills, partitions + 100)) {
        partitions += 100;
      }
      byte[] bytes = manifest(order, spills, partitions).toBytes();
      assertEquals(partitions, read(bytes).partitions());
    }
    byte[] many = manifest(order, Manifest.SPILLS_MAX + 1, 1).toBytes();
    ManifestException e = assertThrows(ManifestException.class, () -> read(many));
    assertTrue(e.getMessage().contains("at most 1024 are served"), e.getMessage());
  }

  /** A manifest whose spills have names as long as a file system takes them. */
  private static Manifest manifest(KeyOrder order, int spills, int partitions) {
    List<Spill> named = new ArrayList<>();
    long[] lengths = new long[partitions];
    Arrays.fill(lengths, 6);
    for (int i = 0; i < spills; i++) {
      named.add(new Spill(String.format("%0255d", i), lengths));
    }
    return new Manifest(order, named);
  }

  /** Bytes of heap that this thread has allocated so far. */
  private static long allocatedBytes() {
    return ((com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean())
        .getCurrentThreadAllocatedBytes();
  }

  private Manifest read(byte[] bytes) throws IOException {
    return Manifest.read(new ByteArrayInputStream(bytes), fileOut);
  }

  private void writeSpills() throws IOException {
    Files.write(application.resolve("a_0.out"), new byte[23]);
    Files.write(application.resolve("a_1.out"), new byte[15]);
  }

  /** The same bytes with the checksum they should have. */
  private static byte[] sealed(byte[] bytes) {
    CRC32 crc = new CRC32();
    crc.update(bytes, 0, bytes.length - 4);
    byte[] sealed = bytes.clone();
    ByteBuffer.wrap(sealed).putInt(sealed.length - 4, (int) crc.getValue());
    return sealed;
  }
}
