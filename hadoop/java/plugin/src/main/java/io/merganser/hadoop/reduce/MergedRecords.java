package io.merganser.hadoop.reduce;

import java.io.Closeable;
import java.io.IOException;
import java.util.Arrays;
import java.util.function.LongConsumer;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.WritableComparator;
import org.apache.hadoop.io.WritableUtils;
import org.apache.hadoop.mapred.IFile;
import org.apache.hadoop.mapred.RawKeyValueIterator;
import org.apache.hadoop.util.Progress;

/**
 * The records of a merged IFile segment, made while they are read.
 *
 * <p>The segment is read in batches into one array. Keys and values are returned as parts of that
 * array, so they are valid until the next call of {@link #next}, as everywhere in Hadoop. Only a
 * record that two batches share is moved. The array grows to the size of the longest record.
 *
 * <pre>
 *   batch   [ read already | record | record | rec...     free ]
 *                          ^ start                   ^ end
 * </pre>
 */
public final class MergedRecords implements RawKeyValueIterator {
  /** The source of the bytes of a merged segment. */
  public interface Source extends Closeable {
    /**
     * Reads the next bytes of the segment, which include the end marker and the checksum.
     *
     * @return the number of bytes, at least one; -1 at the end
     */
    int read(byte[] into, int offset, int length) throws IOException;
  }

  private static final int BATCH_BYTES = 256 << 10;

  /** The longest pair of lengths: two variable-length ints of five bytes. */
  private static final int LENGTHS_BYTES_MAX = 10;

  private static final int ARRAY_BYTES_MAX = Integer.MAX_VALUE - 8;

  private final Source source;
  private final long rawLength;
  private final LongConsumer recordsRead;
  private final Progress progress = new Progress();
  private final DataInputBuffer key = new DataInputBuffer();
  private final DataInputBuffer value = new DataInputBuffer();

  private byte[] batch = new byte[BATCH_BYTES];
  private int start;
  private int end;
  private long fetched;
  private long records;
  private boolean ended;
  private boolean closed;

  /**
   * @param source the bytes; closed with this, and as soon as the last record has been read
   * @param rawLength bytes of the segment with its end marker, without its checksum
   * @param recordsRead called once with the number of records that were read
   */
  public MergedRecords(Source source, long rawLength, LongConsumer recordsRead) {
    this.source = source;
    this.rawLength = rawLength;
    this.recordsRead = recordsRead;
  }

  @Override
  public boolean next() throws IOException {
    if (ended) {
      return false;
    }
    if (closed) {
      throw new IOException("the merge of the fetched files is closed");
    }
    if (end - start < LENGTHS_BYTES_MAX) {
      fill(LENGTHS_BYTES_MAX);
    }
    int valueLengthAt = start + lengthAt(start);
    int lengths = valueLengthAt - start + lengthAt(valueLengthAt);
    int keyLength = WritableComparator.readVInt(batch, start);
    int valueLength = WritableComparator.readVInt(batch, valueLengthAt);
    if (keyLength == IFile.EOF_MARKER && valueLength == IFile.EOF_MARKER) {
      end(lengths);
      return false;
    }
    if (keyLength < 0 || valueLength < 0) {
      throw damaged("has a record with a key of " + keyLength + ", a value of " + valueLength);
    }
    long record = (long) lengths + keyLength + valueLength;
    if (record > end - start) {
      if (record > ARRAY_BYTES_MAX) {
        throw new IOException(
            "a record of " + record + " bytes is longer than an array can be: split it");
      }
      fill((int) record);
      if (record > end - start) {
        throw damaged("ends inside a record");
      }
    }
    key.reset(batch, start + lengths, keyLength);
    value.reset(batch, start + lengths + keyLength, valueLength);
    start += (int) record;
    records++;
    return true;
  }

  /** Bytes of the variable-length int at {@code at}. All of them must be in the array. */
  private int lengthAt(int at) throws IOException {
    int length = at < end ? WritableUtils.decodeVIntSize(batch[at]) : 1;
    if (length > end - at) {
      throw damaged("ends without its end marker");
    }
    if (length > LENGTHS_BYTES_MAX / 2) {
      throw damaged("has a record whose length isn't an int");
    }
    return length;
  }

  /** Reads until {@code wanted} bytes are in the array from {@code start} on, or to the end. */
  private void fill(int wanted) throws IOException {
    int left = end - start;
    if (wanted > batch.length) {
      int size = (int) Math.min(ARRAY_BYTES_MAX, Math.max(wanted, 2L * batch.length));
      byte[] larger = new byte[size];
      System.arraycopy(batch, start, larger, 0, left);
      batch = larger;
    } else {
      System.arraycopy(batch, start, batch, 0, left);
    }
    start = 0;
    end = left;
    while (end < wanted) {
      int read = source.read(batch, end, batch.length - end);
      if (read < 0) {
        break;
      }
      end += read;
      fetched += read;
    }
    progress.set(Math.min(1.0f, fetched / (float) rawLength));
  }

  private void end(int lengths) throws IOException {
    long passed = fetched - (end - start) + lengths;
    if (passed != rawLength) {
      throw damaged("ends after " + passed + " bytes");
    }
    ended = true;
    progress.set(1.0f);
    close();
  }

  private IOException damaged(String how) {
    return new IOException(
        "the merged segment, of " + rawLength + " bytes, " + how + ": the merge has a defect");
  }

  /** The current key; empty before the first record and after the last. */
  @Override
  public DataInputBuffer getKey() {
    return key;
  }

  /** The current value; empty before the first record and after the last. */
  @Override
  public DataInputBuffer getValue() {
    return value;
  }

  @Override
  public Progress getProgress() {
    return progress;
  }

  /** Closes the source and drops the records that were not read. */
  @Override
  public void close() throws IOException {
    if (closed) {
      return;
    }
    closed = true;
    byte[] nothing = Arrays.copyOf(batch, 0);
    batch = nothing;
    start = 0;
    end = 0;
    key.reset(nothing, 0);
    value.reset(nothing, 0);
    recordsRead.accept(records);
    source.close();
  }
}
