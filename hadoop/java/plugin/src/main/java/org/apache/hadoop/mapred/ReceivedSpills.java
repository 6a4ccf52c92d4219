package org.apache.hadoop.mapred;

import io.merganser.hadoop.segment.DamagedSegmentException;
import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SpillScanner;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalDirAllocator;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.Task.TaskReporter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Spills that another process has made, written to the task's local directories while they arrive.
 * All of them are on one disk as long as there is room, and each is checked before it counts. Until
 * {@link NodeMapOutput#adopt} takes them, {@link #close} deletes them.
 */
public final class ReceivedSpills implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(ReceivedSpills.class);

  private final MapTask mapTask;
  private final JobConf job;
  private final int partitions;
  private final MapOutputFile names;
  private final List<Path> files = new ArrayList<>();
  private final List<SpillRecord> indexes = new ArrayList<>();
  private FSDataOutputStream out;
  private SpillScanner scanner;
  private long records;
  private long bytes;
  private boolean kept;

  ReceivedSpills(MapTask mapTask, JobConf job, int partitions) {
    this.mapTask = mapTask;
    this.job = job;
    this.partitions = partitions;
    this.names = new SpillsOnOneDisk(mapTask.getMapOutputFile());
    scanner = new SpillScanner(partitions);
  }

  /**
   * Writes the next bytes of the current spill.
   *
   * @throws DamagedSegmentException if they can't be those of a spill
   * @throws IOException if they can't be written
   */
  public void write(byte[] some, int offset, int length) throws IOException {
    scanner.accept(some, offset, length);
    if (out == null) {
      // The first spill's length isn't known; the next ones are about as long.
      long size = indexes.isEmpty() ? LocalDirAllocator.SIZE_UNKNOWN : bytes / indexes.size();
      Path file = names.getSpillFileForWrite(files.size(), size);
      files.add(file);
      out = localFs().create(file);
    }
    out.write(some, offset, length);
  }

  /**
   * Ends the current spill.
   *
   * @param expectedRecords its records, as their maker says
   * @param expectedParts the bytes of each of its segments, as their maker says
   * @throws DamagedSegmentException if the spill is another one
   */
  public void endSpill(long expectedRecords, long[] expectedParts) throws IOException {
    scanner.end(expectedRecords, expectedParts);
    out.close();
    out = null;
    SpillRecord index = new SpillRecord(partitions);
    long offset = 0;
    for (int partition = 0; partition < partitions; partition++) {
      long part = expectedParts[partition];
      index.putIndex(new IndexRecord(offset, part - Segment.CRC_LENGTH, part), partition);
      offset += part;
    }
    indexes.add(index);
    records += scanner.records();
    bytes += scanner.bytes();
    scanner = new SpillScanner(partitions);
  }

  /** The spills that have ended. */
  public int count() {
    return indexes.size();
  }

  /** Whether a spill has begun and not ended. */
  public boolean incomplete() {
    return out != null;
  }

  /** Records of the spills that have ended. */
  public long records() {
    return records;
  }

  /** Bytes of the spills that have ended. */
  public long bytes() {
    return bytes;
  }

  /** Gives the files away, so that {@link #close} deletes nothing. */
  SpilledOutput keep(TaskReporter reporter) {
    kept = true;
    return new SpilledOutput(mapTask, job, reporter, files, indexes);
  }

  /** Deletes the spills, unless they were taken. */
  @Override
  public void close() {
    if (out != null) {
      try {
        out.close();
      } catch (IOException | FSError e) {
        LOG.debug("closing a spill that is not wanted", e);
      }
      out = null;
    }
    if (kept) {
      return;
    }
    for (Path file : files) {
      try {
        if (!localFs().delete(file, false) && localFs().exists(file)) {
          LOG.warn("{} stays until the job ends", file);
        }
      } catch (IOException e) {
        LOG.warn("{} stays until the job ends", file, e);
      }
    }
    files.clear();
    indexes.clear();
  }

  private FileSystem localFs() throws IOException {
    return FileSystem.getLocal(job).getRaw();
  }
}
