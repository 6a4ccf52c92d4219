package io.merganser.hadoop.service;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.manifest.Manifest.Spill;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.service.OutputCatalog.Wanted;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The outputs that the catalog remembers, and the files that it refuses. */
class OutputCatalogTest {
  private static final int PARTITIONS = 120_000;

  @TempDir Path application;

  /** The audit suspected that large manifests are parsed again at each fetch. */
  @Test
  void aLargeManifestIsParsedOnce() throws IOException {
    OutputCatalog catalog = new OutputCatalog(Keys.DEFAULT_MANIFEST_CACHE);
    Wanted wanted = largeOutput(0);
    assertTrue(Files.size(wanted.fileOut()) > Manifest.BYTES_MAX * 9L / 10);
    assertEquals(12, catalog.find(wanted).orElseThrow().length());
    Files.delete(wanted.fileOut());
    assertEquals(12, catalog.find(wanted).orElseThrow().length());
    assertFalse(catalog.isKnownAsStock(wanted));
  }

  @Test
  void rememberedManifestsStayWithinTheirMemory() throws IOException {
    OutputCatalog catalog = new OutputCatalog(Keys.DEFAULT_MANIFEST_CACHE);
    int count = 40;
    long bytes = 0;
    for (int map = 0; map < count; map++) {
      Wanted wanted = largeOutput(map);
      bytes = Files.size(wanted.fileOut());
      catalog.find(wanted).orElseThrow();
    }
    long most = Keys.DEFAULT_MANIFEST_CACHE / bytes;
    assertTrue(most < count && catalog.size() <= most, catalog.size() + " of at most " + most);
    assertTrue(catalog.size() > 0);
  }

  @Test
  void stockOutputsAreRemembered() throws IOException {
    OutputCatalog catalog = new OutputCatalog(Keys.DEFAULT_MANIFEST_CACHE);
    Wanted wanted = wanted(0);
    Files.createDirectories(wanted.fileOut().getParent());
    Files.write(wanted.fileOut(), new byte[] {-1, -1, 0, 0, 0, 0});
    assertFalse(catalog.isKnownAsStock(wanted));
    assertTrue(catalog.find(wanted).isEmpty());
    assertTrue(catalog.isKnownAsStock(wanted));
  }

  @Test
  @Timeout(value = 20, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void aFifoIsRefusedAndBlocksNoThread() throws Exception {
    OutputCatalog catalog = new OutputCatalog(Keys.DEFAULT_MANIFEST_CACHE);
    Wanted wanted = wanted(0);
    Files.createDirectories(wanted.fileOut().getParent());
    Process mkfifo = new ProcessBuilder("mkfifo", wanted.fileOut().toString()).start();
    assertEquals(0, mkfifo.waitFor());
    IOException e = assertThrows(IOException.class, () -> catalog.find(wanted));
    assertTrue(e.getMessage().contains("not a regular file"), e.getMessage());
  }

  /** A map output of two empty spills, with a manifest of nearly the largest size. */
  private Wanted largeOutput(int map) throws IOException {
    Wanted wanted = wanted(map);
    long[] lengths = new long[PARTITIONS];
    Arrays.fill(lengths, 6);
    lengths[PARTITIONS - 1] = 9;
    List<Spill> spills = List.of(new Spill("a" + map, lengths), new Spill("b" + map, lengths));
    for (Spill spill : spills) {
      Files.write(application.resolve(spill.name()), new byte[6 * PARTITIONS + 3]);
    }
    Files.createDirectories(wanted.fileOut().getParent());
    Files.write(wanted.fileOut(), new Manifest(KeyOrder.parse("text"), spills).toBytes());
    return wanted;
  }

  private Wanted wanted(int map) {
    String attempt = "attempt_1_2_m_" + map + "_0";
    Path fileOut = application.resolve("output").resolve(attempt).resolve("file.out");
    String user = System.getProperty("user.name");
    return new Wanted("job_1_2", user, attempt, fileOut, PARTITIONS - 1, 8, 12);
  }
}
