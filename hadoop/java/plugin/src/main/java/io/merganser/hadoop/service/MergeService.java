package io.merganser.hadoop.service;

import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SegmentMerge;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.thirdparty.com.google.common.util.concurrent.ThreadFactoryBuilder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** All merges of a NodeManager: their settings, threads, memory, and the merge process. */
public final class MergeService implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(MergeService.class);

  /**
   * Memory for keys that are longer than the buffers of their segments. Asked for only where a
   * segment is larger than its buffer, and only within a merge's share.
   */
  private static final int LONG_KEY_BYTES = 4 << 20;

  private static final int CHUNK_BYTES_MIN = 16 << 10;
  private static final int CHUNK_BYTES_MAX = 128 << 10;

  /** Chunks of a batch: those that wait, the one in work, and the buffer of a merge in Java. */
  private static final int CHUNKS = MergeStream.QUEUE_MAX + 2;

  private static final long TICK_MILLIS = 100;

  /**
   * Threads that look map outputs up. Each holds one manifest at a time, twice while it parses: so
   * fetches that were not admitted yet take at most 4 * 2 * {@link Manifest#BYTES_MAX} = 16 MiB of
   * heap, however many there are.
   */
  private static final int LOOKUP_THREADS = 4;

  private final MergeMetrics metrics;
  private final OutputCatalog outputs;
  private final Admission admission;
  private final Optional<MergeProcess> process;
  private final PageCache pageCache;
  private final long shareBytes;
  private final int chunkBytes;
  private final long retryMillis;
  private final long stallNanos;
  private final ExecutorService lookups;
  private final ExecutorService merges;
  private final ScheduledExecutorService timer;

  /**
   * Starts the threads.
   *
   * @throws IllegalArgumentException if a setting makes no sense; the message names the setting
   */
  public MergeService(Configuration conf, MergeMetrics metrics) {
    this.metrics = metrics;
    long memory = positive(conf, Keys.SERVICE_MEMORY, Keys.DEFAULT_SERVICE_MEMORY);
    int most = conf.getInt(Keys.SERVICE_MERGES, Keys.DEFAULT_SERVICE_MERGES);
    if (most <= 0) {
      most = 2 * Runtime.getRuntime().availableProcessors();
    }
    shareBytes = memory / most;
    chunkBytes =
        (int) Math.min(CHUNK_BYTES_MAX, Math.max(CHUNK_BYTES_MIN, shareBytes / (2 * CHUNKS)));
    retryMillis =
        TimeUnit.SECONDS.toMillis(positive(conf, Keys.RETRY_SECONDS, Keys.DEFAULT_RETRY_SECONDS));
    stallNanos =
        TimeUnit.SECONDS.toNanos(
            positive(conf, Keys.STALLED_SECONDS, Keys.DEFAULT_STALLED_SECONDS));
    outputs = new OutputCatalog(positive(conf, Keys.MANIFEST_CACHE, Keys.DEFAULT_MANIFEST_CACHE));
    admission =
        new Admission(memory, most, TimeUnit.MILLISECONDS.toNanos(retryMillis), System::nanoTime);
    process = process(conf, most);
    pageCache = new PageCache(conf);
    lookups = Executors.newFixedThreadPool(LOOKUP_THREADS, threads("Merganser lookup #%d"));
    merges = Executors.newFixedThreadPool(most, threads("Merganser merge #%d"));
    timer = Executors.newSingleThreadScheduledExecutor(threads("Merganser timer"));
    timer.scheduleWithFixedDelay(admission::tick, TICK_MILLIS, TICK_MILLIS, TimeUnit.MILLISECONDS);
    metrics.watch(admission, outputs);
  }

  /**
   * The merge process, if one is configured and may be used. It is not used on a secure cluster:
   * there the owner of a spill is checked on the descriptor that is read, as the stock service
   * does. The process opens files by their paths, where a user could replace a directory by a link.
   */
  private static Optional<MergeProcess> process(Configuration conf, int connectionsMax) {
    String socket = conf.getTrimmed(Keys.SOCKET, "");
    long timeout = positive(conf, Keys.SOCKET_TIMEOUT, Keys.DEFAULT_SOCKET_TIMEOUT);
    if (socket.isEmpty()) {
      return Optional.empty();
    }
    if (UserGroupInformation.isSecurityEnabled()) {
      LOG.warn("{} is not used: on a secure cluster all merges run in Java", Keys.SOCKET);
      return Optional.empty();
    }
    return Optional.of(
        new MergeProcess(
            Path.of(socket),
            TimeUnit.MILLISECONDS.toNanos(timeout),
            connectionsMax,
            System::nanoTime));
  }

  private static long positive(Configuration conf, String key, long otherwise) {
    long value = conf.getLong(key, otherwise);
    if (value <= 0) {
      throw new IllegalArgumentException(key + " is " + value + ", and has to be more than 0");
    }
    return value;
  }

  private static ThreadFactory threads(String name) {
    return new ThreadFactoryBuilder().setNameFormat(name).setDaemon(true).build();
  }

  /** Returns the catalog of map outputs. */
  public OutputCatalog outputs() {
    return outputs;
  }

  /**
   * Runs a task that uses {@link #outputs}, on a thread that may read files.
   *
   * @throws RejectedExecutionException if the service is stopping
   */
  public void lookUp(Runnable task) {
    lookups.execute(task);
  }

  /**
   * Asks to admit a fetch. Then {@code granted} or {@code turnedAway} is called, on any thread,
   * unless the batch is closed before.
   *
   * @param reducer names the job and its reducer
   * @param fetched the deferred map outputs that it wants
   * @param granted called when the fetch may begin
   * @param turnedAway called when it may not
   */
  public Batch admit(
      String reducer, List<OutputCatalog.Deferred> fetched, Runnable granted, Runnable turnedAway) {
    long bytes = fetched.stream().mapToLong(this::wantedBytes).max().orElse(0);
    Batch batch = new Batch(this, bytes, granted, turnedAway);
    batch.enter(reducer);
    return batch;
  }

  /**
   * Returns the milliseconds after which a fetch that was turned away should come again. They are
   * random, up to twice the setting, so that fetches that were turned away together come back at
   * different times.
   */
  public long retryMillis() {
    return retryMillis + ThreadLocalRandom.current().nextLong(retryMillis);
  }

  /** Counts a deferred map output that was requested and could not be sent. */
  public void countUnsent() {
    metrics.damaged.incr();
  }

  /** Stops all merges and threads. */
  @Override
  public void close() {
    admission.close();
    timer.shutdownNow();
    lookups.shutdownNow();
    merges.shutdown();
    process.ifPresent(MergeProcess::close);
    try {
      if (!merges.awaitTermination(10, TimeUnit.SECONDS)) {
        merges.shutdownNow();
      }
    } catch (InterruptedException e) {
      merges.shutdownNow();
      Thread.currentThread().interrupt();
    }
  }

  Admission admission() {
    return admission;
  }

  MergeMetrics metrics() {
    return metrics;
  }

  PageCache pageCache() {
    return pageCache;
  }

  int chunkBytes() {
    return chunkBytes;
  }

  long stallNanos() {
    return stallNanos;
  }

  long now() {
    return System.nanoTime();
  }

  /** The memory of a grant that its merge may take; never less than the merge needs. */
  long mergeMemory(long grantBytes, int segments) {
    long least = SegmentMerge.leastMemory(segments);
    return Math.max(least, grantBytes - (long) CHUNKS * chunkBytes);
  }

  void produce(MergeStream stream) {
    try {
      merges.execute(stream::produce);
    } catch (RejectedExecutionException e) {
      stream.reject(new IOException("the shuffle service is stopping", e));
    }
  }

  Optional<MergedBytes> mergeInProcess(OutputCatalog.Deferred output, long skip, long memoryBytes) {
    return process.flatMap(p -> p.merge(output, skip, memoryBytes));
  }

  void distrustProcess(IOException reason) {
    process.ifPresent(p -> p.failed(reason));
  }

  /**
   * The memory that a fetch asks for: enough to read each segment in large pieces and to hold long
   * keys, but at most its share if all merges run, and at least what the merge needs. A merge in
   * the merge process asks for the same, so that Java can take it over at any time.
   */
  private long wantedBytes(OutputCatalog.Deferred output) {
    long reads = 0;
    long longKeys = 0;
    for (Segment segment : output.segments()) {
      reads += Math.min(segment.partLength(), SegmentMerge.BUFFER_BYTES_MAX);
      if (segment.partLength() > SegmentMerge.BUFFER_BYTES_MAX) {
        longKeys = LONG_KEY_BYTES;
      }
    }
    long chunks = (long) CHUNKS * chunkBytes;
    long least = chunks + SegmentMerge.leastMemory(output.segments().size());
    return Math.max(least, Math.min(chunks + reads + longKeys, shareBytes));
  }
}
