package io.merganser.hadoop.service;

import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.io.SecureIOUtils;
import org.apache.hadoop.thirdparty.com.google.common.cache.Cache;
import org.apache.hadoop.thirdparty.com.google.common.cache.CacheBuilder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds out which map outputs are deferred and which segments they have. It reads files, so it is
 * not called in an event loop. It remembers the kind and the manifest of each map output, within a
 * bounded memory, so that a manifest is parsed once for the many reducers of a job. The output of a
 * map attempt never changes.
 */
public final class OutputCatalog {
  private static final Logger LOG = LoggerFactory.getLogger(OutputCatalog.class);

  /** Heap of a remembered output in addition to its manifest: names, and the entry itself. */
  private static final int ENTRY_BYTES = 512;

  /**
   * How long a merge that failed is not tried again. Where NodeManagers recover, reducers ask again
   * at once and for minutes, and each time the partition would be merged up to the damage.
   */
  private static final long UNREADABLE_SECONDS = 30;

  private static final long UNREADABLE_MAX = 10_000;

  private final Cache<Attempt, Known> known;

  /** For a {@link Deferred#name}, the reason why it could not be merged. */
  private final Cache<String, String> unreadable =
      CacheBuilder.newBuilder()
          .maximumSize(UNREADABLE_MAX)
          .expireAfterWrite(UNREADABLE_SECONDS, TimeUnit.SECONDS)
          .build();

  /**
   * @param cacheBytes about the memory that the remembered manifests may take
   */
  OutputCatalog(long cacheBytes) {
    known =
        CacheBuilder.newBuilder()
            .maximumWeight(cacheBytes)
            .weigher((Attempt attempt, Known output) -> output.bytes)
            .build();
  }

  private record Attempt(String job, String name) {}

  private record Known(Optional<Manifest> manifest, int bytes) {}

  /**
   * One partition of a deferred map output.
   *
   * @param name the map attempt and the partition, for messages
   * @param user the user that must own the spills
   * @param order how its keys compare
   * @param segments the partition in each spill, in order
   * @param length bytes of the merged segment as it is sent
   */
  public record Deferred(
      String name, String user, KeyOrder order, List<Segment> segments, long length) {}

  /**
   * One partition of a map output that a reducer asks for.
   *
   * @param job the id of the job
   * @param user the job's user, which must own every file
   * @param attempt the map attempt
   * @param fileOut its {@code file.out}
   * @param partition the number of the partition
   * @param rawLength the partition's raw length in the index of the map output
   * @param partLength the partition's length there
   */
  public record Wanted(
      String job,
      String user,
      String attempt,
      Path fileOut,
      int partition,
      long rawLength,
      long partLength) {}

  /** Whether a map output is remembered as a stock one. Reads no file. */
  public boolean isKnownAsStock(Wanted wanted) {
    Known output = known.getIfPresent(new Attempt(wanted.job, wanted.attempt));
    return output != null && output.manifest.isEmpty();
  }

  /**
   * Returns the segments to merge; nothing if the map output is a stock one, or if it can't be
   * opened, which the stock handler will report.
   *
   * @throws IOException if the manifest can't be read, names files that it must not, or contradicts
   *     the index, or if a merge of the partition has just failed
   */
  public Optional<Deferred> find(Wanted wanted) throws IOException {
    Path fileOut = wanted.fileOut;
    int partition = wanted.partition;
    Attempt key = new Attempt(wanted.job, wanted.attempt);
    Known output = known.getIfPresent(key);
    if (output == null) {
      if (Files.exists(fileOut) && !Files.isRegularFile(fileOut)) {
        // To open a fifo would block for ever.
        throw new IOException(fileOut + " is not a regular file");
      }
      FileInputStream in;
      try {
        in = SecureIOUtils.openForRead(fileOut.toFile(), wanted.user, null);
      } catch (IOException e) {
        LOG.debug("{} is left to the stock handler", fileOut, e);
        return Optional.empty();
      }
      output = read(in, fileOut);
      known.put(key, output);
    }
    if (output.manifest.isEmpty()) {
      return Optional.empty();
    }
    Manifest manifest = output.manifest.get();
    if (partition < 0 || partition >= manifest.partitions()) {
      throw new IOException(
          fileOut + " has " + manifest.partitions() + " partitions, and not number " + partition);
    }
    String name = wanted.attempt + " partition " + partition;
    requireReadable(name);
    List<Segment> segments = manifest.segments(partition);
    if (SegmentMerge.rawLength(segments) != wanted.rawLength
        || SegmentMerge.partLength(segments) != wanted.partLength) {
      throw new IOException(
          "the index of " + fileOut + " and its manifest disagree on partition " + partition);
    }
    return Optional.of(
        new Deferred(name, wanted.user, manifest.order(), segments, wanted.partLength));
  }

  /**
   * Checks again a partition that was found a while ago. Reads no file.
   *
   * @throws IOException if a merge of the partition has failed since
   */
  public void recheck(Deferred output) throws IOException {
    requireReadable(output.name);
  }

  private void requireReadable(String name) throws IOException {
    String failed = unreadable.getIfPresent(name);
    if (failed != null) {
      throw new IOException(failed);
    }
  }

  /** Remembers for a while that a partition can't be merged. */
  void markUnreadable(Deferred output, String reason) {
    unreadable.put(output.name, reason);
  }

  /** Forgets the outputs of a job. */
  public void forget(String job) {
    known.asMap().keySet().removeIf(attempt -> attempt.job.equals(job));
  }

  /** Returns the number of outputs that are remembered. */
  long size() {
    return known.size();
  }

  private static Known read(FileInputStream opened, Path fileOut) throws IOException {
    try (FileInputStream in = opened) {
      FileChannel channel = in.getChannel();
      if (!Manifest.isManifest(in.readNBytes(Manifest.START_BYTES))) {
        return new Known(Optional.empty(), ENTRY_BYTES);
      }
      channel.position(0);
      Manifest manifest = Manifest.read(in, fileOut);
      long bytes = ENTRY_BYTES + manifest.heapBytes();
      return new Known(Optional.of(manifest), (int) Math.min(bytes, Integer.MAX_VALUE));
    }
  }
}
