package io.merganser.hadoop.service;

import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.channels.FileChannel;
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
 * Knows which map outputs are deferred, and what lies in them. Remembers what it read, so that the
 * fetches of a job's many reducers parse a manifest once; a map attempt's output never changes.
 */
public final class OutputCatalog {
  private static final Logger LOG = LoggerFactory.getLogger(OutputCatalog.class);

  /** What a remembered output costs besides its manifest: names, and the entry itself. */
  private static final int ENTRY_BYTES = 512;

  /** How much of a file is looked at to tell a manifest. */
  private static final int START_BYTES = 8;

  /**
   * How long a merge that failed is not tried again. Reducers of a cluster with recovery come back
   * at once and for minutes, and each time would have it merged up to the damage.
   */
  private static final long UNREADABLE_SECONDS = 30;

  private static final long UNREADABLE_MAX = 10_000;

  private final Cache<Attempt, Known> known;

  /** By {@link Deferred#name}, why it could not be merged. */
  private final Cache<String, String> unreadable =
      CacheBuilder.newBuilder()
          .maximumSize(UNREADABLE_MAX)
          .expireAfterWrite(UNREADABLE_SECONDS, TimeUnit.SECONDS)
          .build();

  /**
   * @param cacheBytes what the remembered manifests may take, about
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
   * @param user who has to own the spills
   * @param order how its keys compare
   * @param segments the partition in each spill, in order
   * @param length bytes of the merged segment as it is sent
   */
  public record Deferred(
      String name, String user, KeyOrder order, List<Segment> segments, long length) {}

  /**
   * Returns what to merge, or nothing when the map output is a stock one, or can't be opened, which
   * the stock handler will say.
   *
   * @param job the job's id
   * @param user whose job it is, and who has to own every file
   * @param attempt the map attempt
   * @param fileOut its {@code file.out}
   * @param partition which of its partitions
   * @param rawLength what the map output's index says of the partition
   * @param partLength as well
   * @throws IOException when the manifest can't be read, names files that it must not, or
   *     contradicts the index, or when a merge of the partition has just failed
   */
  public Optional<Deferred> find(
      String job,
      String user,
      String attempt,
      Path fileOut,
      int partition,
      long rawLength,
      long partLength)
      throws IOException {
    Attempt key = new Attempt(job, attempt);
    Known output = known.getIfPresent(key);
    if (output == null) {
      FileInputStream in;
      try {
        in = SecureIOUtils.openForRead(fileOut.toFile(), user, null);
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
    String name = attempt + " partition " + partition;
    String failed = unreadable.getIfPresent(name);
    if (failed != null) {
      throw new IOException(failed);
    }
    List<Segment> segments = manifest.segments(partition);
    if (SegmentMerge.rawLength(segments) != rawLength
        || SegmentMerge.partLength(segments) != partLength) {
      throw new IOException(
          "the index beside " + fileOut + " and its manifest disagree on partition " + partition);
    }
    return Optional.of(new Deferred(name, user, manifest.order(), segments, partLength));
  }

  /** Remembers for a while that a partition can't be merged. */
  void markUnreadable(Deferred output, String reason) {
    unreadable.put(output.name, reason);
  }

  /** Forgets the outputs of a job. */
  public void forget(String job) {
    known.asMap().keySet().removeIf(attempt -> attempt.job.equals(job));
  }

  /** Returns how many outputs are remembered. */
  long size() {
    return known.size();
  }

  private static Known read(FileInputStream opened, Path fileOut) throws IOException {
    try (FileInputStream in = opened) {
      FileChannel channel = in.getChannel();
      if (!Manifest.isManifest(in.readNBytes(START_BYTES))) {
        return new Known(Optional.empty(), ENTRY_BYTES);
      }
      channel.position(0);
      Manifest manifest = Manifest.read(in, fileOut);
      // Parsed, it holds the lengths of the file and the offsets.
      long bytes = ENTRY_BYTES + 2 * channel.size();
      return new Known(Optional.of(manifest), (int) Math.min(bytes, Integer.MAX_VALUE));
    }
  }
}
