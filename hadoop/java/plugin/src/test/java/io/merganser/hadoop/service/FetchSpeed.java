package io.merganser.hadoop.service;

import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.RandomSegments;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.ShuffleHandler;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Measures how fast a NodeManager gets merged map outputs, several at once: from the merge process
 * through its socket, and from its own merge in Java. Run by {@code hadoop/java/plugin/fetch-speed
 * FOLDER MB MERGANSER}. Spills are read from the page cache, and nothing is sent.
 */
public final class FetchSpeed {
  private static final int ROUNDS = 3;
  private static final int FETCHES = 16;
  private static final int SPILL_MEMORY_BYTES = 256 << 10;
  private static final int CHUNK_BYTES = 128 << 10;

  private FetchSpeed() {}

  private interface Opener {
    MergedBytes open() throws IOException;
  }

  /** Takes a folder for the spills, the megabytes of a map output, and the process's socket. */
  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    long bytes = Long.parseLong(arguments[1]) << 20;
    System.out.println("record  spills  at once  process MB/s  Java MB/s   (medians of 3)");
    try (MergeProcess process =
        new MergeProcess(
            Path.of(arguments[2]), TimeUnit.SECONDS.toNanos(20), FETCHES, System::nanoTime)) {
      for (int record : new int[] {100, 4096}) {
        for (int spills : new int[] {4, 64}) {
          measure(process, output(folder, bytes, record, spills), record);
        }
      }
    }
  }

  private static void measure(MergeProcess process, OutputCatalog.Deferred output, int record)
      throws Exception {
    int spills = output.segments().size();
    int memory = spills * SPILL_MEMORY_BYTES;
    Configuration keep = new Configuration(false);
    keep.setBoolean(ShuffleHandler.SHUFFLE_MANAGE_OS_CACHE, false);
    PageCache pageCache = new PageCache(keep);
    List<Opener> ways =
        List.of(
            () -> process.merge(output, 0, memory).orElseThrow(),
            () -> new JavaMerge(output, memory, CHUNK_BYTES, pageCache));
    for (int atOnce : new int[] {1, 4, 16}) {
      double[][] rates = new double[ways.size()][ROUNDS];
      // The first round is not counted, because the JVM compiles in it.
      for (int round = -1; round < ROUNDS; round++) {
        for (int way = 0; way < rates.length; way++) {
          double rate = rate(ways.get(way), output.length(), atOnce);
          if (round >= 0) {
            rates[way][round] = rate;
          }
        }
      }
      for (double[] rate : rates) {
        Arrays.sort(rate);
      }
      System.out.printf(
          Locale.ROOT,
          "%6d %7d %8d %13.0f %10.0f%n",
          record,
          spills,
          atOnce,
          rates[0][ROUNDS / 2],
          rates[1][ROUNDS / 2]);
    }
    for (Segment spill : output.segments()) {
      Files.delete(spill.file());
    }
  }

  /** MB/s of all {@link #FETCHES} together, {@code atOnce} of them at a time. */
  private static double rate(Opener way, long length, int atOnce) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(atOnce);
    try {
      long start = System.nanoTime();
      List<Future<?>> fetches = new ArrayList<>();
      for (int fetch = 0; fetch < FETCHES; fetch++) {
        fetches.add(
            threads.submit(
                () -> {
                  drain(way, length);
                  return null;
                }));
      }
      for (Future<?> fetch : fetches) {
        fetch.get();
      }
      return FETCHES * length * 1e3 / (System.nanoTime() - start);
    } finally {
      threads.shutdown();
    }
  }

  private static void drain(Opener way, long length) throws IOException {
    ByteBuf chunk = PooledByteBufAllocator.DEFAULT.directBuffer(CHUNK_BYTES, CHUNK_BYTES);
    try (MergedBytes merge = way.open()) {
      for (long left = length; left > 0; left -= chunk.readableBytes()) {
        chunk.clear();
        merge.read(chunk);
      }
      merge.finish();
    } finally {
      chunk.release();
    }
  }

  private static OutputCatalog.Deferred output(Path folder, long bytes, int record, int count)
      throws IOException {
    List<Segment> spills = RandomSegments.write(folder, bytes, record, count);
    return new OutputCatalog.Deferred(
        "output",
        UserGroupInformation.getCurrentUser().getShortUserName(),
        KeyOrder.parse("text"),
        spills,
        SegmentMerge.partLength(spills));
  }
}
